//! `fold`, `recall`, `show` and `inspect` on a session that is kept.

use std::path::Path;

use fanfold_core::{Feedback, Handle, Notice, Tokens, thousands};
use fanfold_engine::{Answer, Ask, Engine, Followed, Left, Note, OpenError, Trouble, Wishes, decode};
use fanfold_proxy::meter::new_pressure_level;
use fanfold_store::SessionId;
use serde_json::json;

use super::fold::{check_places, leave, tell_shortened, write_receipts};
use super::target::Target;
use super::{Leaves, Say, recall, show, summarise};
use crate::choose::{self, Asked, terms_of};
use crate::failure::{Failure, not_decoded};
use crate::flags::{FoldArgs, InspectArgs, RecallArgs, ShowArgs};
use crate::settings::{FoldFlags, Options};
use crate::terminal::{self, count, paint, style};
use crate::{explain, input, output, picture, report_json, store};

/// Keeps a conversation in a session and folds it.
pub(crate) fn fold(args: &FoldArgs, name: &str, options: &Options, say: Say) -> anyhow::Result<()> {
    check_places(args, args.file.as_deref())?;
    for path in args.output.iter().chain(&args.receipt) {
        store::refuse_to_replace(options, path)?;
    }
    let target = match Target::of(args, name, options, say)? {
        Ok(target) => target,
        Err(failure) => return leave_as_it_came(args, failure, say),
    };
    let Target { engine, id } = &target;
    let (body, source) = match &args.file {
        None => (kept_body(engine, id)?, id.to_string()),
        Some(path) => {
            if path == Path::new("-") {
                say.waits();
            }
            let input = input::read(path)?;
            (input.text, input.name)
        }
    };
    let format = choose::format(options)?;
    let (conversation, changes) = decode(&*body, format).map_err(|error| not_decoded(&source, &error))?;
    super::check_roles(&source, &conversation)?;
    target.refuse_another(&conversation, &source)?;
    let terms = kept_terms(engine, id, options, Asked { model: conversation.model() })?;
    for assumed in &terms.assumed {
        say.note(&format!("{} {assumed}\n", paint(style::DIM, "note:")));
    }
    super::check_pins(&args.pin, conversation.messages().len())?;
    let repairs = conversation.repairs().to_vec();
    let first = match args.summarise {
        true => {
            let wishes = Wishes { pins: args.pin.clone(), ..Wishes::default() };
            let mut followed = Followed::body(conversation, changes, &terms, &wishes);
            // What fits nowhere is told when it is folded.
            let has_view = followed.view().is_ok();
            has_view.then(|| summarise::first(engine, id, &followed, options, say)).transpose()?
        }
        false => None,
    };
    let answer =
        engine.request(&Ask { pins: &args.pin, is_by_hand: args.now, ..Ask::new(id, &body, &terms, "cli") });
    let (answer, summary) = match first.filter(|_| matches!(answer.left, Left::Whole | Left::Folded(_))) {
        Some(first) => {
            let (answer, summary) =
                summarised(engine, &Ask::new(id, &body, &terms, "cli"), &answer, first, say)?;
            (answer, Some(summary))
        }
        None => (answer, None),
    };
    let leaves = match &answer.left {
        Left::Folded(_) => Leaves::Folded,
        Left::Whole | Left::AsItCame(_) => Leaves::AsItCame,
    };
    super::tell_repairs(&repairs, leaves, say);
    tell(engine, id, args, (&answer, summary.as_ref()), say)?;
    if !args.json {
        return if args.dry_run { Ok(()) } else { leave(args, &answer.body) };
    }
    let body = (!args.dry_run).then_some(&*answer.body);
    let told = engine.look(id, |followed| report_json::folded(followed, summary.as_ref(), body));
    // One that could not be followed leaves as it came.
    let mut told = told.unwrap_or_else(|| json!({ "body": answer.body }));
    told["session"] = json!(id.0);
    told["kept"] = json!(answer.is_kept);
    leave(args, &format!("{told:#}\n"))
}

/// Lets a conversation leave as it came where the store can't be used, because whoever waits for it must go on.
fn leave_as_it_came(args: &FoldArgs, failure: Failure, say: Say) -> anyhow::Result<()> {
    let Some(path) = args.file.as_ref().filter(|_| !args.dry_run) else { return Err(failure.into()) };
    let body = input::read(path)?.text;
    let hint = failure.hint().unwrap_or_default();
    say.warn(&format!("{failure}: nothing is kept, and the conversation leaves as it came. {hint}"));
    match &args.output {
        Some(path) => Ok(output::write_file(path, body.as_bytes())?),
        None => terminal::data(&body),
    }
}

/// The terms of a session that is kept.
fn kept_terms(
    engine: &Engine,
    id: &SessionId,
    options: &Options,
    asked: Asked<'_>,
) -> anyhow::Result<fanfold_engine::Terms> {
    let told = engine.told(id).map_err(|error| store::store_failed(&error))?;
    choose::kept_terms(options, asked, told.as_ref())
}

