//! Locations in a transcript that a fold can replace.

use std::sync::Arc;

use crate::model::transcript::{Body, CallId, Entry, EntryId, Transcript};

/// A part of an entry that a fold can replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The text of a prompt or of a step.
    Text(EntryId),
    /// The reasoning of a step.
    Reasoning(EntryId),
    /// The arguments of a call.
    Arguments(CallId),
    /// The result of a call.
    Result(CallId),
    /// An image or a file of a prompt, by its index.
    PromptMedia(EntryId, u16),
    /// An image or a file of a result, by its index.
    ResultMedia(CallId, u16),
}

impl Place {
    /// The entry that contains the place.
    pub fn entry(self) -> EntryId {
        match self {
            Place::Text(entry) | Place::Reasoning(entry) | Place::PromptMedia(entry, _) => entry,
            Place::Arguments(call) | Place::Result(call) | Place::ResultMedia(call, _) => call.step,
        }
    }
}

/// All places of an entry.
pub(crate) fn places_of(entry: &Entry, id: EntryId) -> Vec<Place> {
    let mut places = vec![Place::Text(id)];
    match entry {
        Entry::Prompt(prompt) => {
            places.extend((0..prompt.media.len()).map(|i| Place::PromptMedia(id, i as u16)));
        }
        Entry::Step(step) => {
            places.push(Place::Reasoning(id));
            for (i, call) in step.calls.iter().enumerate() {
                let call_id = CallId { step: id, call: i as u16 };
                places.push(Place::Arguments(call_id));
                if let Some(outcome) = &call.result {
                    places.push(Place::Result(call_id));
                    places.extend((0..outcome.media.len()).map(|i| Place::ResultMedia(call_id, i as u16)));
                }
            }
        }
    }
    places
}

/// The text at a place; `None` for media.
pub(crate) fn body_at(transcript: &Transcript, place: Place) -> Option<&Body> {
    match place {
        Place::Text(entry) => Some(match transcript.entry(entry) {
            Entry::Prompt(prompt) => &prompt.body,
            Entry::Step(step) => &step.text,
        }),
        Place::Reasoning(entry) => transcript.entry(entry).step().map(|step| &step.reasoning),
        Place::Arguments(call) => Some(&transcript.call(call).arguments),
        Place::Result(call) => transcript.call(call).result.as_ref().map(|outcome| &outcome.body),
        Place::PromptMedia(..) | Place::ResultMedia(..) => None,
    }
}

/// The original at a place, byte for byte.
pub(crate) fn original_at(transcript: &Transcript, place: Place) -> Option<Arc<str>> {
    if let Some(body) = body_at(transcript, place) {
        return Some(Arc::clone(body.original()));
    }
    let media = match place {
        Place::PromptMedia(entry, i) => transcript.entry(entry).prompt()?.media.get(usize::from(i)),
        Place::ResultMedia(call, i) => transcript.call(call).result.as_ref()?.media.get(usize::from(i)),
        _ => None,
    };
    media.map(|media| Arc::clone(&media.raw))
}
