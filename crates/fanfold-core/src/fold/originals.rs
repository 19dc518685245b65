//! The originals that handles open.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::model::handle::{Handle, Hash};
use crate::model::location::{Place, original_at};
use crate::model::script::write_script;
use crate::model::transcript::{EntryId, Transcript};

/// What a handle opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Original {
    /// One place, whole.
    Place(Place),
    /// Some bytes of one place.
    PlaceSlice(Place, Range<usize>),
    /// Entries, written one after another.
    Entries(Vec<EntryId>),
    /// Some bytes of one entry as it is written in a script.
    EntrySlice(EntryId, Range<usize>),
    /// What several handles open, one after another; the entries are those they are in.
    Several(Vec<EntryId>, Vec<Handle>),
    /// The words themselves, where the entries have changed since: a result came late.
    Words(Vec<EntryId>, Arc<str>),
}

impl Original {
    /// The entries that the original is in.
    pub fn entries(&self) -> Vec<EntryId> {
        match self {
            Original::Place(place) | Original::PlaceSlice(place, _) => vec![place.entry()],
            Original::Entries(entries) | Original::Several(entries, _) | Original::Words(entries, _) => {
                entries.clone()
            }
            Original::EntrySlice(entry, _) => vec![*entry],
        }
    }
}

/// Every handle ever given, with what it opens and the hash of that.
pub(crate) type Originals = BTreeMap<Handle, (Original, Hash)>;

/// What a handle opens, as text.
pub(crate) fn content_of(transcript: &Transcript, named: &Originals, original: &Original) -> String {
    let whole = |place: Place| original_at(transcript, place).expect("a fold stands for something");
    match original {
        Original::Place(place) => whole(*place).to_string(),
        Original::Words(_, words) => words.to_string(),
        Original::Several(_, handles) => {
            let of_handle =
                |handle: &Handle| named.get(handle).map(|(one, _)| content_of(transcript, named, one));
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
