//! `fanfold fold --session`: folds a conversation into a stored session.

use fanfold_core::{Engine, Feedback, Notice, new_pressure_level};
use fanfold_engine::{
    FoldOptions, FoldOutcome, RequestError, RequestInput, RequestOutcome, store_hint, store_message,
};
use fanfold_store::StoreError;
use fanfold_wire::Repair;
use serde_json::json;

use super::summarise::{self, StoredSummary, SummaryOutcome};
use super::target::Target;
use super::{FoldArgs, check_outputs, explain_notices, report_shortened, write, write_json, write_receipts};
use crate::commands::conversation::{BodyState, check_pins, check_roles, report_repairs};
use crate::commands::stored_session;
use crate::failure::{Failure, Result, not_decoded};
use crate::files::input;
use crate::report::{receipt_json, receipt_text, size_chart};
use crate::settings::Options;
use crate::setup::terms;
use crate::store;
use crate::terminal::{self, Reporter, count, paint, style, text};

/// Stores a conversation in a session and folds it.
pub(super) fn run(args: &FoldArgs, name: &str, options: &Options, reporter: Reporter) -> Result<()> {
    check_outputs(args, args.file.as_deref())?;
    for path in args.output.iter().chain(&args.receipt) {
        store::refuse_to_overwrite(options, path)?;
    }
    let target = Target::open(args, name, options, reporter)?;
    let (body, source) = match &args.file {
        None => (target.engine.body(&target.id)?, target.id.to_string()),
        Some(path) => {
            let input = input::read(path, reporter)?;
            (input.text, input.name)
        }
    };
    let (answer, summary, repairs) = fold(&target, &body, &source, args, options, reporter)?;
    let state = match &answer.fold {
        FoldOutcome::Folded(_) => BodyState::Folded,
        FoldOutcome::Whole | FoldOutcome::Failed(_) => BodyState::Unchanged,
    };
    report_repairs(&repairs, state, reporter);
    report(&target, args, &answer, summary.as_ref(), reporter)?;
    report_outage(&target, options, reporter)?;
    if !args.json {
        return if args.dry_run { Ok(()) } else { write(args, &answer.body) };
    }
    let body = (!args.dry_run).then_some(&*answer.body);
    let report = target
        .engine
        .with_cached(&target.id, |followed| receipt_json::folded(followed, summary.as_ref(), body));
    // A conversation that could not be followed is written unchanged.
    let mut report = report.unwrap_or_else(|| json!({ "body": answer.body }));
    report["session"] = json!(target.id.0);
    report["kept"] = json!(answer.is_stored);
    write_json(args, &report)
}

/// Warns if the store cannot be used, with the next step.
fn report_outage(target: &Target, options: &Options, reporter: Reporter) -> Result<()> {
    let Some(outage) = target.engine.outage() else { return Ok(()) };
    let error = StoreError::Unavailable(outage.error);
    let (message, hint) = (store_message(&error), store_hint(&error));
    let address = store::address(options)?;
    let address = store::without_password(&address);
    let name = if message.contains(&address) { String::new() } else { format!("the store {address}: ") };
    reporter.warn(&format!(
        "{name}{message}: the conversation is folded, but not stored, so its folds cannot be recalled later. {hint}"
    ));
    Ok(())
}

/// Folds the body in the session, with a summary if one is requested.
fn fold(
    target: &Target,
    body: &str,
    source: &str,
    args: &FoldArgs,
    options: &Options,
    reporter: Reporter,
) -> Result<(RequestOutcome, Option<SummaryOutcome>, Vec<Repair>)> {
    let Target { engine, id } = target;
    let format = terms::format(options)?;
    let (conversation, changes) =
        fanfold_engine::decode(body, format).map_err(|error| not_decoded(source, &error))?;
    check_roles(source, &conversation)?;
    target.refuse_unrelated(&conversation, source)?;
    let terms = stored_session::terms(engine, id, options, conversation.model())?;
    terms.assumed.iter().for_each(|assumption| reporter.note(assumption));
    check_pins(&args.pin, conversation.messages().len())?;
    let repairs = conversation.repairs().to_vec();
    let mut pending = None;
    if args.summarise {
        let fold_options = FoldOptions { pins: args.pin.clone(), ..FoldOptions::default() };
        let mut followed =
            fanfold_engine::FoldedConversation::from_body(conversation, changes, &terms, &fold_options);
        // If nothing fits, the fold reports it.
        if followed.view().is_ok() {
            pending = Some(StoredSummary::request(engine, id, &followed, options, reporter)?);
        }
    }
    let ask = RequestInput::new(id, body, &terms, "cli");
    let answer = engine.request(&RequestInput { pins: &args.pin, is_by_hand: args.now, ..ask });
    let is_viewed = matches!(answer.fold, FoldOutcome::Whole | FoldOutcome::Folded(_));
    let Some(pending) = pending.filter(|_| is_viewed) else { return Ok((answer, None, repairs)) };
    let (again, summary) =
        place_summary(target, &RequestInput::new(id, body, &terms, "cli"), pending, reporter)?;
    let answer = RequestOutcome { n_new: answer.n_new, n_dropped: answer.n_dropped, ..again };
    Ok((answer, Some(summary), repairs))
}

