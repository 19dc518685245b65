//! Settings of a memory provider: its address, its tools and its limits.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

/// An external memory provider.
#[derive(Debug, Clone)]
pub struct MemoryProvider {
    /// Where it runs.
    pub address: ProviderAddress,
    /// Which of its tools are called.
    pub tools: ToolSelection,
    /// Enables offers of folded text. By default only a server with plain HTTP routes gets them: an MCP server would
    /// store them like any other memory.
    pub offers: Option<bool>,
}

impl MemoryProvider {
    /// A provider with default settings.
    pub fn new(address: ProviderAddress) -> MemoryProvider {
        MemoryProvider { address, tools: ToolSelection::default(), offers: None }
    }

    /// Returns whether folded text is offered to the provider.
    pub(crate) fn accepts_offers(&self) -> bool {
        self.offers.unwrap_or(matches!(self.address, ProviderAddress::Http { .. }))
    }
}

/// Where a provider runs, and its protocol.
#[derive(Debug, Clone)]
pub enum ProviderAddress {
    /// A program that speaks MCP on stdin and stdout.
    Program {
        /// The program.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Environment variables in addition to the inherited ones.
        environment: Vec<(String, String)>,
    },
    /// An MCP server over HTTP.
    Mcp {
        /// Its URL.
        url: String,
        /// Its bearer token.
        key: Option<MemoryKey>,
    },
    /// An HTTP server with the routes listed in the guide's page on memory.
    Http {
        /// The URL that its routes are relative to.
        url: String,
        /// Its bearer token.
        key: Option<MemoryKey>,
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

/// A URL without user name and password; a URL that has them is cut to its host.
fn without_credentials(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://…@{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

/// A bearer token. It is never printed or stored.
#[derive(Clone, PartialEq, Eq)]
pub struct MemoryKey(pub String);

impl fmt::Debug for MemoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Which tools of an MCP server are called. A missing name is chosen from the tools that the server lists.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolSelection {
    /// The tool to search with.
    pub search: Option<String>,
    /// The argument that takes the query.
    pub search_argument: Option<String>,
    /// The tool to write with.
    pub write: Option<String>,
    /// The argument that takes the text.
    pub write_argument: Option<String>,
    /// Arguments added to every call, if the tool has them.
    pub fixed_arguments: Map<String, Value>,
}

/// Time and size limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Time that a turn waits for recalled text.
    pub deadline: Duration,
    /// Timeout of one provider call outside of a turn.
    pub call: Duration,
    /// How long `stop` waits for queued work.
    pub shutdown: Duration,
    /// Maximum number of queued jobs.
    pub queue: usize,
    /// Idle time after which a conversation has ended.
    pub idle: Duration,
    /// Maximum number of active conversations. Above it the longest idle one is ended.
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
        let key = Some(MemoryKey("made-up".to_owned()));
        let address = ProviderAddress::Http { url: "http://me:made-up@127.0.0.1:9/x".to_owned(), key };
        let shown = format!("{address}");
        assert_eq!(shown, "http://…@127.0.0.1:9/x");
        let ProviderAddress::Http { key, .. } = address else { unreachable!() };
        assert_eq!(format!("{key:?}"), "Some(Key(…))");
    }
}