/// Keeps a summary of what was just folded, and folds it by hand.
fn summarised(
    engine: &Engine,
    ask: &Ask<'_>,
    folded: &Answer,
    first: summarise::First,
    say: Say,
) -> anyhow::Result<(Answer, summarise::Outcome)> {
    let (ended, sizes) = first.keep(engine, ask.session)?;
    let answer = engine.request(ask);
    let is_placed = engine.look(ask.session, |followed| sizes.tell(followed, &ended, say));
    let answer = Answer { n_new: folded.n_new, n_left: folded.n_left, ..answer };
    Ok((answer, first.outcome(ended, is_placed.unwrap_or_default())))
}

fn kept_body(engine: &Engine, id: &SessionId) -> Result<String, Failure> {
    engine.body(id).map_err(|error| store::failed(&error))
}

/// Tells what was kept and folded. What fits nowhere is a failure.
fn tell(
    engine: &Engine,
    id: &SessionId,
    args: &FoldArgs,
    (answer, summary): (&Answer, Option<&summarise::Outcome>),
    say: Say,
) -> anyhow::Result<()> {
    let kept = match answer.is_kept {
        true if args.dry_run => format!("{} would be kept", count(answer.n_new, "new message")),
        true => format!("{} kept", count(answer.n_new, "new message")),
        false => "not kept".to_owned(),
    };
    say.note(&format!("{} {id}: {kept}\n", paint(style::DIM, "session")));
    if answer.n_left > 0 {
        let left = count(answer.n_left, "message");
        say.warn(&format!(
            "left behind: {left} that this conversation does not have; `fanfold sessions redo {id}` goes back to them"
        ));
    }
    let told = engine.look(id, |followed| -> anyhow::Result<()> {
        if args.dry_run
            && let Ok(view) = followed.view()
        {
            terminal::say(&picture::before_and_after(followed, &view, terminal::width()));
        }
        if args.explain {
            terminal::say(&explain::session(&*followed.session));
            let is_told = |notice: &&Notice| !matches!(notice, Notice::Pressure(_));
            answer.notices.iter().filter(is_told).for_each(|notice| terminal::say(&explain::notice(notice)));
        }
        tell_folded(&*followed.session, args, answer, say);
        if matches!(answer.left, Left::Folded(_)) {
            tell_shortened(followed, say);
        }
        match &args.receipt {
            Some(path) => write_receipts(path, followed, summary),
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
fn tell_folded(session: &dyn fanfold_core::Engine, args: &FoldArgs, answer: &Answer, say: Say) {
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
    let is_told = args.now || args.dry_run || matches!(answer.left, Left::Folded(_));
    if is_told {
        say.note(&format!("{}\n", Feedback { note: told.note.clone().or(why), ..told }));
    }
    let budget = session.budget();
    if let Some(level) = new_pressure_level(&answer.notices, view, budget.room()) {
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
    recall::print(args, handle, &content)
}

/// Prints a session as text.
pub(crate) fn show(args: &ShowArgs, name: &str, options: &Options, say: Say) -> anyhow::Result<()> {
    let engine = store::engine_to_read(options)?;
    let id = store::find(&engine, name)?.id;
    let mut followed = reopen(&engine, &id, &args.fold, options)?;
    show::print(&mut followed, args, say)
}

/// A session as it was last sent; one that was never sent, as it would be. With flags for its fold, as it would be sent
/// by them.
pub(crate) fn reopen(
    engine: &Engine,
    id: &SessionId,
    flags: &FoldFlags,
    options: &Options,
) -> anyhow::Result<Followed> {
    if flags.is_given() {
        return tried(engine, id, options);
    }
    if engine.has_view(id).map_err(|error| store::store_failed(&error))? {
        return Ok(engine.reopen(id, &terms_of).map_err(|error| store::failed(&error))?);
    }
    let body = kept_body(engine, id)?;
    let (conversation, changes) =
        decode(body, choose::format(options)?).map_err(|error| not_decoded(&id.0, &error))?;
    let terms = kept_terms(engine, id, options, Asked { model: conversation.model() })?;
    Ok(Followed::body(conversation, changes, &terms, &Wishes::default()))
}

/// A session as its next request would leave it, tried on a copy.
fn tried(engine: &Engine, id: &SessionId, options: &Options) -> anyhow::Result<Followed> {
    let copy = store::copy_of(Some(engine), id)?;
    let body = kept_body(&copy, id)?;
    let (conversation, _) =
        decode(&*body, choose::format(options)?).map_err(|error| not_decoded(&id.0, &error))?;
    let terms = kept_terms(&copy, id, options, Asked { model: conversation.model() })?;
    let answer = copy.request(&Ask::new(id, &body, &terms, "cli"));
    if let Left::AsItCame(Trouble::Overflow(overflow)) = &answer.left {
        return Err(Failure::from(&**overflow).into());
    }
    Ok(copy.reopen(id, &terms_of).map_err(|error| store::failed(&error))?)
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
