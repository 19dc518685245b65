//! Where the proxy listens, and where requests go.

use std::ffi::{OsStr, OsString};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;

use fanfold_proxy::{Style, Upstream, Upstreams};

use super::Say;
use super::client::{ANTHROPIC_VARIABLES, OPENAI_VARIABLES};
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
    let found = address(args.listen.as_deref().or(set).unwrap_or(usual))?;
    if !args.command.is_empty() && !found.ip().is_loopback() {
        let message = format!("a client that is started here can't use {found}: it has no token for it");
        let hint = "leave --listen out, or start the proxy and the client each on its own";
        return Err(Failure::new(message, hint));
    }
    Ok(found)
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
pub(crate) fn upstreams(args: &ServeArgs, options: &Options, say: Say) -> Result<Upstreams, Failure> {
    let set = &options.serve;
    let all = args.upstream.as_deref().or(set.upstream.as_deref());
    // A client that is started here may have been sent elsewhere already.
    let is_client_ours = !args.command.is_empty();
    let choose = |own: Option<&String>, names: &[&'static str], usual: &str| {
        let given = args.upstream.clone().or_else(|| own.cloned()).or_else(|| all.map(str::to_owned));
        let given = given.or_else(|| {
            let found = is_client_ours.then(|| Elsewhere::find(names, |name| std::env::var(name).ok()))??;
            if let Some(other) = found.other {
                let Elsewhere { name, address, .. } = &found;
                say.warn(&format!("{name} and {other} differ; requests go where {name} says: {address}"));
            }
            Some(found.address)
        });
        upstream(&given.unwrap_or_else(|| usual.to_owned()))
    };
    Ok(Upstreams {
        openai: choose(set.openai.as_ref(), &OPENAI_VARIABLES, OPENAI)?,
        anthropic: choose(set.anthropic.as_ref(), &ANTHROPIC_VARIABLES, ANTHROPIC)?,
        allowed: set.allowed.iter().map(|address| upstream(address)).collect::<Result<_, _>>()?,
        usual: usual(args.command.first().map(OsString::as_os_str)),
    })
}

/// Whose a request of a client is that says nothing about it: Claude Code first looks whether anybody is there.
fn usual(program: Option<&OsStr>) -> Style {
    let name = program.and_then(|program| Path::new(program).file_stem());
    if name.is_some_and(|name| name == "claude") { Style::Anthropic } else { Style::OpenAi }
}

/// Where the variables of a client send it.
#[derive(Debug, PartialEq, Eq)]
struct Elsewhere {
    /// The variable that counts.
    name: &'static str,
    address: String,
    /// Another variable, which says something else.
    other: Option<&'static str>,
}

impl Elsewhere {
    /// The first of the variables that is set.
    fn find(names: &[&'static str], variable: impl Fn(&str) -> Option<String>) -> Option<Elsewhere> {
        let value = |name: &str| variable(name).map(|value| value.trim().to_owned());
        let set =
            names.iter().filter_map(|name| Some((*name, value(name).filter(|value| !value.is_empty())?)));
        let mut set = set.collect::<Vec<_>>().into_iter();
        let (name, address) = set.next()?;
        let is_other = |value: &str| value.trim_end_matches('/') != address.trim_end_matches('/');
        let other = set.find(|(_, value)| is_other(value)).map(|(name, _)| name);
        Some(Elsewhere { name, address, other })
    }
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

    #[test]
    fn a_client_that_was_sent_elsewhere_still_goes_there() {
        let find = |set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            let found = Elsewhere::find(&OPENAI_VARIABLES, |name| value(name).map(str::to_owned));
            found.map(|found| (found.name, found.address, found.other))
        };
        let (base, older) = (OPENAI_VARIABLES[0], OPENAI_VARIABLES[1]);
        assert_eq!(find(&[]), None);
        assert_eq!(
            find(&[(base, ""), (older, "http://b/v1")]),
            Some((older, "http://b/v1".to_owned(), None))
        );
        assert_eq!(
            find(&[(base, "http://a/v1"), (older, "http://a/v1/")]),
            Some((base, "http://a/v1".to_owned(), None))
        );
        assert_eq!(
            find(&[(base, "http://a/v1"), (older, "http://b/v1")]),
            Some((base, "http://a/v1".to_owned(), Some(older)))
        );
    }
}
