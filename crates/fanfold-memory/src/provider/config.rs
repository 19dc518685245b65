//! What a person says of the provider: where it is, which of its tools are used, and how long it may take.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

/// A provider of memory.
#[derive(Debug, Clone)]
pub struct MemoryProvider {
    /// Where it is.
    pub address: ProviderAddress,
    /// Which of its tools are used.
    pub tools: ToolSelection,
    /// Whether it is offered what is folded. Where nothing is said, only one with plain routes is: a server of tools
    /// would keep it like anything else.
    pub offers: Option<bool>,
}

impl MemoryProvider {
    /// A provider with all that is usual.
    pub fn new(place: ProviderAddress) -> MemoryProvider {
        MemoryProvider { address: place, tools: ToolSelection::default(), offers: None }
    }

    /// Whether it is offered what is folded.
    pub(crate) fn wants_offers(&self) -> bool {
        self.offers.unwrap_or(matches!(self.address, ProviderAddress::Http { .. }))
    }
}

/// Where a provider is, and how it is spoken to.
#[derive(Debug, Clone)]
pub enum ProviderAddress {
    /// A program that speaks MCP on stdin and stdout.
    Program {
        /// The program.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Variables of its environment, beside those there are.
        environment: Vec<(String, String)>,
    },
    /// An MCP server over HTTP.
    Mcp {
        /// Its address.
        url: String,
        /// What it wants to know first.
        key: Option<ProviderKey>,
    },
    /// A server with the few routes that the guide's page on memory describes.
    Http {
        /// What its routes stand below.
        url: String,
        /// What it wants to know first.
        key: Option<ProviderKey>,
    },
}

impl fmt::Display for ProviderAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProviderAddress::Program { program, .. } => write!(f, "{program}"),
            ProviderAddress::Mcp { url, .. } | ProviderAddress::Http { url, .. } => {
                write!(f, "{}", without_credentials(url))
            }
        }
    }
}

/// An address as it may be shown: one with a password in it is cut down to its host.
fn without_credentials(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://…@{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

/// A key, which is never written down.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderKey(pub String);

impl fmt::Debug for ProviderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Which tools of an MCP server are used. What is left out is found among those that it has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolSelection {
    /// The tool that is searched with.
    pub search: Option<String>,
    /// The argument that says for what.
    pub search_argument: Option<String>,
    /// The tool that is written with.
    pub write: Option<String>,
    /// The argument that says what.
    pub write_argument: Option<String>,
    /// Arguments that both are always given, as far as they have them.
    pub fixed_arguments: Map<String, Value>,
}

/// How long things may take, and how much of them there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    /// How long a turn waits for what is recalled.
    pub deadline: Duration,
    /// How long one call of the provider may take, beside what else is done.
    pub call: Duration,
    /// How long work that is left is waited for at the end.
    pub shutdown: Duration,
    /// How many pieces of work may wait.
    pub queue: usize,
    /// After how long without a word a conversation has ended.
    pub idle: Duration,
    /// How many conversations go on at once; where there are more, the one that was silent longest has ended.
    pub conversations: usize,
}

impl Default for MemoryLimits {
    fn default() -> MemoryLimits {
        MemoryLimits {
            deadline: Duration::from_millis(800),
            call: Duration::from_secs(30),
            shutdown: Duration::from_secs(5),
            queue: 64,
            idle: Duration::from_secs(30 * 60),
            conversations: 256,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_passwords_are_not_shown() {
        let key = Some(ProviderKey("made-up".to_owned()));
        let place = ProviderAddress::Http { url: "http://me:made-up@127.0.0.1:9/x".to_owned(), key };
        let shown = format!("{place}");
        assert_eq!(shown, "http://…@127.0.0.1:9/x");
        let ProviderAddress::Http { key, .. } = place else { unreachable!() };
        assert_eq!(format!("{key:?}"), "Some(Key(…))");
    }
}
