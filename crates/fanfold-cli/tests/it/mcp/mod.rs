//! `fanfold mcp` as clients use it: the built program, real pipes, real sockets.

mod stored_session; //   a store with something folded in it
mod client; // JSON-RPC by hand
mod stdio; //  over stdin and stdout
mod tools; //  what each tool answers
mod http; //   over HTTP, and who may come in
mod inside; // inside the proxy, beside the API for programs
#[cfg(feature = "postgres")]
mod database; // on a PostgreSQL server
mod cost; //   what a model pays for the tools
mod speed; //  how long it takes in a large store
#[cfg(unix)]
mod others; // clients of others: the Python package, the inspector, Claude Code, Codex
