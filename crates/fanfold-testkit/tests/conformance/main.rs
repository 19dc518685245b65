//! Conformance to the API of each provider: tests of the rules, of the scripted provider, and of folded requests.
//!
//! `FANFOLD_MANY=1` runs many more conversations, `FANFOLD_FAST=1` fewer.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and prints what it measured")]

mod rules; //    for each rule, a body that breaks only it and a similar one that keeps it
mod upstream; // replies and faults of the scripted provider
mod folded; //   folding breaks no rule
