//! Why no view fits: what is largest, and what would help.

use crate::fold::ledger::Ledger;
use crate::fold::receipt::{Contributor, Overflow};
use crate::fold::step::Moment;
use crate::model::tokens::Tokens;
use crate::model::transcript::{Entry, EntryId, Speaker, Transcript};

/// Why there is no view of a conversation that costs so much when all is folded.
pub(crate) fn overflow(ledger: &Ledger, now: &Moment<'_>, total: Tokens) -> Overflow {
    let room = now.budget.room();
    let is_off = now.policy.strategy.trigger(now.budget).is_none();
    let over = total - room;
    let remedy = if is_off {
        "the strategy is `off`; choose `light` to let fanfold fold".to_owned()
    } else {
        let window = now.budget.window_for(total);
        format!("use a window of at least {window} tokens, or shorten the largest of these by {over}")
    };
    let contributors = contributors(ledger, now.transcript);
    Overflow { smallest: total, room, is_folded: !is_off, contributors, remedy }
}

/// The largest things in the view, largest first.
pub(crate) fn contributors(ledger: &Ledger, transcript: &Transcript) -> Vec<Contributor> {
    const MOST: usize = 5;
    let mut all: Vec<Contributor> = Vec::new();
    if transcript.tools() > Tokens::ZERO {
        all.push(Contributor { what: "the tool schemas".to_owned(), tokens: transcript.tools() });
    }
    for (i, entry) in transcript.entries().iter().enumerate() {
        let tokens = ledger.cost(transcript, EntryId::from(i));
        let what = match entry {
            Entry::Prompt(prompt) => match prompt.speaker {
                Speaker::System => "system text",
                Speaker::User => "a user message",
                Speaker::Harness => "a message of the harness",
                Speaker::Provider => "a sealed item of the provider's",
            },
            Entry::Step(_) => "a step with its results",
        };
        let is_pinned = if ledger.pinned.contains(&EntryId::from(i)) { ", pinned" } else { "" };
        all.push(Contributor { what: format!("{what} (entry {i}{is_pinned})"), tokens });
    }
    all.sort_by_key(|contributor| std::cmp::Reverse(contributor.tokens));
    all.truncate(MOST);
    all
}
