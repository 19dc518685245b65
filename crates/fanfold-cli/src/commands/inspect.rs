//! `fanfold inspect`: the budget, the folds, and what the agent knows.

use std::fmt::Write as _;

use fanfold_core::{Cadence, Engine, Ledger, Policy, Pressure, Tokens, WorkingContext, working_context};
use fanfold_engine::{Followed, Wishes};
use serde_json::{Value, json};

use super::{Leaves, Say, metrics, open, stored, tell_repairs, view};
use crate::failure::Failure;
use crate::flags::InspectArgs;
use crate::settings::Options;
use crate::terminal::{self, paint, style};
use crate::{explain, report_json, store};

pub(crate) fn run(args: &InspectArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    // clap does not ask for what conflicts with the file, which is always there.
    let is_of_session = args.what.requests || args.what.request.is_some();
    if is_of_session && args.session.is_none() {
        let message = "only a session that is kept has requests, and this is a file";
        return Err(
            Failure::new(message, "name one with --session; `fanfold sessions list` lists them").into()
        );
    }
    let mut happened = None;
    let mut followed = match &args.session {
        Some(name) if is_of_session => return stored::requests(args, name, options, say),
        Some(name) => {
            let engine = store::engine_to_read(options)?;
            let id = store::find(&engine, name)?.id;
            let events = engine.store().events(&id, 0).map_err(|error| store::store_failed(&error))?;
            happened = Some(metrics::Happened::of(&events));
            stored::reopen(&engine, &id, &args.fold, options)?
        }
        None => open(&args.file, options, &Wishes::default(), say)?,
    };
    // Asking for the view takes the last step. That there may be none is told by the numbers.
    let viewed = view(&mut followed);
    if args.session.is_none() {
        tell_repairs(followed.conversation.repairs(), Leaves::of(viewed.as_ref()), say);
    }
    let session = &*followed.session;
    if args.what.metrics {
        let numbers = metrics::Numbers::of(session, happened);
        return match args.json {
            true => terminal::data(&format!("{:#}\n", numbers.json())),
            false => terminal::page(&numbers.page()),
        };
    }
    let policy = session.policy().cloned().unwrap_or_else(Policy::fanfold);
    let context = || working_context(session.transcript(), session.ledger(), &policy);
    match (args.what.ledger, args.what.context, args.json) {
        (true, _, true) => terminal::data(&format!("{:#}\n", ledger_json(session.ledger()))),
        (true, _, false) => terminal::page(&ledger_page(session)),
        (_, true, true) => terminal::data(&format!("{:#}\n", context_json(&context()))),
        (_, true, false) => terminal::page(&context_page(&context())),
        (_, _, true) => terminal::data(&format!("{:#}\n", Numbers::of(&followed).json())),
        (_, _, false) => terminal::page(&Numbers::of(&followed).page()),
    }
}

/// All numbers of a budget, and how full it is.
struct Numbers<'a> {
    followed: &'a Followed,
    whole: Tokens,
    view: Tokens,
    trigger: Option<Tokens>,
}

