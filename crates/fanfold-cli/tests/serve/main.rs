//! The proxy as its users have it: `fanfold serve` between clients and a provider, over real sockets.
//!
//! `FANFOLD_MANY=1` sends more conversations. What needs node, npm's registry, python3, pip or the script of the
//! provider says so and passes where it can't be made.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and says what it did not do")]

mod served; //  a proxy that runs, and its store
mod talks; //   conversations through it: valid, whole in their words, the same after a restart
mod lowered; // a provider that takes less all of a sudden
mod clients; // Codex and Claude Code
mod sdks; //    the Python packages of OpenAI and Anthropic
mod tasks; //   a task of forty steps with each of them, in a small window
