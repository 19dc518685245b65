//! Originals: the content that handles name.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::model::handle::{Handle, Hash};
use crate::model::location::{Place, original_at};
use crate::model::script::write_script;
use crate::model::transcript::{EntryId, Transcript};

/// The content that a handle names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Original {
    /// The whole text at a location.
    Place(Place),
    /// A byte range of the text at a location.
    PlaceSlice(Place, Range<usize>),
    /// The scripts of entries, one after another.
    Entries(Vec<EntryId>),
    /// A byte range of the script of an entry.
    EntrySlice(EntryId, Range<usize>),
    /// The originals of several handles, one after another, with the entries that contain them.
    Several(Vec<EntryId>, Vec<Handle>),
    /// A copy of the text, for entries that have changed since because a result arrived late.
    Text(Vec<EntryId>, Arc<str>),
}

impl Original {
    /// The entries that contain the original.
    pub fn entries(&self) -> Vec<EntryId> {
        match self {
            Original::Place(place) | Original::PlaceSlice(place, _) => vec![place.entry()],
            Original::Entries(entries) | Original::Several(entries, _) | Original::Text(entries, _) => {
                entries.clone()
            }
            Original::EntrySlice(entry, _) => vec![*entry],
        }
    }
}

/// All handles with their originals and the hashes of those.
pub(crate) type Originals = BTreeMap<Handle, (Original, Hash)>;

/// Reads the text of an original.
pub(crate) fn content_of(transcript: &Transcript, originals: &Originals, original: &Original) -> String {
    let whole = |place: Place| original_at(transcript, place).expect("a handle names an existing text");
    match original {
        Original::Place(place) => whole(*place).to_string(),
        Original::Text(_, text) => text.to_string(),
        Original::Several(_, handles) => {
            let of_handle = |handle: &Handle| {
                originals.get(handle).map(|(one, _)| content_of(transcript, originals, one))
            };
            handles.iter().filter_map(of_handle).collect()
        }
        Original::PlaceSlice(place, bytes) => whole(*place)[bytes.clone()].to_owned(),
        Original::Entries(entries) => {
            let mut out = String::new();
            for &entry in entries {
                write_script(transcript.entry(entry), &mut out);
            }
            out
        }
        Original::EntrySlice(entry, bytes) => {
            let mut out = String::new();
            write_script(transcript.entry(*entry), &mut out);
            out[bytes.clone()].to_owned()
        }
    }
}
