//! Builds the view of a transcript from its ledger.

use std::sync::Arc;

use crate::fold::ledger::{EntryState, Ledger};
use crate::model::transcript::{EntryId, Transcript};
use crate::model::view::{Edit, Item, View, Voice};

/// Builds the view of a transcript with the folds of its ledger.
pub(crate) fn assemble(transcript: &Transcript, ledger: &Ledger) -> View {
    let mut view = View { tokens: ledger.total(transcript), ..View::default() };
    grow(&mut view, transcript, ledger, 0);
    view.handles = ledger.handles_in_view();
    view
}

/// Appends the entries from index `from` on to a view.
pub(crate) fn grow(view: &mut View, transcript: &Transcript, ledger: &Ledger, from: usize) {
    let (state, summary) = (ledger.state_note(), ledger.summary_in_view());
    for i in from..transcript.len() {
        let id = EntryId::from(i);
        match ledger.entry_states.get(i).unwrap_or(&EntryState::Whole) {
            EntryState::Whole => view.items.push(Item::Whole(id)),
            EntryState::Edited(folds) => {
                let edit = |&fold: &u32| {
                    let fold = &ledger.folds[fold as usize];
                    Edit { place: fold.place, stub: Arc::clone(&fold.stub) }
                };
                view.items.push(Item::Edited(id, folds.iter().map(edit).collect()));
            }
            EntryState::Segment(segment) => {
                let segment = &ledger.segments[*segment as usize];
                if let Ok(n) = segment.parts.binary_search_by_key(&id, |part| part.at) {
                    let part = &segment.parts[n];
                    view.items.push(Item::Note { text: Arc::clone(&part.text), voice: segment.voice });
                }
            }
        }
        if let Some(state) = state.filter(|state| state.at == id) {
            view.items.push(Item::Note { text: Arc::clone(&state.text), voice: Voice::Fanfold });
        }
        if let Some(summary) = summary.as_ref().filter(|summary| summary.after == id) {
            view.items.push(Item::Note { text: Arc::clone(&summary.text), voice: Voice::Fanfold });
        }
    }
    view.tokens = ledger.total(transcript);
}
