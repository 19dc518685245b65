//! The command line of what is remembered.

use clap::{Args, Subcommand};

use crate::settings::StoreFlags;

pub(crate) const MEMORY_HELP: &str = "\
Two small files beside the store: MEMORY.md for the work (2,200 characters), USER.md for
you (1,375). You may edit them with anything; entries stand between lines that are only §.

Examples:
  fanfold memory
  fanfold memory add \"The tests need a running PostgreSQL\"
  fanfold memory replace PostgreSQL \"The tests start a PostgreSQL of their own\"
  fanfold memory remove \"of their own\"

A provider outside, named in [memory] of your settings, is asked and told by `fanfold serve`:
  fanfold memory check             start it, list its tools, and see how long it takes
  fanfold memory search \"staging port\"";

#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    pub(crate) command: Option<MemoryCommand>,
    /// The file about you instead of the one about the work
    #[arg(long, global = true)]
    pub(crate) user: bool,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// Remember one thing more
    Add {
        /// What to remember
        text: String,
    },
    /// Put another entry in the place of one
    Replace {
        /// Words that stand in that entry alone
        old: String,
        /// What comes instead
        new: String,
    },
    /// Forget an entry
    Remove {
        /// Words that stand in that entry alone
        words: String,
    },
    /// Show which provider is set, without asking it
    Status,
    /// Ask the provider, as a turn would
    Search {
        /// What to ask for
        words: String,
    },
    /// Try the provider: what it is, which tools are used, how long it takes
    Check {
        /// What to ask for
        #[arg(long, default_value = "memory")]
        words: String,
    },
}
