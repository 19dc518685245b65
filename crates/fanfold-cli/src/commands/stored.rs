//! `fold`, `recall`, `show` and `inspect` on a session that is kept.

use std::path::Path;

use fanfold_core::{Feedback, Handle, Notice, Session, Tokens, print_entries, print_view, thousands};
use fanfold_engine::{Answer, Ask, Engine, Followed, Left, Note, Noted, OpenError, Trouble, Wishes, decode};
use fanfold_proxy::meter::level_to_tell;
use fanfold_store::SessionId;
use serde_json::json;

use super::fold::write_receipts;
use super::{Leaves, Say, recall, summarise};
use crate::choose::{self, Asked, terms_of};
use crate::failure::{Failure, not_decoded};
use crate::flags::{FoldArgs, InspectArgs, RecallArgs, ShowArgs};
use crate::settings::Options;
use crate::terminal::{self, count, paint, style};
use crate::{explain, input, output, store};

/// Keeps a conversation in a session and folds it.
pub(crate) fn fold(args: &FoldArgs, name: &str, options: &Options, say: Say) -> anyhow::Result<()> {
    let engine = store::engine(options)?;
    let id = session_to_fold(&engine, name)?;
    let (body, source) = match &args.file {
        None => (kept_body(&engine, &id)?, id.to_string()),
        Some(path) => {
            if path == Path::new("-") {
                say.waits();
            }
            let input = input::read(path)?;
            (input.text, input.name)
        }
    };
    let format = choose::format(options)?;
    let (conversation, _) = decode(&body, format).map_err(|error| not_decoded(&source, &error))?;
    let terms = choose::terms(options, Asked { model: conversation.model() })?;
    for assumed in &terms.assumed {
        say.note(&format!("{} {assumed}\n", paint(style::DIM, "note:")));
    }
    super::check_pins(&args.pin, conversation.messages().len())?;
    let repairs = conversation.repairs().to_vec();
    drop(conversation);
    let answer =
        engine.request(&Ask { pins: &args.pin, is_by_hand: args.now, ..Ask::new(&id, &body, &terms, "cli") });
    let answer = match args.summarise && matches!(answer.left, Left::Whole | Left::Folded(_)) {
        true => summarised(&engine, &Ask::new(&id, &body, &terms, "cli"), answer.n_new, options, say)?,
        false => answer,
    };
    let leaves = match &answer.left {
        Left::Folded(_) => Leaves::Folded,
        Left::Whole | Left::AsItCame(_) => Leaves::AsItCame,
    };
    super::tell_repairs(&repairs, leaves, say);
    tell(&engine, &id, args, &answer, say)?;
    match &args.output {
        Some(path) => Ok(output::write_file(path, answer.body.as_bytes())?),
        None => terminal::data(&answer.body),
    }
}

/// Has a summary written of what was just folded, and folds it by hand.
fn summarised(
    engine: &Engine,
    ask: &Ask<'_>,
    n_new: usize,
    options: &Options,
    say: Say,
) -> anyhow::Result<Answer> {
    let (ended, sizes) = summarise::kept(engine, ask.session, options, say)?;
    let answer = engine.request(ask);
    engine.look(ask.session, |followed| sizes.tell(followed, &ended, say));
    Ok(Answer { n_new, ..answer })
}

fn session_to_fold(engine: &Engine, name: &str) -> Result<SessionId, Failure> {
    match name {
        "new" => Ok(engine.new_id()),
        name => match engine.find(name) {
            Ok(row) => Ok(row.id),
            // A name that nobody has is taken as the id of a new session, so that a script can choose its own.
            Err(fanfold_engine::OpError::Store(fanfold_store::StoreError::NoSession(id))) => Ok(id),
            Err(error) => Err(store::failed(&error)),
        },
    }
}

fn kept_body(engine: &Engine, id: &SessionId) -> Result<String, Failure> {
    engine.body(id).map_err(|error| store::failed(&error))
}

