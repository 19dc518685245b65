//! What the system asks for: an end, in good order.

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// By Ctrl-C, which a terminal sends to everybody in front of it.
    Interrupt,
    /// By name.
    Terminate,
    /// The terminal has gone.
    HangUp,
}

/// Whether Ctrl-C at the terminal reaches us, and so whoever we have started as well: we are in front of it.
#[cfg(unix)]
pub(crate) fn are_in_front() -> bool {
    use rustix::{process::getpgrp, termios::tcgetpgrp};
    let terminal = std::fs::File::open("/dev/tty").ok();
    terminal.and_then(|terminal| tcgetpgrp(&terminal).ok()).is_some_and(|front| front == getpgrp())
}

/// Whether Ctrl-C at the terminal reaches us, and so whoever we have started as well.
#[cfg(not(unix))]
pub(crate) fn are_in_front() -> bool {
    true
}

/// Signals, from the moment on that they are listened for: before anybody is told that we are there.
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

    pub(crate) async fn next(&mut self) -> Asked {
        // Where they can't be listened for, they do what they always do.
        let Some([interrupt, terminate, hangup]) = &mut self.all else { return std::future::pending().await };
        tokio::select! {
            _ = interrupt.recv() => Asked::Interrupt,
            _ = terminate.recv() => Asked::Terminate,
            _ = hangup.recv() => Asked::HangUp,
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn listen() -> Signals {
        Signals {}
    }

    pub(crate) async fn next(&mut self) -> Asked {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Asked::Interrupt
    }
}
