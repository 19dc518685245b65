//! Runs a client with its base URLs set.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use fanfold_wire::Provider;
use tokio::process::{Child, Command};

use super::addresses::ClientPaths;
use super::codex::Codex;
use crate::failure::{Failure, Result};
use crate::terminal::signals::{EndSignal, Signals, is_in_foreground};

/// A second Ctrl-C within this time ends a client that ignored the first.
const REPEAT_INTERVAL: Duration = Duration::from_secs(2);

/// The address of the proxy for a client.
pub(super) struct ProxyAddress<'a> {
    pub(super) address: SocketAddr,
    pub(super) paths: &'a ClientPaths,
}

impl ProxyAddress<'_> {
    /// The base URL of the routes of a provider.
    fn base(&self, provider: &Provider) -> Option<String> {
        let (_, path) = self.paths.iter().find(|(known, _)| *known == provider)?;
        Some(format!("http://{}{path}", self.address))
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
    let flags =
        codex.and_then(|codex| Some(codex.flags(&proxy.base(Codex::provider())?))).unwrap_or_default();
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
    let of_providers = proxy.paths.iter().flat_map(|(provider, path)| {
        let base = format!("{root}{path}");
        provider.address_variables.iter().map(move |name| (*name, base.clone()))
    });
    of_providers.chain([("FANFOLD_PROXY", root.clone())]).collect()
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