/// Tells what was kept and folded. What fits nowhere is a failure.
fn tell(engine: &Engine, id: &SessionId, args: &FoldArgs, answer: &Answer, say: Say) -> anyhow::Result<()> {
    let kept = if answer.is_kept {
        format!("{} kept", count(answer.n_new, "new message"))
    } else {
        "not kept".to_owned()
    };
    say.note(&format!("{} {id}: {kept}\n", paint(style::DIM, "session")));
    let told = engine.look(id, |followed| -> anyhow::Result<()> {
        if args.explain {
            terminal::say(&explain::session(&followed.session));
            let is_told = |notice: &&Notice| !matches!(notice, Notice::Pressure(_));
            answer.notices.iter().filter(is_told).for_each(|notice| terminal::say(&explain::notice(notice)));
        }
        tell_folded(&followed.session, args, answer, say);
        match &args.receipt {
            Some(path) => write_receipts(path, followed),
            None => Ok(()),
        }
    });
    told.transpose()?;
    match &answer.left {
        Left::Whole | Left::Folded(_) => Ok(()),
        Left::AsItCame(Trouble::Overflow(overflow)) => Err(Failure::from(&**overflow).into()),
        Left::AsItCame(trouble) => {
            say.warn(&format!("{trouble}: the conversation leaves as it came. {}", trouble.hint()));
            Ok(())
        }
    }
}

/// Tells what became of it, and how full it is where it has not been told since the last fold.
fn tell_folded(session: &Session<'_>, args: &FoldArgs, answer: &Answer, say: Say) {
    let view = match &answer.left {
        Left::Folded(tokens) => *tokens,
        Left::Whole => session.transcript().total(),
        Left::AsItCame(_) => return,
    };
    let told = explain::outcome(session, view);
    let why = answer.notices.iter().find_map(|notice| match notice {
        Notice::NothingToFold(why) => Some(why.clone()),
        Notice::Pressure(_) | Notice::Resting { .. } => None,
    });
    let is_told = args.now || matches!(answer.left, Left::Folded(_));
    if is_told {
        say.note(&format!("{}\n", Feedback { note: told.note.clone().or(why), ..told }));
    }
    let budget = session.budget();
    if let Some(level) = level_to_tell(&answer.notices, view, budget.room()) {
        say.pressure(level, view, budget);
    }
}

/// Opens a fold of a session.
pub(crate) fn recall(args: &RecallArgs, name: &str, options: &Options, say: Say) -> anyhow::Result<()> {
    let handle: Handle = args.first.parse().map_err(|error| {
        Failure::new(
            format!("{error}"),
            "with --session only the handle is given: fanfold recall --session ID HANDLE",
        )
    })?;
    let extent = recall::extent(args)?;
    let engine = store::engine_to_read(options)?;
    let id = store::find(&engine, name)?.id;
    let content = engine.recall(&id, handle, &extent).map_err(|error| match &error {
        OpenError::Store(failed) => store::store_failed(failed),
        OpenError::Unknown { near, .. } if near.is_empty() => Failure::new(
            format!("{error}: nothing of it was ever folded"),
            "`fanfold sessions list` names the others",
        ),
        OpenError::Unknown { near, .. } => Failure::new(
            format!("{error}; there are {}", near.join(", ")),
            format!("`fanfold inspect --session {id} --ledger` lists all handles"),
        ),
        OpenError::Broken(_) => Failure::new(error.to_string(), "`fanfold doctor` tells what is left"),
        OpenError::Extent(_) => Failure::new(error.to_string(), "leave out the lines to get all of it"),
    })?;
    recall::tell_if_nothing(&content, &extent, say);
    terminal::data(&content)
}

/// Prints a session as text.
pub(crate) fn show(args: &ShowArgs, name: &str, options: &Options, say: Say) -> anyhow::Result<()> {
    let engine = store::engine_to_read(options)?;
    let id = store::find(&engine, name)?.id;
    let mut followed = reopen(&engine, &id, options)?;
    if !args.folded {
        return terminal::data(&print_entries(followed.session.transcript().entries()));
    }
    let viewed = super::view(&mut followed);
    if args.explain {
        terminal::say(&explain::session(&followed.session));
    }
    match viewed? {
        super::Viewed::View(view) => terminal::data(&print_view(followed.session.transcript(), &view)),
        super::Viewed::Fault(fault) => {
            say.warn(&format!("{fault}: the conversation would leave as it came"));
            terminal::data(&print_entries(followed.session.transcript().entries()))
        }
    }
}

