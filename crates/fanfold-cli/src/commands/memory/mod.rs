//! `fanfold memory`: notes that are kept across sessions.

mod provider; // an external provider of memory

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use fanfold_memory::{ChangeError, EntryChange, MemoryFile, MemoryFiles, entries, used_chars};
use serde_json::{Value, json};

pub(crate) use self::provider::{client, max_tokens};
use crate::failure::{Failure, Result};
use crate::settings::{Options, StoreFlags};
use crate::store;
use crate::terminal::{self, Reporter, Text, paint, style, text};

const HELP: &str = "\
Two small files next to the store: MEMORY.md about the work (2,200 characters), USER.md about
you (1,375). You may edit them with any editor; lines that contain only § separate entries.

Examples:
  fanfold memory
  fanfold memory add \"The tests need a running PostgreSQL\"
  fanfold memory replace PostgreSQL \"The tests start a PostgreSQL of their own\"
  fanfold memory remove \"of their own\"

`fanfold serve` also uses an external provider, if [memory] in your settings names one:
  fanfold memory check             start it, list its tools, and measure its latency
  fanfold memory search \"staging port\"";

/// Show or change notes that are kept across sessions
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    command: Option<MemoryCommand>,
    /// Use the file about you instead of the one about the work
    #[arg(long, global = true)]
    user: bool,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    pub(super) store: StoreFlags,
}

#[derive(Debug, Subcommand)]
enum MemoryCommand {
    /// Add an entry
    Add {
        /// Text of the entry
        text: String,
    },
    /// Replace an entry
    Replace {
        /// Text that occurs only in that entry
        old: String,
        /// Text of the new entry
        new: String,
    },
    /// Remove an entry
    Remove {
        /// Text that occurs only in that entry
        words: String,
    },
    /// Show the configured provider without contacting it
    Status,
    /// Search the provider, as a turn would
    Search {
        /// Search query
        words: String,
    },
    /// Test the provider: its name, its tools, its latency
    Check {
        /// Search query
        #[arg(long, default_value = "memory")]
        words: String,
    },
}

pub(crate) fn run(args: &MemoryArgs, options: &Options, reporter: Reporter) -> Result<()> {
    let memory = MemoryFiles::new(&folder(options)?);
    let file = if args.user { MemoryFile::User } else { MemoryFile::Notes };
    let Some(command) = &args.command else { return show(&memory, args) };
    let change = match command {
        MemoryCommand::Status => return provider::status(options, args.json),
        MemoryCommand::Search { words } => return provider::search(options, words, args.json),
        MemoryCommand::Check { words } => return provider::check(options, words, args.json),
        MemoryCommand::Add { text } => EntryChange::Add(text.clone()),
        MemoryCommand::Replace { old, new } => EntryChange::Replace { old: old.clone(), new: new.clone() },
        MemoryCommand::Remove { words } => EntryChange::Remove(words.clone()),
    };
    let changed = memory.change(file, &[change]).map_err(|error| change_failure(&error))?;
    if args.json {
        let file = file_json(&memory, file, &changed.text);
        return terminal::print_own_json(json!({ "changed": changed.is_changed, "file": file }));
    }
    let prefix = if changed.is_changed { "" } else { "nothing to change: " };
    reporter.line(text![prefix, file_line(&memory, file, &changed.text)]);
    Ok(())
}

/// The folder of the store's file; for a server, the folder of the profiles' files.
fn folder(options: &Options) -> Result<PathBuf> {
    let address = store::address(options)?;
    let parent = Path::new(&address).parent().map(Path::to_owned);
    match parent {
        Some(parent) if !address.contains("://") => Ok(parent),
        _ => store::folder(),
    }
}

fn show(memory: &MemoryFiles, args: &MemoryArgs) -> Result<()> {
    let files = if args.user { &[MemoryFile::User][..] } else { &MemoryFile::ALL };
    let mut page = Text::default();
    let mut all: Vec<Value> = Vec::new();
    for file in files {
        let text = memory.read(*file).map_err(|error| change_failure(&error))?;
        all.push(file_json(memory, *file, &text));
        page.push_line(file_line(memory, *file, &text));
        for entry in entries(&text) {
            page.push(format!("  {}\n", entry.replace('\n', "\n  ")));
        }
    }
    if args.json { terminal::print_own_json(Value::from(all)) } else { terminal::print_page(page) }
}

fn file_line(memory: &MemoryFiles, file: MemoryFile, text: &str) -> Text {
    let n = used_chars(text);
    let share = n * 100 / file.limit();
    let path = paint(style::DIM, memory.path(file).display().to_string());
    let size = format!("{n} of {} characters, {share} %", file.limit());
    let n_entries = entries(text).len();
    let entries = if n_entries == 1 { "entry" } else { "entries" };
    text![format!("{}: {n_entries} {entries}, {size}  ", file.file_name()), path]
}

fn file_json(memory: &MemoryFiles, file: MemoryFile, text: &str) -> Value {
    json!({
        "file": file.file_name(),
        "path": memory.path(file),
        "entries": entries(text),
        "characters": used_chars(text),
        "limit": file.limit(),
    })
}

fn change_failure(error: &ChangeError) -> Failure {
    match error {
        ChangeError::Entry(error) => Failure::new(error.to_string(), error.hint()),
        ChangeError::File { error: wrong, .. } if wrong.kind() == std::io::ErrorKind::InvalidData => {
            Failure::new(error.to_string(), "save it as UTF-8, or move it away to start a new one")
        }
        ChangeError::File { action: "read", .. } => {
            Failure::new(error.to_string(), "check that it is a readable file")
        }
        ChangeError::File { .. } => Failure::new(error.to_string(), "check the permissions of the folder"),
    }
}
