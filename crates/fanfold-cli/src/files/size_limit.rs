//! Turns the system's file size limit into an ordinary write error.

/// Ignores SIGXFSZ, which would otherwise end the program in the middle of a write beyond the limit.
#[cfg(unix)]
pub(crate) fn ignore_signal() {
    use tokio::signal::unix::{SignalKind, signal};

    // The same number on every supported system.
    const SIGXFSZ: i32 = 25;
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    let _guard = runtime.enter();
    // tokio's handler stays installed when the listener is dropped.
    let _ = signal(SignalKind::from_raw(SIGXFSZ));
}

/// Other systems have no such signal.
#[cfg(not(unix))]
pub(crate) fn ignore_signal() {}
