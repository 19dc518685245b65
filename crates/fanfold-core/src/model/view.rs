//! What will be sent: the transcript as its ledger shows it.

use std::sync::Arc;

use crate::fold::ledger::{Ledger, Standing};
use crate::model::handle::Handle;
use crate::model::tokens::Tokens;
use crate::model::transcript::{CallId, EntryId, Transcript};

/// What a fold replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The text of a prompt, or what the model said in a step.
    Text(EntryId),
    /// What the model thought in a step.
    Reasoning(EntryId),
    /// The arguments of a call.
    Arguments(CallId),
    /// The result of a call.
    Result(CallId),
    /// An image or file of a prompt, by its position there.
    PromptMedia(EntryId, u16),
    /// An image or file of a result, by its position there.
    ResultMedia(CallId, u16),
}

impl Place {
    /// The entry that the place is in.
    pub fn entry(self) -> EntryId {
        match self {
            Place::Text(entry) | Place::Reasoning(entry) | Place::PromptMedia(entry, _) => entry,
            Place::Arguments(call) | Place::Result(call) | Place::ResultMedia(call, _) => call.step,
        }
    }
}

/// One place of an entry that is sent as something shorter.
///
/// An empty stub means that the place is left out: only reasoning is ever left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced.
    pub place: Place,
    /// What is sent instead. For arguments this is JSON where the arguments were JSON.
    pub stub: Arc<str>,
}

/// In whose role a note is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Voice {
    /// As a message of fanfold's in the user role, fenced and marked.
    Fanfold,
    /// As a text of the assistant's.
    Assistant,
}

/// One piece of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An entry as it came.
    Whole(EntryId),
    /// An entry with some of its places folded.
    Edited(EntryId, Vec<Edit>),
    /// Words of fanfold's own that stand for entries, or that orient the model.
    Note {
        /// The words.
        text: Arc<str>,
        /// In whose role they are sent.
        voice: Voice,
    },
}

/// The messages to send; derived, never stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// The pieces in order.
    pub items: Vec<Item>,
    /// What they cost, tool schemas included.
    pub tokens: Tokens,
    /// The handles that stand in the view.
    pub handles: Vec<Handle>,
}

impl View {
    /// Whether every entry is sent as it came and nothing was added.
    pub fn is_untouched(&self) -> bool {
        self.items.iter().all(|item| matches!(item, Item::Whole(_)))
    }
}

/// The view of a transcript as its ledger shows it.
pub fn assemble(transcript: &Transcript, ledger: &Ledger) -> View {
    let mut view = View { tokens: ledger.total(transcript), ..View::default() };
    grow(&mut view, transcript, ledger, 0);
    view.handles = ledger.handles_in_view();
    view
}

/// Adds the entries from `from` on to a view.
pub(crate) fn grow(view: &mut View, transcript: &Transcript, ledger: &Ledger, from: usize) {
    for i in from..transcript.len() {
        let id = EntryId::from(i);
        match ledger.standing.get(i).unwrap_or(&Standing::Whole) {
            Standing::Whole => view.items.push(Item::Whole(id)),
            Standing::Edited(folds) => {
                let edit = |&fold: &u32| {
                    let fold = &ledger.folds[fold as usize];
                    Edit { place: fold.place, stub: Arc::clone(&fold.stub) }
                };
                view.items.push(Item::Edited(id, folds.iter().map(edit).collect()));
            }
            Standing::Segment(segment) => {
                let segment = &ledger.segments[*segment as usize];
                if let Ok(n) = segment.parts.binary_search_by_key(&id, |part| part.at) {
                    let part = &segment.parts[n];
                    view.items.push(Item::Note { text: Arc::clone(&part.text), voice: segment.voice });
                }
            }
        }
        if let Some(summary) = ledger.summary_in_view().filter(|summary| summary.behind == id) {
            view.items.push(Item::Note { text: Arc::clone(&summary.text), voice: Voice::Fanfold });
        }
    }
    view.tokens = ledger.total(transcript);
}
