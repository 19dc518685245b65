//! What each API accepts: the checker of its rules, the provider that goes by it, and that folding breaks none of them.
//!
//! `FANFOLD_MANY=1` draws all conversations, `FANFOLD_FAST=1` few of them.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and says what it measured")]

mod rules; //    each rule has a body that breaks it alone, and one that just keeps it
mod upstream; // the scripted provider answers as each API does, and fails as it is told
mod folded; //   folding breaks no rule
