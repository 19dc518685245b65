//! `fanfold sessions`: what is kept, and what is done with it.

mod list; //     which there are, and all about one
mod export; //   written down
mod sharegpt; // as ShareGPT
mod import; //   brought here
mod hermes; //   from a Hermes state database

use fanfold_engine::{Back, Engine, OpError, Retention, Step};
use fanfold_store::Millis;

use super::Say;
use crate::flags::{PruneArgs, SessionsCommand, WordsArgs};
use crate::settings::Options;
use crate::store::{engine, engine_to_read, failed, find};
use crate::terminal;

pub(crate) fn run(command: &SessionsCommand, options: &Options, say: Say) -> anyhow::Result<()> {
    match command {
        SessionsCommand::List(args) => list::list(args, options),
        SessionsCommand::Show(args) => list::show(args, options),
        SessionsCommand::Size(args) => list::size(args, options),
        SessionsCommand::Export(args) => export::run(args, options, say),
        SessionsCommand::Import(args) => import::run(args, options, say),
        SessionsCommand::Title(args) => title(args, options, say),
        SessionsCommand::Goal(args) => {
            let engine = engine(options)?;
            let id = find(&engine, &args.session)?.id;
            done(engine.set_goal(&id, &args.words.join(" ")))
        }
        SessionsCommand::Pin(args) => {
            let engine = engine(options)?;
            let id = find(&engine, &args.session)?.id;
            args.messages.iter().try_for_each(|message| done(engine.pin(&id, *message, !args.off)))
        }
        SessionsCommand::Checkpoint(args) if args.words.is_empty() => checkpoints(args, options),
        SessionsCommand::Checkpoint(args) => {
            let engine = engine(options)?;
            let id = find(&engine, &args.session)?.id;
            done(engine.checkpoint(&id, &args.words.join(" ")))
        }
        SessionsCommand::Restore(args) => {
            moved(&args.session, options, say, |engine, id| engine.restore(id, &args.words.join(" ")))
        }
        SessionsCommand::Rewind(args) => {
            let back = args.to.map_or(Back::Turns(args.turns), Back::To);
            moved(&args.session, options, say, |engine, id| engine.rewind(id, back))
        }
        SessionsCommand::Redo(args) => moved(&args.session, options, say, Engine::redo),
        SessionsCommand::Fork(args) => {
            let engine = engine(options)?;
            let id = find(&engine, &args.session)?.id;
            let fork = engine.fork(&id, args.at, args.title.as_deref()).map_err(|error| failed(&error))?;
            terminal::data(&format!("{fork}\n"))
        }
        SessionsCommand::Rotate(args) => {
            let engine = engine(options)?;
            let id = find(&engine, &args.session)?.id;
            let next = engine.rotate(&id).map_err(|error| failed(&error))?;
            terminal::data(&format!("{next}\n"))
        }
        SessionsCommand::Resume(args) => {
            let engine = engine_to_read(options)?;
            let id = find(&engine, &args.session)?.id;
            let newest = engine.newest(&id).map_err(|error| failed(&error))?;
            terminal::data(&format!("{}\n", newest.id))
        }
        SessionsCommand::Delete(args) => {
            let engine = engine(options)?;
            // All are found before the first goes: numbers of the list change then.
            let found: Result<Vec<_>, _> = args.sessions.iter().map(|name| find(&engine, name)).collect();
            for row in found? {
                let pruned = engine.delete(&row.id).map_err(|error| failed(&error))?;
                say.note(&format!("{}: forgotten, and {} messages with it\n", row.id, pruned.n_messages));
            }
            Ok(())
        }
        SessionsCommand::Prune(args) => prune(args, options, say),
    }
}

fn done(result: Result<(), OpError>) -> anyhow::Result<()> {
    result.map_err(|error| failed(&error).into())
}

fn title(args: &WordsArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    let engine = engine(options)?;
    let id = find(&engine, &args.session)?.id;
    let title = engine.set_title(&id, &args.words.join(" ")).map_err(|error| failed(&error))?;
    say.note(&match title {
        Some(title) => format!("{id} is called {title:?}\n"),
        None => format!("{id} has no title\n"),
    });
    Ok(())
}

fn checkpoints(args: &WordsArgs, options: &Options) -> anyhow::Result<()> {
    let engine = engine_to_read(options)?;
    let id = find(&engine, &args.session)?.id;
    let mut page = String::new();
    for place in engine.checkpoints(&id).map_err(|error| failed(&error))? {
        let auto = if place.is_auto { "  (by itself)" } else { "" };
        page.push_str(&format!("{}  {:>6} messages  {}{auto}\n", place.at, place.n_messages, place.name));
    }
    terminal::page(&page)
}

fn moved(
    name: &str,
    options: &Options,
    say: Say,
    go: impl FnOnce(&Engine, &fanfold_store::SessionId) -> Result<Step, OpError>,
) -> anyhow::Result<()> {
    let engine = engine(options)?;
    let id = find(&engine, name)?.id;
    let step = go(&engine, &id).map_err(|error| failed(&error))?;
    say.note(&format!("{id}: {} messages, before {}\n", step.n_after, step.n_before));
    Ok(())
}

fn prune(args: &PruneArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    const DAY_MS: i64 = 86_400_000;
    let engine = engine(options)?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let before = Millis(now.as_millis() as i64 - i64::from(args.days) * DAY_MS);
    let retention = Retention { before, source: args.source.clone(), only_ended: args.ended };
    if args.dry_run {
        let rows = engine.outdated(&retention).map_err(|error| failed(&error))?;
        let lines: String = rows.iter().map(|row| format!("{}\n", row.id)).collect();
        return terminal::data(&lines);
    }
    let pruned = engine.prune(&retention).map_err(|error| failed(&error))?;
    let (n_sessions, n_messages) = (pruned.sessions.len(), pruned.n_messages);
    say.note(&format!("{n_sessions} sessions and {n_messages} messages are forgotten\n"));
    Ok(())
}
