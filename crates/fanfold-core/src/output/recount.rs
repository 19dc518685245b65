//! Counts a view from its elements, independently of the sums in the ledger.

use crate::model::location::{Place, body_at};
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{Body, Transcript};
use crate::model::view::{Edit, Item, View};

/// Counts the cost of a view.
pub fn recount(transcript: &Transcript, view: &View, counter: &dyn Count) -> Tokens {
    let frame = counter.frame();
    let items = view.items.iter().map(|item| match item {
        Item::Whole(id) => transcript.tokens(*id),
        Item::Note { text, .. } => frame.message + counter.count(text),
        Item::Edited(id, edits) => {
            let edit = |edit: &Edit| {
                let body = body_at(transcript, edit.place).map_or(Tokens::ZERO, Body::tokens);
                let n_media = match edit.place {
                    Place::PromptMedia(..) | Place::ResultMedia(..) => 1,
                    Place::Result(call) => {
                        transcript.call(call).result.as_ref().map_or(0, |outcome| outcome.media.len() as u64)
                    }
                    Place::Text(_) | Place::Reasoning(_) | Place::Arguments(_) => 0,
                };
                let replaced = body + Tokens(frame.media.0 * n_media);
                (replaced, counter.count(&edit.stub))
            };
            edits
                .iter()
                .map(edit)
                .fold(transcript.tokens(*id), |cost, (replaced, stub)| cost + stub - replaced)
        }
    });
    transcript.overhead() + items.sum()
}
