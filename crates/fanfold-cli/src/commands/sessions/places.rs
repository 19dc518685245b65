//! Where a session points: back, forth again, and to marked places.

use fanfold_engine::{Back, Engine, OpError, Step};
use fanfold_store::SessionId;
use serde_json::{Value, json};

use super::{Say, done};
use crate::flags::{OneArgs, RewindArgs, WordsArgs};
use crate::settings::Options;
use crate::store::{engine, engine_to_read, failed, find};
use crate::terminal::{self, count};

/// Marks a place; without a name, lists the marks.
pub(super) fn checkpoint(args: &WordsArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    if args.words.is_empty() {
        return list(args, options);
    }
    let engine = engine(options)?;
    let row = find(&engine, &args.session)?;
    let name = args.words.join(" ");
    engine.checkpoint(&row.id, &name).map_err(|error| failed(&error))?;
    let (id, name) = (&row.id.0, fanfold_engine::clean_title(&name));
    let json = || json!({ "session": id, "checkpoint": name, "messages": row.n_messages });
    done(args.json.then(json), "", say)
}

fn list(args: &WordsArgs, options: &Options) -> anyhow::Result<()> {
    let engine = engine_to_read(options)?;
    let id = find(&engine, &args.session)?.id;
    let places = engine.checkpoints(&id).map_err(|error| failed(&error))?;
    if args.json {
        let all: Value = places
            .iter()
            .map(|place| {
                json!({ "name": place.name, "auto": place.is_auto, "messages": place.n_messages, "at": place.at.0 })
            })
            .collect();
        return terminal::data(&format!("{:#}\n", json!({ "session": id.0, "checkpoints": all })));
    }
    let mut page = String::new();
    for place in places {
        let auto = if place.is_auto { "  (by itself)" } else { "" };
        page.push_str(&format!("{}  {:>6} messages  {}{auto}\n", place.at, place.n_messages, place.name));
    }
    terminal::page(&page)
}

/// Goes to a mark.
pub(super) fn restore(args: &WordsArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    let one = One { name: &args.session, is_json: args.json };
    moved(&one, options, say, |engine, id| engine.restore(id, &args.words.join(" ")))
}

/// Goes back.
pub(super) fn rewind(args: &RewindArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    let back = args.to.map_or(Back::Turns(args.turns), Back::To);
    let one = One { name: &args.session, is_json: args.json };
    moved(&one, options, say, |engine, id| engine.rewind(id, back))
}

/// Takes the last move back.
pub(super) fn redo(args: &OneArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    moved(&One { name: &args.session, is_json: args.json }, options, say, Engine::redo)
}

/// Which session is moved, and how that is told.
struct One<'a> {
    name: &'a str,
    is_json: bool,
}

fn moved(
    one: &One<'_>,
    options: &Options,
    say: Say,
    go: impl FnOnce(&Engine, &SessionId) -> Result<Step, OpError>,
) -> anyhow::Result<()> {
    let engine = engine(options)?;
    let id = find(&engine, one.name)?.id;
    let Step { n_before, n_after, n_undone } = go(&engine, &id).map_err(|error| failed(&error))?;
    let undone = match n_undone {
        0 => String::new(),
        n => format!("; {} undone, and what they stand for is sent again", count(n, "fold")),
    };
    let words = format!("{id}: {n_after} messages, before {n_before}{undone}\n");
    let json = || json!({ "session": id.0, "messages": n_after, "messages_before": n_before, "folds_undone": n_undone });
    done(one.is_json.then(json), &words, say)
}
