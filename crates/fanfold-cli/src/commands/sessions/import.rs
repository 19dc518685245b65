//! Sessions brought here: our own exports, request bodies, other agents' sessions.

use std::path::Path;

use fanfold_engine::{Engine, Import, Imported, decode};
use fanfold_replay::{Kind, kind_of, read};
use fanfold_store::Millis;

use super::hermes;
use crate::commands::Say;
use crate::failure::{Failure, not_decoded, not_read};
use crate::flags::ImportArgs;
use crate::input;
use crate::settings::Options;
use crate::store::{engine, failed};
use crate::terminal::count;

/// What was brought here.
#[derive(Default)]
struct Counts {
    n_new: usize,
    n_known: usize,
}

pub(crate) fn run(args: &ImportArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    let engine = engine(options)?;
    let mut counts = Counts::default();
    for path in &args.files {
        let n_before = counts.n_new + counts.n_known;
        file(&engine, path, args.source.as_deref(), &mut counts)?;
        if counts.n_new + counts.n_known == n_before {
            say.warn(&format!("{} holds no conversation", path.display()));
        }
    }
    let Counts { n_new, n_known } = counts;
    let brought = count(n_new, "session");
    say.note(&format!("{brought} brought here, {n_known} known already\n"));
    Ok(())
}

fn file(engine: &Engine, path: &Path, source: Option<&str>, counts: &mut Counts) -> anyhow::Result<()> {
    if hermes::is_database(path).map_err(|error| not_read(path, &error))? {
        for import in hermes::read(path)? {
            let source = source.map_or(import.source.clone(), str::to_owned);
            counts.take(&engine.import(Import { source, ..import }).map_err(|error| failed(&error))?);
        }
        return Ok(());
    }
    let input = input::read(path)?;
    if Engine::is_line(&input.text) {
        for line in input.text.lines().filter(|line| !line.trim().is_empty()) {
            counts.take(&engine.import_line(line).map_err(|error| failed(&error))?);
        }
        return Ok(());
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match kind_of(&input.text) {
        Some(Kind::Body) | None => {
            let import = body(&input.text, &input.name, source)?;
            counts.take(&engine.import(import).map_err(|error| failed(&error))?);
        }
        Some(kind) => {
            for record in read(&input.text, &name) {
                let usual = match kind {
                    Kind::ClaudeCode => "claude-code",
                    Kind::Codex => "codex",
                    Kind::Records | Kind::Body => record.source.as_str(),
                };
                let at = |i: usize| record.times.get(i).map(|seconds| Millis((seconds * 1000.0) as i64));
                let messages = record.messages.iter().enumerate();
                let import = Import {
                    source: source.unwrap_or(usual).to_owned(),
                    format: "chat".to_owned(),
                    messages: messages.map(|(i, message)| (message.get().to_owned(), at(i))).collect(),
                    model: record.model.clone(),
                    from: format!("{} {}", input.name, record.id),
                    ..Import::default()
                };
                counts.take(&engine.import(import).map_err(|error| failed(&error))?);
            }
        }
    }
    Ok(())
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
        }
    }
}
