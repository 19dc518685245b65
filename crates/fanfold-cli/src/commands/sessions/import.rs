//! Sessions brought here: our own exports, request bodies, other agents' sessions.

use std::path::Path;

use fanfold_engine::{Brought, Engine, Import, Imported, decode};
use fanfold_replay::{ConversationOrigin, FileKind, SourceConversation, detect_kind, read_whole};
use fanfold_store::{Millis, Relation, SessionId};

use super::hermes;
use crate::commands::Say;
use crate::failure::{Failure, not_decoded, not_read};
use crate::flags::ImportArgs;
use crate::input;
use crate::settings::Options;
use crate::store::{engine, failed, store_failed};
use crate::terminal::count;

/// What was brought here.
#[derive(Default)]
struct Counts {
    n_new: usize,
    n_known: usize,
    n_grown: usize,
    /// What works for a session that was not here yet.
    later: Vec<Import>,
    /// What could not be, and why.
    failures: Vec<String>,
}

pub(crate) fn run(args: &ImportArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    let engine = engine(options)?;
    let mut counts = Counts::default();
    for path in &args.files {
        let n_before = counts.n_all();
        // One that can't be read does not keep the others away.
        if let Err(failure) = file(&engine, path, args.source.as_deref(), &mut counts, say) {
            counts.failures.push(failure.to_string());
        } else if counts.n_all() == n_before {
            say.warn(&format!("{} holds no conversation", path.display()));
        }
    }
    for import in std::mem::take(&mut counts.later) {
        match engine.import(import) {
            Ok(imported) => counts.take(&imported),
            Err(error) => counts.failures.push(error.to_string()),
        }
    }
    let Counts { n_new, n_known, n_grown, ref failures, .. } = counts;
    let grown = if n_grown > 0 { format!(", {n_grown} gone on") } else { String::new() };
    say.note(&format!("{} brought here{grown}, {n_known} known already\n", count(n_new, "session")));
    match failures.as_slice() {
        [] => Ok(()),
        [one] => Err(Failure::new(one.clone(), "check the file; all else is brought here").into()),
        [first, rest @ ..] => {
            let message = format!("{first}\n  and {}", rest.join("\n  and "));
            Err(Failure::new(message, "check these files; all else is brought here").into())
        }
    }
}

fn file(
    engine: &Engine,
    path: &Path,
    source: Option<&str>,
    counts: &mut Counts,
    say: Say,
) -> anyhow::Result<()> {
    if hermes::is_database(path).map_err(|error| not_read(path, &error))? {
        let mut brought = Brought::default();
        for import in hermes::read(path)? {
            let there = import.id.clone();
            let source = source.map_or(import.source.clone(), str::to_owned);
            // A session here that has the id of its parent there is not that parent.
            let parent = import.parent.clone();
            let parent = parent.and_then(|(parent, how)| Some((brought.get(&parent)?.clone(), how)));
            let imported =
                engine.import(Import { source, parent, ..import }).map_err(|error| failed(&error))?;
            if let Some(there) = there {
                brought.note(there, imported.id().clone());
            }
            counts.take(&imported);
        }
        return Ok(());
    }
    let input = input::read(path)?;
    if Engine::is_line(&input.text) {
        let mut brought = Brought::default();
        for (n, line) in input.text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            match engine.import_line_of(line, &mut brought) {
                Ok(imported) => counts.take(&imported),
                Err(error) => counts.failures.push(format!("{}: line {}: {error}", input.name, n + 1)),
            }
        }
        return Ok(());
    }
    match detect_kind(&input.text) {
        Some(FileKind::Body) | None => {
            let import = body(&input.text, &input.name, source)?;
            counts.take(&engine.import(import).map_err(|error| failed(&error))?);
        }
        Some(FileKind::ShareGpt) => {
            for (n, line) in input.text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                let place = format!("{}: line {}", input.name, n + 1);
                match body(line, &place, source) {
                    Ok(import) => counts.take(&engine.import(import).map_err(|error| failed(&error))?),
                    Err(failure) => counts.failures.push(failure.to_string()),
                }
            }
        }
        Some(kind @ (FileKind::ClaudeCode | FileKind::Codex | FileKind::Records)) => {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let contents = read_whole(&input.text, &name);
            if contents.n_bad_lines > 0 {
                let lines = count(contents.n_bad_lines, "line");
                say.warn(&format!("{}: {lines} could not be read, and left out", input.name));
            }
            let (mut before, mut brought) = (None, Brought::default());
            for conversation in contents.conversations {
                let mut import = of_program(conversation, kind, (&input.name, source), before.take());
                if let Some((parent, Relation::Subagent)) = &mut import.parent {
                    // The one that it works for may be called otherwise here, or come with another file.
                    let here = brought.get(parent).unwrap_or(parent).clone();
                    if engine.store().session(&here).map_err(|error| store_failed(&error))?.is_none() {
                        counts.later.push(import);
                        continue;
                    }
                    *parent = here;
                }
                let there = import.id.clone();
                let imported = engine.import(import).map_err(|error| failed(&error))?;
                if let Some(there) = there {
                    brought.note(there, imported.id().clone());
                }
                before = Some(imported.id().clone());
                counts.take(&imported);
            }
        }
    }
    Ok(())
}

/// A conversation that another program has written down in a file.
fn of_program(
    told: SourceConversation,
    kind: FileKind,
    (file, source): (&str, Option<&str>),
    before: Option<SessionId>,
) -> Import {
    let SourceConversation { record, id, title, origin } = told;
    let usual = match kind {
        FileKind::ClaudeCode => "claude-code",
        FileKind::Codex => "codex",
        FileKind::Records | FileKind::ShareGpt | FileKind::Body => record.source.as_str(),
    };
    let usual = if matches!(origin, Some(ConversationOrigin::SubagentOf(_))) { "subagent" } else { usual };
    let parent = match origin {
        Some(ConversationOrigin::Continuation) => before.map(|before| (before, Relation::Rotation)),
        Some(ConversationOrigin::SubagentOf(id)) => Some((SessionId(id), Relation::Subagent)),
        None => None,
    };
    let at = |i: usize| record.times.get(i).map(|seconds| Millis((seconds * 1000.0) as i64));
    let messages = record.messages.iter().enumerate();
    Import {
        id: id.map(SessionId),
        source: source.unwrap_or(usual).to_owned(),
        format: "chat".to_owned(),
        messages: messages.map(|(i, message)| (message.get().to_owned(), at(i))).collect(),
        model: record.model.clone(),
        title,
        parent,
        from: format!("{file} {}", record.id),
        ..Import::default()
    }
}

/// A request body, a list of messages, or a message per line.
fn body(text: &str, name: &str, source: Option<&str>) -> Result<Import, Failure> {
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

impl Counts {
    fn take(&mut self, imported: &Imported) {
        match imported {
            Imported::New(_) => self.n_new += 1,
            Imported::Known(_) => self.n_known += 1,
            Imported::Grown(_) => self.n_grown += 1,
        }
    }

    fn n_all(&self) -> usize {
        self.n_new + self.n_known + self.n_grown + self.later.len() + self.failures.len()
    }
}
