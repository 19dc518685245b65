//! `fanfold sessions`: what is kept, and what is done with it.

mod list; //     which there are, and all about one
mod places; //   back, forth again, and to marked places
mod line; //     forks, rotations, ends
mod export; //   written down
mod sharegpt; // as ShareGPT
mod import; //   brought here
mod hermes; //   from a Hermes state database

use fanfold_engine::Retention;
use fanfold_store::{Millis, SessionId};
use serde_json::{Value, json};

use super::Say;
use crate::flags::{DeleteArgs, PinArgs, PruneArgs, SessionsCommand, WordsArgs};
use crate::settings::Options;
use crate::store::{engine, failed, find};
use crate::terminal::{self, count};

pub(crate) fn run(command: &SessionsCommand, options: &Options, say: Say) -> anyhow::Result<()> {
    match command {
        SessionsCommand::List(args) => list::list(args, options),
        SessionsCommand::Show(args) => list::show(args, options),
        SessionsCommand::Size(args) => list::size(args, options),
        SessionsCommand::Export(args) => export::run(args, options, say),
        SessionsCommand::Import(args) => import::run(args, options, say),
        SessionsCommand::Title(args) => title(args, options, say),
        SessionsCommand::Goal(args) => goal(args, options, say),
        SessionsCommand::Pin(args) => pin(args, options, say),
        SessionsCommand::Checkpoint(args) => places::checkpoint(args, options, say),
        SessionsCommand::Restore(args) => places::restore(args, options, say),
        SessionsCommand::Rewind(args) => places::rewind(args, options, say),
        SessionsCommand::Redo(args) => places::redo(args, options, say),
        SessionsCommand::Fork(args) => line::fork(args, options),
        SessionsCommand::Rotate(args) => line::rotate(args, options),
        SessionsCommand::Resume(args) => line::resume(args, options),
        SessionsCommand::End(args) => line::end(args, options, say),
        SessionsCommand::Delete(args) => delete(args, options, say),
        SessionsCommand::Prune(args) => prune(args, options, say),
    }
}

/// Tells what was done: as JSON where that is wanted, else in words for a person, if there are any.
fn done(json: Option<Value>, words: &str, say: Say) -> anyhow::Result<()> {
    match json {
        Some(json) => terminal::data(&format!("{json:#}\n")),
        None => {
            say.note(words);
            Ok(())
        }
    }
}

fn title(args: &WordsArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    let engine = engine(options)?;
    let id = find(&engine, &args.session)?.id;
    let title = engine.set_title(&id, &args.words.join(" ")).map_err(|error| failed(&error))?;
    let words = match &title {
        Some(title) => format!("{id} is called {title:?}\n"),
        None => format!("{id} has no title\n"),
    };
    done(args.json.then(|| json!({ "session": id.0, "title": title })), &words, say)
}

fn goal(args: &WordsArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    let engine = engine(options)?;
    let id = find(&engine, &args.session)?.id;
    engine.set_goal(&id, &args.words.join(" ")).map_err(|error| failed(&error))?;
    let goal = engine.row(&id).map_err(|error| failed(&error))?.goal;
    done(args.json.then(|| json!({ "session": id.0, "goal": goal })), "", say)
}

fn pin(args: &PinArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    let engine = engine(options)?;
    let id = find(&engine, &args.session)?.id;
    for message in &args.messages {
        engine.pin(&id, *message, !args.off).map_err(|error| failed(&error))?;
    }
    let pins = || engine.standing(&id).map(|standing| standing.pins).map_err(|error| failed(&error));
    let json = match args.json {
        true => Some(json!({ "session": id.0, "pins": pins()? })),
        false => None,
    };
    done(json, "", say)
}

fn delete(args: &DeleteArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    let engine = engine(options)?;
    // All are found before the first goes: numbers of the list change then.
    let found: Result<Vec<_>, _> = args.sessions.iter().map(|name| find(&engine, name)).collect();
    let (mut gone, mut n_messages) = (Vec::new(), 0);
    for row in found? {
        let pruned = engine.delete(&row.id).map_err(|error| failed(&error))?;
        if !args.json {
            let messages = count(pruned.n_messages as usize, "message");
            say.note(&format!("{}: forgotten, and {messages} with it\n", row.id));
        }
        n_messages += pruned.n_messages;
        gone.push(row.id);
    }
    done(args.json.then(|| forgotten(&gone, n_messages)), "", say)
}

fn forgotten(sessions: &[SessionId], n_messages: u64) -> Value {
    let ids: Vec<&str> = sessions.iter().map(|id| &*id.0).collect();
    json!({ "forgotten": ids, "messages": n_messages })
}

fn prune(args: &PruneArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    const DAY_MS: i64 = 86_400_000;
    let engine = engine(options)?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let before = Millis(now.as_millis() as i64 - i64::from(args.days) * DAY_MS);
    let retention = Retention { before, source: args.source.clone(), only_ended: args.ended };
    if args.dry_run {
        let rows = engine.outdated(&retention).map_err(|error| failed(&error))?;
        let ids: Vec<String> = rows.into_iter().map(|row| row.id.0).collect();
        return match args.json {
            true => terminal::data(&format!("{:#}\n", json!({ "outdated": ids }))),
            false => terminal::data(&ids.iter().map(|id| format!("{id}\n")).collect::<String>()),
        };
    }
    let pruned = engine.prune(&retention).map_err(|error| failed(&error))?;
    let (n_sessions, n_messages) = (pruned.sessions.len(), pruned.n_messages);
    let (sessions, messages) = (count(n_sessions, "session"), count(n_messages as usize, "message"));
    let words = format!("forgotten: {sessions}, {messages}\n");
    done(args.json.then(|| forgotten(&pruned.sessions, n_messages)), &words, say)
}
