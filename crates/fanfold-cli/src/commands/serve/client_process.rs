//! Runs a client with its base URLs set.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};

use super::codex::Codex;
use crate::failure::{Failure, Result};
use crate::terminal::signals::{EndSignal, Signals, is_in_foreground};

/// A second Ctrl-C within this time ends a client that ignored the first.
const REPEAT_INTERVAL: Duration = Duration::from_secs(2);
/// The variables for the base URL of OpenAI's routes, in order of precedence.
pub(super) const OPENAI_VARIABLES: [&str; 2] = ["OPENAI_BASE_URL", "OPENAI_API_BASE"];
/// The variables for the base URL of Anthropic's routes.
pub(super) const ANTHROPIC_VARIABLES: [&str; 1] = ["ANTHROPIC_BASE_URL"];

/// The address of the proxy for a client.
pub(super) struct ProxyAddress<'a> {
    pub(super) address: SocketAddr,
    /// The path of the base URL of OpenAI's routes.
    pub(super) openai_path: &'a str,
}

impl ProxyAddress<'_> {
    fn openai(&self) -> String {
        format!("http://{}{}", self.address, self.openai_path)
    }
}

/// Runs a client to its end and returns its exit code.
pub(super) async fn run(
    program: &OsStr,
    arguments: &[OsString],
    codex: Option<&Codex>,
    proxy: ProxyAddress<'_>,
    signals: &mut Signals,
) -> Result<ExitCode> {
    let mut command = Command::new(program);
    let flags = codex.map(|codex| codex.flags(&proxy.openai())).unwrap_or_default();
    command.args(flags).args(arguments);
    for (name, value) in variables(&proxy) {
        command.env(name, value);
    }
    let mut child = command.spawn().map_err(|error| {
        let message = format!("{} could not be started: {error}", program.display());
        Failure::new(message, "check its name, and that it is executable")
    })?;
    let mut interrupted = None;
    loop {
        tokio::select! {
            ended = child.wait() => {
                let ended = ended.map_err(|error| {
                    Failure::new(format!("{} was lost: {error}", program.display()), "start it again")
                })?;
                return Ok(code(ended));
            }
            signal = signals.next() => {
                // The terminal has sent Ctrl-C to the client as well; a quick second one is forwarded anyway.
                let is_interrupt = signal == EndSignal::Interrupt;
                let is_repeated = interrupted.is_some_and(|last: Instant| last.elapsed() < REPEAT_INTERVAL);
                let was_received = is_interrupt && !is_repeated && is_in_foreground();
                if is_interrupt {
                    interrupted = Some(Instant::now());
                }
                if !was_received {
                    forward(&child, signal);
                }
            }
        }
    }
}

/// The variables that set the base URLs of clients.
fn variables(proxy: &ProxyAddress<'_>) -> Vec<(&'static str, String)> {
    let root = format!("http://{}", proxy.address);
    let openai = OPENAI_VARIABLES.map(|name| (name, proxy.openai()));
    let others = ANTHROPIC_VARIABLES.map(|name| (name, root.clone()));
    openai.into_iter().chain(others).chain([("FANFOLD_PROXY", root.clone())]).collect()
}

/// Forwards a signal to the client.
#[cfg(unix)]
fn forward(child: &Child, signal: EndSignal) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let signal = match signal {
        EndSignal::Interrupt => Signal::INT,
        EndSignal::Terminate => Signal::TERM,
        EndSignal::HangUp => Signal::HUP,
    };
    if let Some(pid) = pid {
        // Fails if the client has just ended.
        let _ = kill_process(pid, signal);
    }
}

/// Without signals, the console reaches the client itself.
#[cfg(not(unix))]
fn forward(_child: &Child, _signal: EndSignal) {}

/// The exit code that a shell would report.
fn code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return ExitCode::from(128u8.saturating_add(signal as u8));
    }
    ExitCode::from(status.code().map_or(1, |code| code as u8))
}
