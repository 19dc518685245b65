//! Shortens any long text except for user messages, longest first, including the newest step. Runs if nothing else is
//! left.
//!
//! ```text
//! say     The parser reads a header first: a width and a height, each a number on a line of its own. Then it reads as
//!         many rows as the height says, and each row has as many cells as the width says. The title is on the first
//!         line and is not counted, which is what the subtraction is for. I would leave it out, because the writer
//!         does not count the title either, and so the two of them disagree by one row on every file with a title.
//!         Then the test passes, and so do the eleven others. The printer needs no change at all, nor does the lexer.
//! ->
//! say     The parser reads a header first: a width and a
//!         [… 457 characters, #1t …]
//!         all, nor does the lexer.
//! ```

use crate::fold::draft::Draft;
use crate::fold::gist::gist;
use crate::fold::passes::Pass;
use crate::fold::passes::arguments::{lines, size_as_json, squeeze_arguments};
use crate::fold::passes::condense::{configured_kind, file_read, fold_condensed};
use crate::fold::policy::Digest;
use crate::model::location::{Place, body_at};
use crate::model::tokens::Tokens;
use crate::model::transcript::CallId;
use crate::text::condense::{Condenser, detect_kind};

pub(crate) const PASS: Pass = Pass { name: "squeeze", run };

fn run(draft: &mut Draft<'_>, target: Tokens) {
    // While other folds are possible, shorten only if that is enough, and keep something of each text.
    let is_last = draft.stage.tail == 0;
    let shortest = if is_last { SHORTEST } else { SHORT };
    let removable: Tokens = long_places(draft, shortest).iter().map(|(_, cost)| *cost - shortest).sum();
    if !is_last && draft.total() > target + removable {
        return;
    }
    // Estimates are inexact and some texts cannot be cut, so the limit is halved in each further round.
    let mut max_tokens = Tokens(draft.room.0 / 4).max(shortest);
    loop {
        let places = long_places(draft, shortest);
        let over = draft.total() - target;
        max_tokens = Tokens(cut_level(places.iter().map(|(_, cost)| cost.0).collect(), over.0))
            .clamp(shortest, max_tokens);
        for (place, cost) in places {
            if draft.total() <= target {
                return;
            }
            if cost > max_tokens {
                squeeze(draft, place, max_tokens);
            }
        }
        if max_tokens == shortest {
            break;
        }
        max_tokens = Tokens(max_tokens.0 / 2).max(shortest);
    }
    if is_last {
        leave_handles(draft, target);
    }
}

/// The minimum length in the last stage and in earlier stages.
const SHORTEST: Tokens = Tokens(24);
const SHORT: Tokens = Tokens(64);

/// Texts longer than `shortest` that were not cut to it yet, oldest first, with their costs.
fn long_places(draft: &Draft<'_>, shortest: Tokens) -> Vec<(Place, Tokens)> {
    let places = draft.places(|place| body_at(draft.transcript, place).is_some());
    let with_cost = places.into_iter().map(|place| (place, draft.place_cost(place)));
    with_cost.filter(|(place, cost)| *cost > shortest && !draft.ledger.was_cut_to(*place, shortest)).collect()
}

/// Reduces each text to its handle.
fn leave_handles(draft: &mut Draft<'_>, target: Tokens) {
    let is_not_user_text = |place: Place| !draft.transcript.entry(place.entry()).is_user();
    for place in draft.places(|place| is_not_user_text(place) && body_at(draft.transcript, place).is_some()) {
        if draft.total() <= target {
            return;
        }
        let text = body_at(draft.transcript, place).map_or("", |body| body.as_str());
        let is_json =
            matches!(place, Place::Arguments(_)) && serde_json::from_str::<serde_json::Value>(text).is_ok();
        draft.fold_to(place, |tag| match is_json {
            true => size_as_json(text.len(), tag).to_string(),
            false => format!("[{} characters, {tag}]", text.len()),
        });
    }
}

/// The length to cut the longest texts to, so that `over` tokens are removed.
pub(crate) fn cut_level(mut costs: Vec<u64>, over: u64) -> u64 {
    costs.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0;
    for (i, cost) in costs.iter().enumerate() {
        sum += cost;
        let next = costs.get(i + 1).copied().unwrap_or(0);
        let n = i as u64 + 1;
        let rest = sum.saturating_sub(over) / n;
        if rest >= next {
            return rest;
        }
    }
    0
}

