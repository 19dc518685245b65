//! `fanfold memory`: what is remembered from one session to the next.

use std::path::{Path, PathBuf};

use fanfold_memory::{ChangeError, EntryChange, MemoryFile, MemoryFiles, entries, used_chars};
use serde_json::{Value, json};

use super::{Say, provider};
use crate::failure::Failure;
use crate::flags::{MemoryArgs, MemoryCommand};
use crate::settings::Options;
use crate::store;
use crate::terminal::{self, paint, style};

pub(crate) fn run(args: &MemoryArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    let memory = MemoryFiles::new(&folder(options)?);
    let book = if args.user { MemoryFile::User } else { MemoryFile::Notes };
    let Some(command) = &args.command else { return show(&memory, args) };
    let change = match command {
        MemoryCommand::Status => return provider::status(options, args.json),
        MemoryCommand::Search { words } => return provider::search(options, words, args.json),
        MemoryCommand::Check { words } => return provider::check(options, words, args.json),
        MemoryCommand::Add { text } => EntryChange::Add(text.clone()),
        MemoryCommand::Replace { old, new } => EntryChange::Replace { old: old.clone(), new: new.clone() },
        MemoryCommand::Remove { words } => EntryChange::Remove(words.clone()),
    };
    let changed = memory.change(book, &[change]).map_err(|error| failed(&error))?;
    if args.json {
        let told = json!({ "changed": changed.is_changed, "file": told(&memory, book, &changed.text) });
        return terminal::data(&format!("{told}\n"));
    }
    let what = if changed.is_changed { "" } else { "nothing to change: " };
    say.note(&format!("{what}{}\n", line(&memory, book, &changed.text)));
    Ok(())
}

/// Beside the store's file; for a server, where the files of profiles are.
pub(super) fn folder(options: &Options) -> Result<PathBuf, Failure> {
    let address = store::address(options)?;
    let parent = Path::new(&address).parent().map(Path::to_owned);
    match parent {
        Some(parent) if !address.contains("://") => Ok(parent),
        _ => store::folder(),
    }
}

fn show(memory: &MemoryFiles, args: &MemoryArgs) -> anyhow::Result<()> {
    let books = if args.user { &[MemoryFile::User][..] } else { &MemoryFile::ALL };
    let mut page = String::new();
    let mut all: Vec<Value> = Vec::new();
    for book in books {
        let text = memory.read(*book).map_err(|error| failed(&error))?;
        all.push(told(memory, *book, &text));
        page.push_str(&format!("{}\n", line(memory, *book, &text)));
        for entry in entries(&text) {
            page.push_str(&format!("  {}\n", entry.replace('\n', "\n  ")));
        }
    }
    if args.json { terminal::data(&format!("{}\n", Value::from(all))) } else { terminal::page(&page) }
}

fn line(memory: &MemoryFiles, book: MemoryFile, text: &str) -> String {
    let n = used_chars(text);
    let share = n * 100 / book.limit();
    let path = paint(style::DIM, memory.path(book).display().to_string());
    let size = format!("{n} of {} characters, {share} %", book.limit());
    let n_entries = entries(text).len();
    let entries = if n_entries == 1 { "entry" } else { "entries" };
    format!("{}: {n_entries} {entries}, {size}  {path}", book.file_name())
}

fn told(memory: &MemoryFiles, book: MemoryFile, text: &str) -> Value {
    json!({
        "file": book.file_name(),
        "path": memory.path(book),
        "entries": entries(text),
        "characters": used_chars(text),
        "limit": book.limit(),
    })
}

fn failed(error: &ChangeError) -> Failure {
    match error {
        ChangeError::Entry(refused) => Failure::new(refused.to_string(), refused.hint()),
        ChangeError::File { error: wrong, .. } if wrong.kind() == std::io::ErrorKind::InvalidData => {
            Failure::new(error.to_string(), "save it as UTF-8, or move it away to begin a new one")
        }
        ChangeError::File { what: "read", .. } => {
            Failure::new(error.to_string(), "check that it is a file and may be read")
        }
        ChangeError::File { .. } => Failure::new(error.to_string(), "check that the folder may be written"),
    }
}
