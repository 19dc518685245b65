//! A limit on the size of files is a failed write like any other, and no end of the program.

/// Lets a write beyond the limit fail. Without that, the system ends the program in the middle of it.
#[cfg(unix)]
pub(crate) fn heed() {
    use tokio::signal::unix::{SignalKind, signal};

    // The number of SIGXFSZ wherever we are built for.
    const BEYOND_THE_LIMIT: i32 = 25;
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    let _inside = runtime.enter();
    // Whoever once listened to it is not ended by it, also when nobody listens any more.
    let _ = signal(SignalKind::from_raw(BEYOND_THE_LIMIT));
}

/// Other systems have no such signal.
#[cfg(not(unix))]
pub(crate) fn heed() {}
