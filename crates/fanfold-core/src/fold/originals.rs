//! Originals: the content that handles name.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::model::handle::{Address, Handle, Hash};
use crate::model::location::{Place, original_at, places_of};
use crate::model::script::write_script;
use crate::model::transcript::{CallId, EntryId, Transcript};

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

/// The original at an address; `None` if the handle is a content hash or the transcript has no such place.
pub(crate) fn original_at_address(transcript: &Transcript, handle: Handle) -> Option<Original> {
    let step = |number: u32| transcript.step_by_number(number);
    let index = |number: u32| u16::try_from(number - 1).ok();
    let call = |number: u32, call: u32| Some(CallId { step: step(number)?, call: index(call)? });
    let entry = |number: u32| EntryId(number - 1);
    let place = match handle.address()? {
        Address::Step(number) => return Some(Original::Entries(vec![step(number)?])),
        Address::Steps(first, last) => {
            let (first, last) = (step(first)?, step(last)?);
            return Some(Original::Entries((first.0..=last.0).map(EntryId).collect()));
        }
        Address::StepText(number) => Place::Text(step(number)?),
        Address::Reasoning(number) => Place::Reasoning(step(number)?),
        Address::Result(number, n) => Place::Result(call(number, n)?),
        Address::Arguments(number, n) => Place::Arguments(call(number, n)?),
        Address::ResultMedia(number, n, media) => Place::ResultMedia(call(number, n)?, index(media)?),
        Address::EntryText(number) => Place::Text(entry(number)),
        Address::EntryMedia(number, media) => Place::PromptMedia(entry(number), index(media)?),
    };
    let entry = transcript.entries().get(place.entry().index())?;
    places_of(entry, place.entry()).contains(&place).then_some(Original::Place(place))
}

/// The address of a place; `None` if one of its numbers is too large for a handle.
pub(crate) fn address_of_place(transcript: &Transcript, place: Place) -> Option<Handle> {
    let number = |index: u16| u32::from(index) + 1;
    let entry = |id: EntryId| id.0 + 1;
    let step = |id: EntryId| transcript.step_number(id);
    Handle::from_address(match place {
        Place::Text(id) => match step(id) {
            Some(step) => Address::StepText(step),
            None => Address::EntryText(entry(id)),
        },
        Place::Reasoning(id) => Address::Reasoning(step(id)?),
        Place::Arguments(call) => Address::Arguments(step(call.step)?, number(call.call)),
        Place::Result(call) => Address::Result(step(call.step)?, number(call.call)),
        Place::PromptMedia(id, i) => Address::EntryMedia(entry(id), number(i)),
        Place::ResultMedia(call, i) => Address::ResultMedia(step(call.step)?, number(call.call), number(i)),
    })
}

/// The address of consecutive entries that begin and end with a step, or of one prompt.
pub(crate) fn address_of_entries(transcript: &Transcript, entries: &[EntryId]) -> Option<Handle> {
    let (first, last) = (*entries.first()?, *entries.last()?);
    let is_contiguous = entries.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0);
    if !is_contiguous {
        return None;
    }
    if first == last && transcript.step_number(first).is_none() {
        return address_of_place(transcript, Place::Text(first));
    }
    Handle::from_address(Address::Steps(transcript.step_number(first)?, transcript.step_number(last)?))
}

/// Reads the text of an original that this transcript has.
pub(crate) fn content_of(transcript: &Transcript, originals: &Originals, original: &Original) -> String {
    let part = |handle: &Handle| find_original(transcript, originals, *handle);
    read_original(transcript, original, &part, usize::MAX).expect("a handle names an existing text")
}

/// The original that a handle names, by a fold or by its address.
pub(crate) fn find_original(
    transcript: &Transcript,
    originals: &Originals,
    handle: Handle,
) -> Option<Original> {
    let recorded = originals.get(&handle).map(|(original, _)| original.clone());
    recorded.or_else(|| original_at_address(transcript, handle))
}

/// Reads the text of an original, which may refer to others down to a depth.
///
/// Returns `None` if the transcript has no such place or a part is missing.
pub(crate) fn read_original(
    transcript: &Transcript,
    original: &Original,
    part: &dyn Fn(&Handle) -> Option<Original>,
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
            let read_part = |handle: &Handle| read_original(transcript, &part(handle)?, part, depth);
            handles.iter().map(read_part).collect()
        }
    }
}
