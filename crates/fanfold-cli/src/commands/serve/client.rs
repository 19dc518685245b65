//! A command that is started with its base URLs set, and ended with.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use tokio::process::{Child, Command};

use super::signals::{Asked, Signals};
use crate::failure::Failure;

/// Runs a command to its end and gives its exit code.
pub(crate) async fn run(
    program: &OsStr,
    arguments: &[OsString],
    address: SocketAddr,
) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen();
    let mut command = Command::new(program);
    command.args(flags(program, address)).args(arguments);
    for (name, value) in variables(address) {
        command.env(name, value);
    }
    let mut child = command.spawn().map_err(|error| {
        let message = format!("{} could not be started: {error}", program.display());
        Failure::new(message, "check its name, and that it may be run")
    })?;
    loop {
        tokio::select! {
            ended = child.wait() => {
                let ended = ended.map_err(|error| {
                    Failure::new(format!("{} was lost: {error}", program.display()), "start it again")
                })?;
                return Ok(code(ended));
            }
            asked = signals.next() => pass_on(&child, asked),
        }
    }
}

/// The base URLs as clients read them.
fn variables(address: SocketAddr) -> [(&'static str, String); 4] {
    let root = format!("http://{address}");
    [
        ("ANTHROPIC_BASE_URL", root.clone()),
        ("OPENAI_BASE_URL", format!("{root}/v1")),
        ("OPENAI_API_BASE", format!("{root}/v1")),
        ("FANFOLD_PROXY", root),
    ]
}

/// Flags for a client that reads its base URL from no variable.
fn flags(program: &OsStr, address: SocketAddr) -> Vec<OsString> {
    let is_codex = Path::new(program).file_stem().is_some_and(|name| name == "codex");
    if !is_codex {
        return Vec::new();
    }
    vec!["-c".into(), format!("openai_base_url=\"http://{address}/v1\"").into()]
}

/// Passes a signal on that was meant for the client. What a terminal sends, it sends to both by itself.
fn pass_on(child: &Child, asked: Asked) {
    let (Some(pid), Some(name)) = (child.id(), asked.to_pass_on()) else { return };
    // The system's own program sends it: there is no call for that without unsafe code.
    let _ = std::process::Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status();
}

/// The exit code as a shell would give it.
fn code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return ExitCode::from(128u8.saturating_add(signal as u8));
    }
    ExitCode::from(status.code().map_or(1, |code| code as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codex_is_told_by_a_flag() {
        let address = "127.0.0.1:9".parse().expect("an address");
        assert_eq!(flags(OsStr::new("/usr/bin/codex"), address).len(), 2);
        assert!(flags(OsStr::new("claude"), address).is_empty());
    }
}
