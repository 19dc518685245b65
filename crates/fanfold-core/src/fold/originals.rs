//! Originals: the content that handles name.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::model::handle::{Handle, Hash};
use crate::model::location::{Place, original_at, places_of};
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

/// Reads the text of an original that this transcript has.
pub(crate) fn content_of(transcript: &Transcript, originals: &Originals, original: &Original) -> String {
    let part = |handle: &Handle| originals.get(handle).map(|(original, _)| original);
    read_original(transcript, original, &part, usize::MAX).expect("a handle names an existing text")
}

/// Reads the text of an original, which may refer to others down to a depth.
///
/// Returns `None` if the transcript has no such place or a part is missing.
pub(crate) fn read_original<'a>(
    transcript: &Transcript,
    original: &Original,
    part: &dyn Fn(&Handle) -> Option<&'a Original>,
    depth: usize,
) -> Option<String> {
    let script = |entry: EntryId| {
        let mut out = String::new();
        write_script(transcript.entries().get(entry.index())?, &mut out);
        Some(out)
    };
    let whole = |place: Place| {
        let entry = transcript.entries().get(place.entry().index())?;
        places_of(entry, place.entry()).contains(&place).then(|| original_at(transcript, place))?
    };
    match original {
        Original::Place(place) => whole(*place).map(|text| text.to_string()),
        Original::PlaceSlice(place, bytes) => whole(*place)?.get(bytes.clone()).map(str::to_owned),
        Original::Entries(entries) => entries.iter().map(|entry| script(*entry)).collect(),
        Original::EntrySlice(entry, bytes) => script(*entry)?.get(bytes.clone()).map(str::to_owned),
        Original::Text(_, text) => Some(text.to_string()),
        Original::Several(_, handles) => {
            let depth = depth.checked_sub(1)?;
            let read_part = |handle: &Handle| read_original(transcript, part(handle)?, part, depth);
            handles.iter().map(read_part).collect()
        }
    }
}
