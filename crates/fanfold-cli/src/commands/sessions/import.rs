//! Imports sessions: exports of fanfold, request bodies, sessions of other agents.

use std::path::{Path, PathBuf};

use clap::Args;
use fanfold_engine::{Import, ImportOutcome, ImportedIds, SessionEngine, decode};
use fanfold_replay::{ConversationOrigin, FileKind, Record, SourceConversation, detect_kind, read_whole};
use fanfold_store::{Millis, Relation, SessionId};

use super::hermes;
use crate::failure::{Failure, Result, not_decoded, not_read};
use crate::files::input::{self, Input};
use crate::settings::Options;
use crate::store;
use crate::terminal::{Reporter, count};

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Exports of fanfold, request bodies, ShareGPT, a Hermes state database, sessions of Claude Code or Codex
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Source of the sessions, as shown by `list` [default: by the kind of file]
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
}

pub(super) fn run(args: &ImportArgs, options: &Options, reporter: Reporter) -> Result<()> {
    let engine = store::open(options)?;
    let mut importer = Importer::new(&engine, args.source.as_deref());
    for path in &args.files {
        let n_before = importer.n_all();
        // An unreadable file does not prevent the import of the others.
        if let Err(failure) = importer.add_file(path, reporter) {
            importer.failures.push(failure.to_string());
        } else if importer.n_all() == n_before {
            reporter.warn(&format!("{} contains no conversation", path.display()));
        }
    }
    importer.add_postponed();
    let Importer { n_new, n_known, n_grown, failures, .. } = importer;
    let grown = if n_grown > 0 { format!(", {n_grown} continued") } else { String::new() };
    reporter.line(format!("{} imported{grown}, {n_known} known already", count(n_new, "session")));
    if failures.is_empty() {
        return Ok(());
    }
    let hint = "check these files; everything else was imported";
    Err(Failure::new(failures.join("\n  and "), hint))
}

/// Imports sessions and counts them.
struct Importer<'a> {
    engine: &'a SessionEngine,
    /// The source for all sessions, if given.
    source: Option<&'a str>,
    n_new: usize,
    n_known: usize,
    n_grown: usize,
    /// Sessions of subagents whose parents are not imported yet.
    postponed: Vec<Import>,
    failures: Vec<String>,
}