/// Stores the summary and folds the messages that it covers.
fn place_summary(
    target: &Target,
    ask: &RequestInput<'_>,
    summary: StoredSummary,
    reporter: Reporter,
) -> Result<(RequestOutcome, SummaryOutcome)> {
    let engine = &target.engine;
    let (ended, sizes) = summary.store(engine, ask.session)?;
    let answer = engine.request(ask);
    let is_placed =
        engine.with_cached(ask.session, |followed| summarise::report(&sizes, followed, &ended, reporter));
    Ok((answer, summary.into_outcome(ended, is_placed.unwrap_or_default())))
}

/// Reports what was stored and folded. An overflow is a failure.
fn report(
    target: &Target,
    args: &FoldArgs,
    answer: &RequestOutcome,
    summary: Option<&SummaryOutcome>,
    reporter: Reporter,
) -> Result<()> {
    let Target { engine, id } = target;
    let stored = match answer.is_stored {
        true if args.dry_run => format!("{} would be stored", count(answer.n_new, "new message")),
        true => format!("{} stored", count(answer.n_new, "new message")),
        false => "not stored".to_owned(),
    };
    reporter.line(text![paint(style::DIM, "session"), format!(" {id}: {stored}")]);
    if answer.n_dropped > 0 {
        let left = count(answer.n_dropped, "message");
        reporter.warn(&format!(
            "left behind: {left} that this conversation does not have; `fanfold sessions redo {id}` restores them"
        ));
    }
    let written = engine.with_cached(id, |followed| -> Result<()> {
        if args.dry_run
            && let Ok(view) = followed.view()
        {
            terminal::print_message(size_chart::before_and_after(followed, &view, terminal::width()));
        }
        if args.explain {
            terminal::print_message(receipt_text::session(&*followed.session));
            explain_notices(&answer.notices);
        }
        report_fold(&*followed.session, args, answer, reporter);
        if matches!(answer.fold, FoldOutcome::Folded(_)) {
            report_shortened(followed, reporter);
        }
        match &args.receipt {
            Some(path) => write_receipts(path, followed, summary),
            None => Ok(()),
        }
    });
    written.transpose()?;
    match &answer.fold {
        FoldOutcome::Whole | FoldOutcome::Folded(_) => Ok(()),
        FoldOutcome::Failed(RequestError::Overflow(overflow)) => Err(Failure::from(&**overflow)),
        FoldOutcome::Failed(trouble) => {
            reporter.warn(&format!("{trouble}: the conversation is written unchanged. {}", trouble.hint()));
            Ok(())
        }
    }
}

/// Reports the outcome of the fold, and the pressure unless it was reported since the last fold.
fn report_fold(session: &dyn Engine, args: &FoldArgs, answer: &RequestOutcome, reporter: Reporter) {
    let view = match &answer.fold {
        FoldOutcome::Folded(tokens) => *tokens,
        FoldOutcome::Whole => session.transcript().total(),
        FoldOutcome::Failed(_) => return,
    };
    let outcome = receipt_text::outcome(session, view);
    let why_nothing = answer.notices.iter().find_map(|notice| match notice {
        Notice::NothingToFold(why) => Some(why.clone()),
        Notice::Pressure(_) | Notice::Resting { .. } => None,
    });
    if args.now || args.dry_run || matches!(answer.fold, FoldOutcome::Folded(_)) {
        let note = outcome.note.clone().or(why_nothing);
        reporter.line(Feedback { note, ..outcome }.to_string());
    }
    let budget = session.budget();
    if let Some(level) = new_pressure_level(&answer.notices, view, budget.room()) {
        reporter.pressure(level, view, budget);
    }
}
