//! `fanfold serve` between real clients and a scripted provider, over real sockets.
//!
//! `FANFOLD_MANY=1` sends more conversations. Tests that need node, npm's registry, python3 or pip are
//! skipped with a message where these are missing.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail, and reports why it was skipped"
)]

mod running_proxy; // a running proxy and its store
mod conversations; // conversations through the proxy: valid, verbatim, unchanged after a restart
mod lowered_limit; // a provider that lowers its limit
mod clients; // Codex and Claude Code
mod sdks; //    the Python packages of OpenAI and Anthropic
mod tasks; //   a task of forty steps with each package, in a small window