impl Numbers<'_> {
    fn of(followed: &Followed) -> Numbers<'_> {
        let session = &*followed.session;
        Numbers {
            followed,
            whole: session.transcript().total(),
            view: session.status().tokens,
            trigger: session.status().threshold,
        }
    }

    fn page(&self) -> String {
        let session = &*self.followed.session;
        let (budget, policy, counter) = (session.budget(), session.policy(), session.counter());
        // A counter that estimates says so in its name.
        let exact = if counter.is_exact() { " (exact)" } else { "" };
        let room = budget.room();
        let percent = |tokens: Tokens| format!("{:.1} %", tokens.0 as f64 * 100.0 / room.0.max(1) as f64);
        let trigger = self.trigger.map_or_else(|| "never".to_owned(), |at| at.to_string());
        let pressure = Pressure::of(self.view, budget);
        let state = if self.view > room { " — it does not fit".to_owned() } else { String::new() };
        let n_folds = session.status().n_folds;
        let folds = if n_folds == 1 { "fold" } else { "folds" };
        let entries = session.transcript().len();
        let weighed = session.weighed().map_or_else(String::new, |weighed| weighed.to_string());
        let low_mark =
            policy.map_or_else(|| "-".to_owned(), |policy| room.permille(policy.low_mark).to_string());
        let rows = [
            ("window", budget.window().to_string(), String::new()),
            ("reserve", budget.reserve().to_string(), "kept for the answer".to_owned()),
            ("room", room.to_string(), "what a request may cost".to_owned()),
            (
                "trigger",
                trigger,
                match policy {
                    Some(policy) => {
                        format!("where folding starts: {} (policy {})", policy.strategy, policy.name)
                    }
                    None => format!("where folding starts (engine {})", session.name()),
                },
            ),
            ("cadence", cadence(session), weighed),
            ("low mark", low_mark, "how far a fold goes down".to_owned()),
            (
                "transcript",
                self.whole.to_string(),
                format!("{} of the room, {entries} entries", percent(self.whole)),
            ),
            ("tools", session.transcript().tools().to_string(), "their schemas, counted in both".to_owned()),
            (
                "view",
                self.view.to_string(),
                format!("{} of the room after {n_folds} {folds}{state}", percent(self.view)),
            ),
        ];
        let mut out = String::new();
        for (name, number, remark) in rows {
            let remark = if remark.is_empty() { remark } else { format!("  {}", paint(style::DIM, remark)) };
            let _ = writeln!(out, "{name:<11}{number:>10}{remark}");
        }
        let _ = writeln!(out, "{:<11}{:>10}", "pressure", pressure.to_string());
        let _ = writeln!(out, "counter     {}{exact}", counter.name());
        out
    }

    fn json(&self) -> Value {
        let session = &*self.followed.session;
        let (budget, policy, counter) = (session.budget(), session.policy(), session.counter());
        json!({
            "format": self.followed.conversation.format().to_string(),
            "policy": session.policy_name(),
            "strategy": policy.map(|policy| policy.strategy.to_string()),
            "counter": counter.name(),
            "exact": counter.is_exact(),
            "window": budget.window().0,
            "reserve": budget.reserve().0,
            "room": budget.room().0,
            "cadence": cadence(session),
            "weighed": session.weighed().map(|weighed| weighed.to_string()),
            "trigger": self.trigger.map(|at| at.0),
            "low_mark": policy.map(|policy| budget.room().permille(policy.low_mark).0),
            "transcript": self.whole.0,
            "tools": session.transcript().tools().0,
            "view": self.view.0,
            "fits": self.view <= budget.room(),
            "pressure": Pressure::of(self.view, budget).to_string(),
            "entries": session.transcript().len(),
            "folds": session.status().n_folds,
        })
    }
}

/// What it is folded for, beside the trigger.
fn cadence(session: &dyn Engine) -> String {
    match session.weighed() {
        Some(_) => Cadence::Cost.to_string(),
        None if session.policy_name() == Policy::NAMES[0] => Cadence::Window.to_string(),
        None => "-".to_owned(),
    }
}

fn ledger_page(session: &dyn Engine) -> String {
    let ledger = session.ledger();
    if ledger.receipts().is_empty() {
        return explain::session(session);
    }
    let mut out = String::new();
    for (i, receipt) in ledger.receipts().iter().enumerate() {
        out.push_str(&explain::fold(i + 1, receipt));
        for left in &receipt.left {
            let handle = paint(style::HANDLE, left.handle);
            let what = explain::what(left.what);
            let _ = writeln!(
                out,
                "    {handle}  {what:<26} {:<12} {:>9} → {}",
                left.pass, left.before, left.after
            );
        }
    }
    let live: Vec<_> = ledger.live_segments().collect();
    if !live.is_empty() {
        let _ = writeln!(out, "{}", paint(style::BOLD, "segments in the view"));
    }
    for segment in live {
        let (first, last) = segment.span();
        let handle = paint(style::HANDLE, segment.handle);
        let _ = writeln!(
            out,
            "    {handle}  entries {}–{}, {} of them, tier {}, {} tokens",
            first.0,
            last.0,
            segment.entries.len(),
            segment.tier,
            segment.tokens()
        );
    }
    summaries(&mut out, ledger);
    let (whole, view) = (session.transcript().total(), session.status().tokens);
    let _ = writeln!(out, "in {whole} tokens, out {view}");
    out
}