/// A session as it was last sent; one that was never sent, as it would be.
pub(crate) fn reopen(engine: &Engine, id: &SessionId, options: &Options) -> anyhow::Result<Followed> {
    let requests = engine.requests(id).map_err(|error| store::store_failed(&error))?;
    let is_whole = |noted: &Noted| matches!(&noted.note, Note::Request(sent) if sent.from == 0);
    if requests.iter().any(is_whole) {
        return Ok(engine.reopen(id, &terms_of).map_err(|error| store::failed(&error))?);
    }
    let body = kept_body(engine, id)?;
    let (conversation, changes) =
        decode(&body, choose::format(options)?).map_err(|error| not_decoded(&id.0, &error))?;
    let terms = choose::terms(options, Asked { model: conversation.model() })?;
    Ok(Followed::body(conversation, changes, &terms, &Wishes::default()))
}

/// Lists the requests of a session, or makes one again.
pub(crate) fn requests(args: &InspectArgs, name: &str, options: &Options, say: Say) -> anyhow::Result<()> {
    let engine = store::engine_to_read(options)?;
    let id = store::find(&engine, name)?.id;
    match args.what.request {
        Some(number) => request(&engine, &id, number, args.json, say),
        None => list_requests(&engine, &id, args.json),
    }
}

fn request(engine: &Engine, id: &SessionId, number: usize, is_json: bool, say: Say) -> anyhow::Result<()> {
    let rebuilt = engine.rebuild(id, number, &terms_of).map_err(|error| store::failed(&error))?;
    let sent = &rebuilt.sent;
    let verdict = if rebuilt.is_same { "the bytes that were sent" } else { "NOT the bytes that were sent" };
    if is_json {
        let about = json!({ "session": id.0, "request": number, "same": rebuilt.is_same, "hash": sent.hash,
            "bytes": sent.n_bytes, "tokens": sent.tokens, "policy": sent.policy, "counter": sent.counter,
            "format": sent.format, "original": sent.original, "body": rebuilt.body });
        terminal::data(&format!("{about:#}\n"))?;
    } else {
        terminal::data(&rebuilt.body)?;
    }
    let bytes = thousands(sent.n_bytes);
    say.note(&format!("\nrequest {number} of {id}: {bytes} bytes, {verdict} ({})\n", &sent.hash[..16]));
    if rebuilt.is_same {
        return Ok(());
    }
    Err(Failure::new(
        format!("request {number} could be made again, but not byte for byte"),
        "another fanfold or other files (rules, tokenizer) made it; its folds open all the same",
    )
    .into())
}

fn list_requests(engine: &Engine, id: &SessionId, is_json: bool) -> anyhow::Result<()> {
    let requests = engine.requests(id).map_err(|error| store::store_failed(&error))?;
    let sent = requests.iter().filter_map(|noted| match &noted.note {
        Note::Request(sent) => Some((noted.at, sent)),
        _ => None,
    });
    if is_json {
        let all: serde_json::Value = sent
            .enumerate()
            .map(|(i, (at, sent))| json!({ "request": i + 1, "at": at.0, "sent": sent }))
            .collect();
        return terminal::data(&format!("{all:#}\n"));
    }
    let mut page = String::new();
    for (i, (at, sent)) in sent.enumerate() {
        let tokens = sent.tokens.map_or_else(|| "-".to_owned(), |tokens| Tokens(tokens).to_string());
        let why = sent.original.as_ref().map_or_else(String::new, |why| format!("  as it came: {why}"));
        page.push_str(&format!(
            "{:>4}  {}  {:>9} bytes {tokens:>9} tokens  {}{why}\n",
            i + 1,
            at,
            thousands(sent.n_bytes),
            &sent.hash[..16]
        ));
    }
    terminal::page(&page)
}
