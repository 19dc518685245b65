//! Signals that ask the program to end.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndSignal {
    /// Ctrl-C, which a terminal sends to every process of its foreground group.
    Interrupt,
    Terminate,
    /// The terminal was closed.
    HangUp,
}

/// True if this process is in the terminal's foreground group. If so, Ctrl-C reaches the processes it started as well.
#[cfg(unix)]
pub(crate) fn is_in_foreground() -> bool {
    use rustix::{process::getpgrp, termios::tcgetpgrp};
    let terminal = std::fs::File::open("/dev/tty").ok();
    terminal.and_then(|terminal| tcgetpgrp(&terminal).ok()).is_some_and(|group| group == getpgrp())
}

/// True if Ctrl-C reaches the processes that this one started.
#[cfg(not(unix))]
pub(crate) fn is_in_foreground() -> bool {
    true
}

/// Listens for signals from its creation on.
pub(crate) struct Signals {
    #[cfg(unix)]
    all: Option<[tokio::signal::unix::Signal; 3]>,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn listen() -> Signals {
        use tokio::signal::unix::{SignalKind, signal};
        let all = || -> std::io::Result<_> {
            Ok([
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
            ])
        };
        Signals { all: all().ok() }
    }

    pub(crate) async fn next(&mut self) -> EndSignal {
        // Without listeners, signals have their default effect.
        let Some([interrupt, terminate, hangup]) = &mut self.all else { return std::future::pending().await };
        tokio::select! {
            _ = interrupt.recv() => EndSignal::Interrupt,
            _ = terminate.recv() => EndSignal::Terminate,
            _ = hangup.recv() => EndSignal::HangUp,
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn listen() -> Signals {
        Signals {}
    }

    pub(crate) async fn next(&mut self) -> EndSignal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        EndSignal::Interrupt
    }
}
