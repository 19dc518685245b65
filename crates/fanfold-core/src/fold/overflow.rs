//! Explains why no view fits: the largest parts of the view, and a remedy.

use crate::fold::ledger::Ledger;
use crate::fold::receipt::{Contributor, Overflow};
use crate::fold::step::StepInput;
use crate::model::tokens::Tokens;
use crate::model::transcript::{Entry, EntryId, Speaker, Transcript};

/// Describes the overflow of a conversation whose smallest view costs `total`.
pub(crate) fn overflow(ledger: &Ledger, input: &StepInput<'_>, total: Tokens) -> Overflow {
    let room = input.budget.room();
    let is_off = input.policy.strategy.trigger(input.budget).is_none();
    let over = total - room;
    let remedy = if is_off {
        "the strategy is `off`; choose `light` to let fanfold fold".to_owned()
    } else {
        let window = input.budget.window_for(total);
        format!("use a window of at least {window} tokens, or shorten the largest of these by {over}")
    };
    let contributors = contributors(ledger, input.transcript);
    Overflow { smallest: total, room, is_folded: !is_off, contributors, remedy }
}

/// The most expensive parts of the view, most expensive first.
pub(crate) fn contributors(ledger: &Ledger, transcript: &Transcript) -> Vec<Contributor> {
    const MOST: usize = 5;
    let mut all: Vec<Contributor> = Vec::new();
    if transcript.tools() > Tokens::ZERO {
        all.push(Contributor { description: "the tool schemas".to_owned(), tokens: transcript.tools() });
    }
    for (i, entry) in transcript.entries().iter().enumerate() {
        let tokens = ledger.cost(transcript, EntryId::from(i));
        let kind = match entry {
            Entry::Prompt(prompt) => match prompt.speaker {
                Speaker::System => "system text",
                Speaker::User => "a user message",
                Speaker::Harness => "a message of the harness",
                Speaker::Provider => "a sealed item of the provider's",
            },
            Entry::Step(_) => "a step with its results",
        };
        let is_pinned = if ledger.pinned.contains(&EntryId::from(i)) { ", pinned" } else { "" };
        all.push(Contributor { description: format!("{kind} (entry {i}{is_pinned})"), tokens });
    }
    all.sort_by_key(|contributor| std::cmp::Reverse(contributor.tokens));
    all.truncate(MOST);
    all
}