/// What models wrote, and when it stood in the view.
fn summaries(out: &mut String, ledger: &Ledger) {
    if ledger.summaries().next().is_some() {
        let _ = writeln!(out, "{}", paint(style::BOLD, "summaries by a model"));
    }
    for (i, summary) in ledger.summaries().enumerate() {
        let on = if summary.day.is_empty() { String::new() } else { format!(", {}", summary.day) };
        let _ = write!(out, "    {}  up to entry {}{on}", i + 1, summary.upto.0);
        match ledger.summary_in_view().filter(|placed| placed.number == i) {
            Some(placed) => {
                let _ =
                    writeln!(out, ", {} tokens, in the view behind entry {}", placed.tokens, placed.behind.0);
            }
            None => out.push_str(", not in the view\n"),
        }
    }
    for placing in ledger.summary_changes() {
        let what = match (placing.removed, placing.added) {
            (Some(left), Some(came)) if left == came => format!("{} moved", came + 1),
            (Some(left), Some(came)) => format!("{} took the place of {}", came + 1, left + 1),
            (None, Some(came)) => format!("{} came in", came + 1),
            (Some(left), None) => format!("{} left, there was no room", left + 1),
            (None, None) => continue,
        };
        let _ = writeln!(out, "    at entry {}: {what}, rewrote {} tokens", placing.at, placing.rewritten);
    }
}

fn summaries_json(ledger: &Ledger) -> Value {
    let placed = ledger.summary_in_view();
    let one = |(i, summary): (usize, &fanfold_core::Summary)| {
        let placed = placed.filter(|placed| placed.number == i);
        json!({
            "upto": summary.upto.0,
            "day": summary.day,
            "text": &*summary.text,
            "in_view": placed.is_some(),
            "behind": placed.map(|placed| placed.behind.0),
            "tokens": placed.map(|placed| placed.tokens.0),
        })
    };
    ledger.summaries().enumerate().map(one).collect()
}

fn ledger_json(ledger: &Ledger) -> Value {
    let folds: Value = ledger
        .folds()
        .iter()
        .map(|fold| {
            json!({
                "place": report_json::place(fold.place),
                "pass": fold.pass,
                "handles": fold.handles.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "tokens": fold.tokens.0,
                "stub": &*fold.stub,
            })
        })
        .collect();
    let live: Vec<_> = ledger.live_segments().map(|segment| segment.handle).collect();
    let segments: Value = ledger
        .segments()
        .iter()
        .map(|segment| {
            json!({
                "handle": segment.handle.to_string(),
                "entries": segment.entries.iter().map(|entry| entry.0).collect::<Vec<_>>(),
                "tier": segment.tier,
                "tokens": segment.tokens().0,
                "in_view": live.contains(&segment.handle),
            })
        })
        .collect();
    json!({
        "receipts": report_json::receipts(ledger),
        "folds": folds,
        "segments": segments,
        "summaries": summaries_json(ledger),
    })
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
            // The end of a file is not a number.
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
    let verdicts: Value =
        context.verdicts.iter().map(|(run, told)| json!({ "run": run, "verdict": told })).collect();
    json!({
        "files": files,
        "edited": context.edited,
        "verdicts": verdicts,
        "open_errors": context.open_errors,
        "git": context.git,
    })
}