/// Shortens a text to about `max_tokens` tokens, unless it was cut to this length before.
pub(crate) fn squeeze(draft: &mut Draft<'_>, place: Place, max_tokens: Tokens) {
    if draft.ledger.was_cut_to(place, max_tokens) {
        return;
    }
    draft.ledger.cut_limits.entry(place.entry()).or_default().insert(place, max_tokens);
    let body = body_at(draft.transcript, place).expect("a long place has a text");
    let (text, tokens) = (body.as_str(), body.tokens().0.max(1));
    // The size of `max_tokens` tokens of this text, minus the handle.
    let room = (text.len() as u64 * max_tokens.0.saturating_sub(16) / tokens).max(40) as usize;
    if matches!(place, Place::Arguments(_)) {
        squeeze_arguments(draft, place, room);
        return;
    }
    // Short excerpts and user messages are cut in the middle.
    let is_result = matches!(place, Place::Result(_));
    let is_agent_text = !draft.transcript.entry(place.entry()).is_user() && room >= SENTENCES;
    // Other presets cut by length.
    let has_line_digest = matches!(draft.policy.digest, Digest::Segments { .. });
    if let Place::Result(call) = place
        && has_line_digest
        && room >= MANY_LINES
        && suits_line_choice(draft, place, text)
        && fold_to_gist(draft, place, call, max_tokens, "")
    {
        return;
    }
    let is_condensed =
        has_line_digest && (is_result || is_agent_text) && fold_condensed(draft, place, text, room);
    if !is_condensed {
        draft.fold_to(place, |tag| ends_of(text, room, tag));
    }
}

/// The minimum size for choosing among lines.
const MANY_LINES: usize = 400;

/// Returns whether a text is best represented by its most valuable lines. Texts with a configured kind or with a
/// structure of their own are condensed by kind.
fn suits_line_choice(draft: &Draft<'_>, place: Place, text: &str) -> bool {
    configured_kind(draft, place).is_none() && Condenser::for_kind(detect_kind(text)).suits_line_choice
}

/// Folds a result to its most valuable lines. They are followed by a text.
pub(crate) fn fold_to_gist(
    draft: &mut Draft<'_>,
    place: Place,
    call: CallId,
    max_tokens: Tokens,
    outcome: &str,
) -> bool {
    let body = body_at(draft.transcript, place).expect("a result has a text");
    const TAG: Tokens = Tokens(16);
    let edited =
        file_read(draft, place).map(|file_read| draft.edited_lines(&file_read.path)).unwrap_or_default();
    let Some(short) = gist(draft, call, max_tokens - TAG, &edited) else { return false };
    let n_lines = lines(body.as_str());
    draft.fold_to(place, |tag| format!("{short}\n[{outcome}condensed from {n_lines}, {tag}]"))
}

/// The size of a few sentences.
const SENTENCES: usize = 200;

/// The beginning and the end of a text with the handle between them.
pub(crate) fn ends_of(text: &str, room: usize, tag: &str) -> String {
    let (head, tail) = ends(text, room);
    let n = text.len() - head.len() - tail.len();
    format!("{}\n[… {n} characters, {tag} …]\n{}", head.trim_end(), tail.trim_start())
}

/// The first two thirds and the last third of the room, cut at line ends or between words where possible.
pub(crate) fn ends(text: &str, room: usize) -> (&str, &str) {
    let (first, last) = (room * 2 / 3, room / 3);
    let head = &text[..text.floor_char_boundary(first)];
    let cut = head
        .rfind('\n')
        .filter(|at| *at > first / 2)
        .or_else(|| head.rfind(' ').filter(|at| *at > first / 2));
    let head = cut.map_or(head, |at| &head[..at]);
    let rest = &text[head.len()..];
    let tail = &rest[rest.ceil_char_boundary(rest.len().saturating_sub(last))..];
    let cut =
        tail.find('\n').filter(|at| *at < last / 2).or_else(|| tail.find(' ').filter(|at| *at < last / 2));
    (head, cut.map_or(tail, |at| &tail[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_the_longest_first() {
        assert_eq!(cut_level(vec![10, 100, 20], 50), 50);
        assert_eq!(cut_level(vec![100, 80, 20], 60), 60);
        assert_eq!(cut_level(vec![5, 5], 100), 0);
        assert_eq!(cut_level(vec![], 1), 0);
    }
}
