//! Where the proxy listens, and where requests go.

use std::ffi::{OsStr, OsString};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;

use fanfold_proxy::{Upstream, Upstreams};
use fanfold_wire::Provider;

use super::Say;
use super::client::{ANTHROPIC_VARIABLES, OPENAI_VARIABLES};
use super::codex::{Codex, is_same};
use crate::failure::Failure;
use crate::flags::{DEFAULT_LISTEN, ServeArgs};
use crate::settings::Options;

/// Where to listen. With a command, on a port that the system chooses.
pub(crate) fn listen(args: &ServeArgs, options: &Options) -> Result<SocketAddr, Failure> {
    let usual = if args.command.is_empty() { DEFAULT_LISTEN } else { "127.0.0.1:0" };
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

/// Where requests go.
pub(crate) struct Chosen {
    pub(crate) upstreams: Upstreams,
    /// What the base URL of OpenAI's routes ends with that a client of ours is given: as its own does, so that it asks for
    /// the same paths.
    pub(crate) openai_path: String,
}

/// Where requests go: one address for all, one for each style, where a client of ours was sent already, or the providers'
/// own.
pub(crate) fn upstreams(
    args: &ServeArgs,
    options: &Options,
    codex: Option<&Codex>,
    say: Say,
) -> Result<Chosen, Failure> {
    let set = &options.serve;
    let all = args.upstream.as_deref().or(set.upstream.as_deref());
    // A client that is started here may have been sent elsewhere already.
    let is_client_ours = !args.command.is_empty();
    let given = |own: Option<&String>| {
        args.upstream.clone().or_else(|| own.cloned()).or_else(|| all.map(str::to_owned))
    };
    let elsewhere = |names: &[&'static str]| {
        let found = is_client_ours.then(|| Elsewhere::find(names, |name| std::env::var(name).ok()))??;
        if let Some(other) = found.other {
            let Elsewhere { name, address, .. } = &found;
            say.warn(&format!("{name} and {other} differ; requests go where {name} says: {address}"));
        }
        Some(found.address)
    };
    let openai = given(set.openai.as_ref());
    let its_own = || codex.and_then(|codex| codex.address.clone()).or_else(|| elsewhere(&OPENAI_VARIABLES));
    let its_own = if openai.is_some() { None } else { its_own() };
    let openai_path = its_own.as_deref().map_or("/v1", version).to_owned();
    let openai = openai.or(its_own);
    if let Some(codex) = codex {
        codex.tell(openai.as_deref().unwrap_or(provider("openai").address), say);
    }
    let anthropic = given(set.anthropic.as_ref()).or_else(|| elsewhere(&ANTHROPIC_VARIABLES));
    let mut upstreams = Upstreams::new(Upstream::default_of);
    for provider in Provider::all() {
        let address = match provider.name {
            "openai" => openai.clone(),
            "anthropic" => anthropic.clone(),
            _ => given(None),
        };
        if let Some(address) = address {
            upstreams.set(provider, upstream(&address)?);
        }
    }
    upstreams.allowed = set.allowed.iter().map(|address| upstream(address)).collect::<Result<_, _>>()?;
    upstreams.usual = usual(args.command.first().map(OsString::as_os_str));
    Ok(Chosen { upstreams, openai_path })
}

/// The version that an address ends with, with its slash; nothing if it ends otherwise.
fn version(address: &str) -> &str {
    let address = address.trim_end_matches('/');
    let path = address.split_once("://").map_or(address, |(_, rest)| rest);
    let last = path.rfind('/').map_or("", |at| &path[at..]);
    let is_version =
        last.strip_prefix("/v").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if is_version { last } else { "" }
}

/// Whose a request of a client is that says nothing about it: Claude Code first looks whether anybody is there.
fn usual(program: Option<&OsStr>) -> &'static Provider {
    let name = program.and_then(|program| Path::new(program).file_stem());
    provider(if name.is_some_and(|name| name == "claude") { "anthropic" } else { "openai" })
}

fn provider(name: &str) -> &'static Provider {
    Provider::find(name).expect("the registry has the provider")
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
        let is_other = |value: &str| !is_same(value, &address);
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
    let mut addresses: Vec<&str> = upstreams.of_providers().map(Upstream::address).collect();
    addresses.dedup();
    addresses.join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_claude_code_asks_is_anthropics() {
        let of = |program: &str| usual(Some(OsStr::new(program)));
        assert_eq!(
            [of("/usr/bin/claude"), of("codex"), usual(None)].map(|provider| provider.name),
            ["anthropic", "openai", "openai"]
        );
    }

    #[test]
    fn a_client_asks_for_the_paths_that_it_asked_for() {
        let of = |address: &str| version(address).to_owned();
        assert_eq!((of("https://a/v1"), of("https://a/api/v1beta/")), ("/v1".into(), "/v1beta".into()));
        assert_eq!((of("https://a/openai"), of("https://v1"), of("https://a/")), Default::default());
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
