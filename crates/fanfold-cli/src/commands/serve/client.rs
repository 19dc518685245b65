//! A command that is started with its base URLs set, and ended with.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};

use super::codex::Codex;
use crate::commands::signals::{Asked, Signals, are_in_front};
use crate::failure::Failure;

/// A second Ctrl-C within so long is meant for a client that did not end at the first.
const AGAIN: Duration = Duration::from_secs(2);
/// The variables that clients of OpenAI's routes read their base URL from, the one that counts first.
pub(crate) const OPENAI_VARIABLES: [&str; 2] = ["OPENAI_BASE_URL", "OPENAI_API_BASE"];
/// Those of Anthropic's routes.
pub(crate) const ANTHROPIC_VARIABLES: [&str; 1] = ["ANTHROPIC_BASE_URL"];

/// Where a client finds the proxy.
pub(crate) struct Proxy<'a> {
    pub(crate) address: SocketAddr,
    /// What its own base URL of OpenAI's routes ends with.
    pub(crate) openai_path: &'a str,
}

impl Proxy<'_> {
    fn openai(&self) -> String {
        format!("http://{}{}", self.address, self.openai_path)
    }
}

/// Runs a command to its end and gives its exit code.
pub(crate) async fn run(
    program: &OsStr,
    arguments: &[OsString],
    codex: Option<&Codex>,
    proxy: Proxy<'_>,
    signals: &mut Signals,
) -> Result<ExitCode, Failure> {
    let mut command = Command::new(program);
    let flags = codex.map(|codex| codex.flags(&proxy.openai())).unwrap_or_default();
    command.args(flags).args(arguments);
    for (name, value) in variables(&proxy) {
        command.env(name, value);
    }
    let mut child = command.spawn().map_err(|error| {
        let message = format!("{} could not be started: {error}", program.display());
        Failure::new(message, "check its name, and that it may be run")
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
            asked = signals.next() => {
                // Ctrl-C at a terminal was sent to the client as well; a second one at once means it in earnest.
                let is_interrupt = asked == Asked::Interrupt;
                let is_again = interrupted.is_some_and(|last: Instant| last.elapsed() < AGAIN);
                let has_it_already = is_interrupt && !is_again && are_in_front();
                if is_interrupt {
                    interrupted = Some(Instant::now());
                }
                if !has_it_already {
                    pass_on(&child, asked);
                }
            }
        }
    }
}

/// The base URLs as clients read them.
fn variables(proxy: &Proxy<'_>) -> Vec<(&'static str, String)> {
    let root = format!("http://{}", proxy.address);
    let openai = OPENAI_VARIABLES.map(|name| (name, proxy.openai()));
    let others = ANTHROPIC_VARIABLES.map(|name| (name, root.clone()));
    openai.into_iter().chain(others).chain([("FANFOLD_PROXY", root.clone())]).collect()
}

/// Passes a signal on to the client.
#[cfg(unix)]
fn pass_on(child: &Child, asked: Asked) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let signal = match asked {
        Asked::Interrupt => Signal::INT,
        Asked::Terminate => Signal::TERM,
        Asked::HangUp => Signal::HUP,
    };
    if let Some(pid) = pid {
        // One that has just ended needs none.
        let _ = kill_process(pid, signal);
    }
}

/// Where there are no signals, what a console sends reaches the client by itself.
#[cfg(not(unix))]
fn pass_on(_child: &Child, _asked: Asked) {}

/// The exit code as a shell would give it.
fn code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return ExitCode::from(128u8.saturating_add(signal as u8));
    }
    ExitCode::from(status.code().map_or(1, |code| code as u8))
}
