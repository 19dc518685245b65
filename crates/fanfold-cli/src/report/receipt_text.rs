//! Receipts as text: why a fold was made, what each pass did, what it cost.

use std::fmt::Write as _;

use fanfold_core::{Engine, Feedback, FoldReport, FoldTarget, Notice, Place, Receipt, Tokens};

use crate::terminal::{Text, paint, style, text};

/// Describes every fold of a session, or why there was none.
pub(crate) fn session(session: &dyn Engine) -> Text {
    let receipts = session.ledger().receipts();
    if receipts.is_empty() {
        return Text::from(why_nothing(session));
    }
    let mut out: Text = receipts.iter().enumerate().map(|(i, receipt)| fold(i + 1, receipt)).collect();
    if let Some(weighed) = session.weighed() {
        let _ = writeln!(out, "next fold: {weighed}");
    }
    out
}

fn why_nothing(session: &dyn Engine) -> String {
    let total = session.status().tokens;
    let room = session.budget().room();
    let why = match session.status().threshold {
        None => "the strategy is off".to_owned(),
        Some(trigger) if total <= trigger => match session.weighed() {
            Some(weighed) => weighed.to_string(),
            None => format!("folding starts at {trigger}"),
        },
        Some(trigger) => {
            format!(
                "the view is over {trigger}, but it has only parts that are never folded: user messages, system text, pinned messages and the newest steps"
            )
        }
    };
    format!("nothing was folded: {total} of {room} tokens, and {why}\n")
}

/// Describes one fold in a few lines.
pub(crate) fn fold(number: usize, receipt: &Receipt) -> Text {
    let mut out = paint(style::BOLD, format!("fold {number}"));
    let (before, after, at) = (receipt.before, receipt.after, receipt.at);
    let _ = writeln!(out, " after entry {}: {before} → {after} tokens", at.saturating_sub(1));
    let _ = writeln!(out, "  why      {}", receipt.reason);
    let _ = writeln!(out, "  stage    {}", receipt.stage);
    for (i, pass) in receipt.passes.iter().enumerate() {
        let label = if i == 0 { "passes" } else { "" };
        let _ = write!(out, "  {label:<8} {:<12} {:>5} folded  ", pass.pass, pass.n_folded);
        out.push_line(paint(style::TAIL, format!("−{}", pass.saved)));
    }
    let rewritten = receipt.rewritten;
    if rewritten == Tokens::ZERO {
        let _ = writeln!(out, "  rewrote  nothing: the folded text had not been sent yet");
    } else {
        let _ = writeln!(out, "  rewrote  {rewritten} of {after} tokens, which miss the provider's cache");
    }
    if let Some(price) = receipt.price.filter(|_| rewritten > Tokens::ZERO) {
        let _ = writeln!(out, "  costs    as much as {price} uncached input tokens, for the cache miss");
    }
    let _ = writeln!(out, "  won      {} tokens of room", receipt.saved());
    if !receipt.user_text.is_empty() {
        let entries: Vec<String> = receipt.user_text.iter().map(|entry| entry.0.to_string()).collect();
        let warning = format!("user messages were shortened: entries {}", entries.join(", "));
        out.push_line(text!["  ", paint(style::WARNING, warning)]);
    }
    out
}

/// The feedback on a conversation that was folded from its first message on.
pub(crate) fn outcome(session: &dyn Engine, view: Tokens) -> Feedback {
    Feedback::new(&FoldReport {
        before: session.transcript().total(),
        after: view,
        room: session.budget().room(),
        n_folds: session.status().n_folds,
        ..FoldReport::default()
    })
}

/// Describes what was folded.
pub(crate) fn folded_part(target: FoldTarget) -> String {
    match target {
        FoldTarget::Place(place) => location(place),
        FoldTarget::Entries(first, last) if first == last => format!("entry {}", first.0),
        FoldTarget::Entries(first, last) => format!("entries {}–{}", first.0, last.0),
    }
}

/// Describes a location.
fn location(place: Place) -> String {
    let entry = place.entry().0;
    match place {
        Place::Text(_) => format!("entry {entry}, text"),
        Place::Reasoning(_) => format!("entry {entry}, reasoning"),
        Place::Arguments(call) => format!("entry {entry}, arguments {}", call.call),
        Place::Result(call) => format!("entry {entry}, result {}", call.call),
        Place::PromptMedia(_, media) => format!("entry {entry}, media {media}"),
        Place::ResultMedia(call, media) => format!("entry {entry}, media {media} of result {}", call.call),
    }
}

/// Describes a notice.
pub(crate) fn notice(notice: &Notice) -> String {
    match notice {
        Notice::Pressure(level) => format!("pressure: {level}\n"),
        Notice::Resting { in_the_way } => {
            let mut out =
                "folding is paused: each of the last two folds saved less than a tenth of the view. The largest parts of the view:\n"
                    .to_owned();
            for one in in_the_way {
                let _ = writeln!(out, "  {:>9}  {}", one.tokens, one.description);
            }
            out
        }
        Notice::NothingToFold(why) => format!("{why}\n"),
    }
}
