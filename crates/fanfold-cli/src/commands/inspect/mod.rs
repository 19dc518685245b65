//! `fanfold inspect`: the budget, the folds, the working context, metrics, and requests.

mod budget; //   window, room, trigger, and how full it is
mod ledger; //   every fold
mod metrics; //  what folding does to the conversation
mod requests; // requests of a stored session

use std::path::PathBuf;

use clap::Args;
use fanfold_core::{Policy, WorkingContext, working_context};
use fanfold_engine::FoldOptions;
use serde_json::{Value, json};

use super::conversation::{BodyState, open, report_repairs, view};
use super::stored_session;
use crate::failure::{Failure, Result};
use crate::settings::{FoldFlags, Options, StoreFlags};
use crate::store;
use crate::terminal::{self, Reporter, Text};

/// Show the budget, the folds, or what the agent knows
#[derive(Debug, Args)]
#[command(after_help = "Example: fanfold inspect chat.json --ledger --window 32k")]
pub(crate) struct InspectArgs {
    /// The conversation; `-` is stdin
    #[arg(default_value = "-", conflicts_with = "session")]
    file: PathBuf,
    /// Inspect a stored session instead of a file
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    #[command(flatten)]
    pub(super) store: StoreFlags,
    #[command(flatten)]
    topic: Topic,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) fold: FoldFlags,
}

/// The topic to show; the budget if no flag is given.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct Topic {
    /// Window, room, trigger, and how full the room is
    #[arg(long)]
    budget: bool,
    /// Every fold: what was folded and what replaced it
    #[arg(long)]
    ledger: bool,
    /// Working context: files seen, and the state: changed files, tests, open failures
    #[arg(long)]
    context: bool,
    /// Metrics: tokens saved per fold, folds per 100 turns, summaries
    #[arg(long)]
    metrics: bool,
    /// The requests of the session
    #[arg(long, requires = "session")]
    requests: bool,
    /// Rebuild the bytes of a request of the session, counted from 1
    #[arg(long, value_name = "N", requires = "session")]
    request: Option<usize>,
}

pub(crate) fn run(args: &InspectArgs, options: &Options, reporter: Reporter) -> Result<()> {
    let topic = &args.topic;
    // clap does not check `requires` against an argument that conflicts with one that has a default.
    let needs_session = topic.requests || topic.request.is_some();
    if needs_session && args.session.is_none() {
        let message = "only a stored session has requests, and this is a file";
        return Err(Failure::new(message, "name one with --session; `fanfold sessions list` shows them"));
    }
    let mut events = None;
    let mut followed = match &args.session {
        Some(name) => {
            let engine = store::open_read_only(options)?;
            let id = engine.find(name)?.id;
            if let Some(number) = topic.request {
                return requests::rebuild(&engine, &id, number, args.json, reporter);
            }
            if topic.requests {
                return requests::list(&engine, &id, args.json);
            }
            events = Some(metrics::EventCounts::new(&engine.store().events(&id, 0)?));
            stored_session::reopen(&engine, &id, &args.fold, options)?
        }
        None => open(&args.file, options, &FoldOptions::default(), reporter)?,
    };
    // Requesting the view runs the last step. The numbers show whether it fits.
    let view = view(&mut followed);
    if args.session.is_none() {
        report_repairs(followed.conversation.repairs(), BodyState::from_view(view.as_ref()), reporter);
    }
    let session = &*followed.session;
    let (json, page) = if topic.metrics {
        let metrics = metrics::SessionMetrics::new(session, events);
        (metrics.json(), metrics.page())
    } else if topic.ledger {
        (ledger::json(session.ledger()), ledger::page(session))
    } else if topic.context {
        let policy = session.policy().cloned().unwrap_or_else(Policy::fanfold);
        let context = working_context(session.transcript(), session.ledger(), &policy);
        (context_json(&context), Text::from(context_page(&context)))
    } else {
        let numbers = budget::BudgetNumbers::new(&followed);
        (numbers.json(), numbers.page())
    };
    if args.json { terminal::print_json(&json) } else { terminal::print_page(page) }
}

fn context_page(context: &WorkingContext) -> String {
    let text = context.to_string();
    if text.is_empty() { "no file was seen, nothing was run\n".to_owned() } else { text }
}

fn context_json(context: &WorkingContext) -> Value {
    let files: Value = context
        .files
        .iter()
        .map(|file| {
            // A range up to the end of the file has no last line.
            let end = |last: u32| (last != u32::MAX).then_some(last);
            let ranges: Value =
                file.ranges.iter().map(|range| json!([range.first, end(range.last)])).collect();
            json!({
                "path": file.path,
                "whole": file.is_whole,
                "ranges": ranges,
                "visible": file.is_visible,
                "changed_since": file.is_changed_since,
                "reads": file.n_reads,
            })
        })
        .collect();
    let state: serde_json::Map<String, Value> =
        context.state.iter().map(|section| (section.title.to_owned(), json!(section.items))).collect();
    json!({
        "files": files,
        "state": state,
        "git": context.git,
    })
}
