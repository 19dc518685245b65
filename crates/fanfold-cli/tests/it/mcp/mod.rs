//! `fanfold mcp` as clients use it: the built program, real pipes, real sockets.

mod stored_session; // a store with a folded session
mod client; // a minimal JSON-RPC client
mod stdio; //  over stdin and stdout
mod tools; //  the answers of the tools
mod http; //   over HTTP, and access control
mod proxy_endpoint; // on the port of the proxy, next to its API
#[cfg(feature = "postgres")]
mod database; // with PostgreSQL
mod cost; //   the size of the tool definitions
mod speed; //  latency in a large store
#[cfg(unix)]
mod third_party_clients; // the Python package, the inspector, Claude Code, Codex