impl<'a> Importer<'a> {
    fn new(engine: &'a SessionEngine, source: Option<&'a str>) -> Importer<'a> {
        Importer {
            engine,
            source,
            n_new: 0,
            n_known: 0,
            n_grown: 0,
            postponed: Vec::new(),
            failures: Vec::new(),
        }
    }

    fn add_file(&mut self, path: &Path, reporter: Reporter) -> Result<()> {
        if hermes::is_database(path).map_err(|error| not_read(path, &error))? {
            return self.add_hermes_database(path);
        }
        let input = input::read(path, reporter)?;
        if SessionEngine::is_line(&input.text) {
            self.add_exported_lines(&input);
            return Ok(());
        }
        match detect_kind(&input.text) {
            Some(FileKind::Body) | None => self.add(body(&input.text, &input.name, self.source)?).map(drop),
            Some(FileKind::ShareGpt) => {
                self.add_sharegpt_lines(&input);
                Ok(())
            }
            Some(kind @ (FileKind::ClaudeCode | FileKind::Codex | FileKind::Records)) => {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                self.add_program_sessions(&input, kind, &name, reporter)
            }
        }
    }

    /// Imports a session and returns its id here.
    fn add(&mut self, import: Import) -> Result<SessionId> {
        let imported = self.engine.import(import)?;
        self.count(&imported);
        Ok(imported.id().clone())
    }

    fn add_hermes_database(&mut self, path: &Path) -> Result<()> {
        let mut brought = ImportedIds::default();
        for import in hermes::read(path)? {
            let foreign_id = import.id.clone();
            let source = self.source.map_or(import.source.clone(), str::to_owned);
            // A session here that happens to have the id of the parent is not that parent.
            let parent = import.parent.clone();
            let parent = parent.and_then(|(parent, how)| Some((brought.get(&parent)?.clone(), how)));
            let id = self.add(Import { source, parent, ..import })?;
            if let Some(foreign_id) = foreign_id {
                brought.insert(foreign_id, id);
            }
        }
        Ok(())
    }

    fn add_exported_lines(&mut self, input: &Input) {
        let mut brought = ImportedIds::default();
        for (place, line) in lines(input) {
            match self.engine.import_line_with(line, &mut brought) {
                Ok(imported) => self.count(&imported),
                Err(error) => self.failures.push(format!("{place}: {error}")),
            }
        }
    }

    fn add_sharegpt_lines(&mut self, input: &Input) {
        for (place, line) in lines(input) {
            let added = body(line, &place, self.source).and_then(|import| self.add(import));
            self.failures.extend(added.err().map(|failure| failure.to_string()));
        }
    }

    fn add_program_sessions(
        &mut self,
        input: &Input,
        kind: FileKind,
        name: &str,
        reporter: Reporter,
    ) -> Result<()> {
        let contents = read_whole(&input.text, name);
        if contents.n_bad_lines > 0 {
            let lines = count(contents.n_bad_lines, "line");
            reporter.warn(&format!("{}: skipped {lines} that could not be read", input.name));
        }
        let (mut previous, mut brought) = (None, ImportedIds::default());
        for conversation in contents.conversations {
            let mut import = program_session(conversation, kind, (&input.name, self.source), previous.take());
            if let Some((parent, Relation::Subagent)) = &mut import.parent {
                // The parent may have another id here, or be in another file.
                let id = brought.get(parent).unwrap_or(parent).clone();
                if self.engine.store().session(&id)?.is_none() {
                    self.postponed.push(import);
                    continue;
                }
                *parent = id;
            }
            let foreign_id = import.id.clone();
            let id = self.add(import)?;
            if let Some(foreign_id) = foreign_id {
                brought.insert(foreign_id, id.clone());
            }
            previous = Some(id);
        }
        Ok(())
    }

    /// Imports the sessions of subagents that came before their parents.
    fn add_postponed(&mut self) {
        for import in std::mem::take(&mut self.postponed) {
            let added = self.add(import);
            self.failures.extend(added.err().map(|failure| failure.to_string()));
        }
    }

    fn count(&mut self, imported: &ImportOutcome) {
        match imported {
            ImportOutcome::New(_) => self.n_new += 1,
            ImportOutcome::Unchanged(_) => self.n_known += 1,
            ImportOutcome::Extended(_) => self.n_grown += 1,
        }
    }

    fn n_all(&self) -> usize {
        self.n_new + self.n_known + self.n_grown + self.postponed.len() + self.failures.len()
    }
}

/// The lines of a file that are not blank, and where they are.
fn lines(input: &Input) -> impl Iterator<Item = (String, &str)> {
    let lines = input.text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(n, line)| (format!("{}: line {}", input.name, n + 1), line))
}

/// A session that another program has written to a file.
fn program_session(
    conversation: SourceConversation,
    kind: FileKind,
    (file, source): (&str, Option<&str>),
    previous: Option<SessionId>,
) -> Import {
    let SourceConversation { record, id, title, origin } = conversation;
    let default_source = match (kind, &origin) {
        (_, Some(ConversationOrigin::SubagentOf(_))) => "subagent",
        (FileKind::ClaudeCode, _) => "claude-code",
        (FileKind::Codex, _) => "codex",
        (FileKind::Records | FileKind::ShareGpt | FileKind::Body, _) => record.source.as_str(),
    };
    let source = source.unwrap_or(default_source).to_owned();
    let parent = match origin {
        Some(ConversationOrigin::Continuation) => previous.map(|previous| (previous, Relation::Rotation)),
        Some(ConversationOrigin::SubagentOf(id)) => Some((SessionId(id), Relation::Subagent)),
        None => None,
    };
    let at = |i: usize| record.times.get(i).map(|seconds| Millis((seconds * 1000.0) as i64));
    let messages = record.messages.iter().enumerate();
    Import {
        id: id.map(SessionId),
        source,
        format: Record::format().to_string(),
        messages: messages.map(|(i, message)| (message.get().to_owned(), at(i))).collect(),
        model: record.model.clone(),
        title,
        parent,
        from: format!("{file} {}", record.id),
        ..Import::default()
    }
}

/// A request body, a list of messages, or a message per line.
fn body(text: &str, name: &str, source: Option<&str>) -> Result<Import> {
    let (conversation, _) = decode(text, None).map_err(|error| not_decoded(name, &error))?;
    Ok(Import {
        source: source.unwrap_or("import").to_owned(),
        format: conversation.format().to_string(),
        messages: conversation.messages().map(|message| (message.to_owned(), None)).collect(),
        body: Some(text.to_owned()),
        model: conversation.model().map(str::to_owned),
        from: name.to_owned(),
        ..Import::default()
    })
}
