//! Where the proxy listens, and where requests go.

use std::ffi::{OsStr, OsString};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;

use fanfold_proxy::{Style, Upstream, Upstreams};

use crate::failure::Failure;
use crate::flags::{ServeArgs, USUAL_LISTEN};
use crate::settings::Options;

/// OpenAI's own address.
const OPENAI: &str = "https://api.openai.com/v1";
/// Anthropic's own address.
const ANTHROPIC: &str = "https://api.anthropic.com";

/// Where to listen. With a command, on a port that the system chooses.
pub(crate) fn listen(args: &ServeArgs, options: &Options) -> Result<SocketAddr, Failure> {
    let usual = if args.command.is_empty() { USUAL_LISTEN } else { "127.0.0.1:0" };
    let set = options.serve.listen.as_deref().filter(|_| args.command.is_empty());
    address(args.listen.as_deref().or(set).unwrap_or(usual))
}

/// An address as people write it: a port of this machine, or a name and a port.
pub(crate) fn address(text: &str) -> Result<SocketAddr, Failure> {
    let whole = match text.trim().trim_start_matches(':').parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => text.trim().to_owned(),
    };
    let found = whole.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| {
        Failure::new(format!("`{text}` is no address to listen on"), "write a port, or 127.0.0.1:7744")
    })
}

/// Where requests go: one address for all, one for each style, or the providers' own.
pub(crate) fn upstreams(args: &ServeArgs, options: &Options) -> Result<Upstreams, Failure> {
    let set = &options.serve;
    // A client that is started here may have been sent elsewhere already.
    let variable = |name: &str| {
        let is_asked = !args.command.is_empty();
        is_asked.then(|| std::env::var(name).ok().filter(|value| !value.is_empty())).flatten()
    };
    let all = args.upstream.as_deref().or(set.upstream.as_deref());
    let choose = |own: Option<&String>, name: &str, usual: &str| {
        let given = args.upstream.clone().or_else(|| own.cloned()).or_else(|| all.map(str::to_owned));
        upstream(&given.or_else(|| variable(name)).unwrap_or_else(|| usual.to_owned()))
    };
    Ok(Upstreams {
        openai: choose(set.openai.as_ref(), "OPENAI_BASE_URL", OPENAI)?,
        anthropic: choose(set.anthropic.as_ref(), "ANTHROPIC_BASE_URL", ANTHROPIC)?,
        allowed: set.allowed.iter().map(|address| upstream(address)).collect::<Result<_, _>>()?,
        usual: usual(args.command.first().map(OsString::as_os_str)),
    })
}

/// Whose a request of a client is that says nothing about it: Claude Code first looks whether anybody is there.
fn usual(program: Option<&OsStr>) -> Style {
    let name = program.and_then(|program| Path::new(program).file_stem());
    if name.is_some_and(|name| name == "claude") { Style::Anthropic } else { Style::OpenAi }
}

fn upstream(address: &str) -> Result<Upstream, Failure> {
    Upstream::parse(address)
        .map_err(|error| Failure::new(error.to_string(), "write it as https://api.openai.com/v1"))
}

/// The upstreams as a person is told of them.
pub(crate) fn told(upstreams: &Upstreams) -> String {
    let (openai, anthropic) = (upstreams.openai.address(), upstreams.anthropic.address());
    if openai == anthropic { openai.to_owned() } else { format!("{openai} and {anthropic}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_claude_code_asks_is_anthropics() {
        let of = |program: &str| usual(Some(OsStr::new(program)));
        assert_eq!(
            (of("/usr/bin/claude"), of("codex"), usual(None)),
            (Style::Anthropic, Style::OpenAi, Style::OpenAi)
        );
    }
}
