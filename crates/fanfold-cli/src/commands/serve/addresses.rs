//! Where the proxy listens, and where it sends requests.

use std::ffi::{OsStr, OsString};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;

use fanfold_proxy::{Upstream, Upstreams};
use fanfold_wire::{Provider, is_version};

use super::ServeArgs;
use super::codex::{Codex, is_same_address};
use crate::failure::{Failure, Result};
use crate::settings::{DEFAULT_LISTEN, Options};
use crate::terminal::Reporter;

/// The address to listen on. With a client to start, a free port.
pub(super) fn listen(args: &ServeArgs, options: &Options) -> Result<SocketAddr> {
    let default = if args.command.is_empty() { DEFAULT_LISTEN } else { "127.0.0.1:0" };
    let set = options.serve.listen.as_deref().filter(|_| args.command.is_empty());
    let address = parse_address(args.listen.as_deref().or(set).unwrap_or(default))?;
    if !args.command.is_empty() && !address.ip().is_loopback() {
        let message = format!("the client cannot use {address}, because it has no token");
        let hint = "leave out --listen, or start the proxy and the client separately";
        return Err(Failure::new(message, hint));
    }
    Ok(address)
}

/// Parses an address to listen on: a port of this machine, or a host and a port.
pub(in crate::commands) fn parse_address(text: &str) -> Result<SocketAddr> {
    let address = match text.trim().trim_start_matches(':').parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => text.trim().to_owned(),
    };
    let found = address.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| {
        Failure::new(format!("`{text}` is not an address to listen on"), "write a port, or 127.0.0.1:7744")
    })
}

/// Where requests are sent.
pub(super) struct SelectedUpstreams {
    pub(super) upstreams: Upstreams,
    pub(super) client_paths: ClientPaths,
}

/// The path of the base address for a client, by provider. It ends like that of the client's own address, so that the
/// paths of requests stay the same.
pub(super) type ClientPaths = Vec<(&'static Provider, String)>;

/// Selects upstreams: one for all requests, one for each provider, the client's own, or the provider's default.
pub(super) fn upstreams(
    args: &ServeArgs,
    options: &Options,
    codex: Option<&Codex>,
    reporter: Reporter,
) -> Result<SelectedUpstreams> {
    let set = &options.serve;
    let mut upstreams = Upstreams::new(Upstream::default_of);
    let mut client_paths = ClientPaths::new();
    for provider in Provider::all() {
        let codex = codex.filter(|_| provider == Codex::provider());
        let given = args.upstream.as_deref().or(set.upstream_of(provider)).or(set.upstream.as_deref());
        let client_own = match given {
            Some(_) => None,
            None => codex
                .and_then(|codex| codex.address.clone())
                .or_else(|| address_in_variables(args, provider, reporter)),
        };
        client_paths.push((provider, client_path(provider, client_own.as_deref()).to_owned()));
        let address = given.or(client_own.as_deref());
        if let Some(codex) = codex {
            codex.report_conflicts(address.unwrap_or(provider.address), reporter);
        }
        if let Some(address) = address {
            upstreams.set(provider, upstream(address)?);
        }
    }
    upstreams.allowed = set.allowed.iter().map(|address| upstream(address)).collect::<Result<_, _>>()?;
    upstreams.default_provider = default_provider(args.command.first().map(OsString::as_os_str));
    Ok(SelectedUpstreams { upstreams, client_paths })
}

/// The address of a provider in the variables of the client, if one is started.
fn address_in_variables(args: &ServeArgs, provider: &'static Provider, reporter: Reporter) -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|_| !args.command.is_empty());
    let ClientUpstream { name, address, other } = ClientUpstream::find(provider.address_variables, variable)?;
    if let Some(other) = other {
        reporter.warn(&format!("{name} and {other} differ; requests go to the address in {name}: {address}"));
    }
    Some(address)
}

/// The path of the base address for a client whose own base address is given, if it has one.
fn client_path<'a>(provider: &Provider, client_own: Option<&'a str>) -> &'a str {
    match client_own {
        Some(address) if !provider.client_path.is_empty() => version(address),
        _ => provider.client_path,
    }
}

/// The version at the end of an address, with its slash, or an empty string.
fn version(address: &str) -> &str {
    let address = address.trim_end_matches('/');
    let path = address.split_once("://").map_or(address, |(_, rest)| rest);
    let last = path.rfind('/').map_or("", |at| &path[at..]);
    if last.strip_prefix('/').is_some_and(is_version) { last } else { "" }
}

/// The provider of requests that do not show theirs, such as the first request of Claude Code.
fn default_provider(program: Option<&OsStr>) -> &'static Provider {
    let name = program.and_then(|program| Path::new(program).file_stem()).and_then(OsStr::to_str);
    Provider::from_program(name.unwrap_or_default())
}

/// The upstream in the variables of a client.
#[derive(Debug, PartialEq, Eq)]
struct ClientUpstream {
    /// The variable that takes precedence.
    name: &'static str,
    address: String,
    /// Another variable with another address.
    other: Option<&'static str>,
}

impl ClientUpstream {
    /// The first of the variables that is set.
    fn find(names: &[&'static str], variable: impl Fn(&str) -> Option<String>) -> Option<ClientUpstream> {
        let value = |name: &str| variable(name).map(|value| value.trim().to_owned());
        let set =
            names.iter().filter_map(|name| Some((*name, value(name).filter(|value| !value.is_empty())?)));
        let mut set = set.collect::<Vec<_>>().into_iter();
        let (name, address) = set.next()?;
        let is_other = |value: &str| !is_same_address(value, &address);
        let other = set.find(|(_, value)| is_other(value)).map(|(name, _)| name);
        Some(ClientUpstream { name, address, other })
    }
}

fn upstream(address: &str) -> Result<Upstream> {
    Upstream::parse(address)
        .map_err(|error| Failure::new(error.to_string(), "write it as https://api.openai.com/v1"))
}

/// The upstreams, for messages.
pub(super) fn describe(upstreams: &Upstreams) -> String {
    let mut addresses: Vec<&str> = upstreams.of_providers().map(Upstream::address).collect();
    addresses.dedup();
    addresses.join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_provider_of_claude_is_anthropic() {
        let name = |program: &str| default_provider(Some(OsStr::new(program)));
        assert_eq!(
            [name("/usr/bin/claude"), name("codex"), default_provider(None)].map(|provider| provider.name),
            ["anthropic", "openai", "openai"]
        );
    }

    #[test]
    fn version_is_taken_from_the_address() {
        let path = |address: &str| version(address).to_owned();
        assert_eq!((path("https://a/v1"), path("https://a/api/v1beta/")), ("/v1".into(), "/v1beta".into()));
        assert_eq!((path("https://a/openai"), path("https://v1"), path("https://a/")), Default::default());
    }

    #[test]
    fn upstream_is_taken_from_client_variables() {
        let variables = Provider::usual().address_variables;
        let find = |set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            let found = ClientUpstream::find(variables, |name| value(name).map(str::to_owned));
            found.map(|found| (found.name, found.address, found.other))
        };
        let (base, older) = (variables[0], variables[1]);
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
