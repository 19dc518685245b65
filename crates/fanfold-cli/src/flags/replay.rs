//! The flags of what tells of money: replay and prices.

use std::path::PathBuf;

use clap::Args;
use fanfold_core::Cadence;

use crate::settings::Size;

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Files or directories of recorded conversations; without any, your own sessions
    pub(crate) paths: Vec<PathBuf>,
    /// Your own sessions, too: those of Claude Code and Codex
    #[arg(long)]
    pub(crate) sessions: bool,
    /// Policies, or `all` [default: fanfold]
    #[arg(short, long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) policy: Vec<String>,
    /// Windows in tokens [default: 16k; for sessions 32k 64k 128k 200k]
    #[arg(short, long, value_name = "TOKENS", num_args = 1.., value_delimiter = ',')]
    pub(crate) window: Vec<Size>,
    /// What it is folded for: cost (when that pays), window (only when it no longer fits)
    #[arg(long, value_name = "NAME", value_parser = Cadence::NAMES, hide_possible_values = true)]
    pub(crate) cadence: Option<String>,
    /// Use a conversation at a window if it is so many times as long [default: 1.5; for sessions 0]
    #[arg(long, value_name = "RATIO")]
    pub(crate) min_ratio: Option<f64>,
    /// Only conversations of so many tokens
    #[arg(long, value_name = "TOKENS")]
    pub(crate) least: Option<Size>,
    /// At most so many conversations of each file, chosen by a hash of their ids
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<usize>,
    /// Only the fifth of the conversations that is kept aside from tuning
    #[arg(long)]
    pub(crate) only_aside: bool,
    /// All but that fifth
    #[arg(long, conflicts_with = "only_aside")]
    pub(crate) without_aside: bool,
    /// A list of texts that models know anyway, one per line
    #[arg(long, value_name = "FILE")]
    pub(crate) known: Option<PathBuf>,
    /// What all are charged at: a row of `fanfold prices` [default: by the model of each]
    #[arg(long, value_name = "NAME")]
    pub(crate) prices: Option<String>,
    /// How many conversations at once [default: one for each core]
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Tables for each source, too
    #[arg(long)]
    pub(crate) by_source: bool,
    /// Each fold with what it won and what it cost
    #[arg(long)]
    pub(crate) receipts: bool,
    /// All figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw recall against tokens and cost, a panel for each source
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) picture: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PricesArgs {
    /// A model: which row holds for it, and why
    pub(crate) model: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(super) const REPLAY_HELP: &str = "\
No model is called: before each recorded reply the policy makes the view that
would have been sent, and the reply itself tells what it needed of it.

Files are told apart by what is in them: one record {\"id\", \"source\", \"messages\",
\"tools\"} per line, a request body or list of messages in any format, a session of
Claude Code or of Codex. Packed ones (.gz) are unpacked, directories are walked.
Name them first: --policy and --window take all that follows.

Examples:
  fanfold replay                                your own sessions, in money
  fanfold replay runs.jsonl.gz --policy all --window 16k 32k
  fanfold replay runs/ --without-aside --by-source --picture runs.svg";
