//! The JSON of originals. It is stored with each handle, so that the handle can be recalled by any later version.

use fanfold_core::{CallId, EntryId, Original, Place};
use serde_json::{Value, json};

/// Writes an original as JSON.
pub(crate) fn to_json(original: &Original) -> Value {
    match original {
        Original::Place(place) => json!(["place", place_to_json(*place)]),
        Original::PlaceSlice(place, bytes) => {
            json!(["bytes", place_to_json(*place), bytes.start, bytes.end])
        }
        Original::Entries(entries) => json!(["entries", runs(entries)]),
        Original::EntrySlice(entry, bytes) => json!(["script", entry.0, bytes.start, bytes.end]),
        Original::Several(entries, handles) => {
            let handles: Vec<String> = handles.iter().map(ToString::to_string).collect();
            json!(["several", runs(entries), handles])
        }
        Original::Text(entries, words) => json!(["words", runs(entries), &**words]),
    }
}

/// Reads an original from JSON.
pub(crate) fn from_json(value: &Value) -> Option<Original> {
    let size = |at: usize| value[at].as_u64().and_then(|n| usize::try_from(n).ok());
    let bytes = |from: usize| Some(size(from)?..size(from + 1)?);
    Some(match value[0].as_str()? {
        "place" => Original::Place(place_from_json(&value[1])?),
        "bytes" => Original::PlaceSlice(place_from_json(&value[1])?, bytes(2)?),
        "entries" => Original::Entries(entries(&value[1])?),
        "script" => Original::EntrySlice(EntryId(u32::try_from(size(1)?).ok()?), bytes(2)?),
        "several" => {
            let handles = value[2].as_array()?.iter().map(|handle| handle.as_str()?.parse().ok());
            Original::Several(entries(&value[1])?, handles.collect::<Option<_>>()?)
        }
        "words" => Original::Text(entries(&value[1])?, value[2].as_str()?.into()),
        _ => return None,
    })
}

fn place_to_json(place: Place) -> Value {
    match place {
        Place::Text(entry) => json!(["text", entry.0]),
        Place::Reasoning(entry) => json!(["reasoning", entry.0]),
        Place::Arguments(call) => json!(["arguments", call.step.0, call.call]),
        Place::Result(call) => json!(["result", call.step.0, call.call]),
        Place::PromptMedia(entry, i) => json!(["media", entry.0, i]),
        Place::ResultMedia(call, i) => json!(["result media", call.step.0, call.call, i]),
    }
}

fn place_from_json(value: &Value) -> Option<Place> {
    let entry = EntryId(u32::try_from(value[1].as_u64()?).ok()?);
    let number = |at: usize| value[at].as_u64().and_then(|n| u16::try_from(n).ok());
    let call = || Some(CallId { step: entry, call: number(2)? });
    Some(match value[0].as_str()? {
        "text" => Place::Text(entry),
        "reasoning" => Place::Reasoning(entry),
        "arguments" => Place::Arguments(call()?),
        "result" => Place::Result(call()?),
        "media" => Place::PromptMedia(entry, number(2)?),
        "result media" => Place::ResultMedia(call()?, number(3)?),
        _ => return None,
    })
}

/// The first and last number of each run of consecutive numbers.
pub(crate) fn runs_of(numbers: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if number == *last + 1 => *last = number,
            _ => runs.push((number, number)),
        }
    }
    runs
}

fn runs(entries: &[EntryId]) -> Vec<(u32, u32)> {
    runs_of(entries.iter().map(|entry| entry.0))
}

fn entries(value: &Value) -> Option<Vec<EntryId>> {
    // A longer run is invalid, and its entries would fill the memory.
    const MAX_RUN: u32 = 16_000_000;
    let mut entries = Vec::new();
    for run in value.as_array()? {
        let end = |at: usize| run[at].as_u64().and_then(|n| u32::try_from(n).ok());
        let (first, last) = (end(0)?, end(1)?);
        if last.saturating_sub(first) > MAX_RUN {
            return None;
        }
        entries.extend((first..=last).map(EntryId));
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use fanfold_core::Handle;

    use super::*;

    #[test]
    fn every_original_survives_the_round_trip() {
        let call = CallId { step: EntryId(7), call: 2 };
        let ids = |ids: &[u32]| ids.iter().copied().map(EntryId).collect::<Vec<_>>();
        let originals = [
            Original::Place(Place::Text(EntryId(0))),
            Original::Place(Place::Reasoning(EntryId(1))),
            Original::Place(Place::Arguments(call)),
            Original::Place(Place::PromptMedia(EntryId(3), 1)),
            Original::Place(Place::ResultMedia(call, 4)),
            Original::PlaceSlice(Place::Result(call), 10..90),
            Original::Entries(ids(&[1, 2, 3, 7, 9, 10])),
            Original::EntrySlice(EntryId(5), 0..44),
            Original::Several(ids(&[4]), vec![Handle::from_content(b"a"), Handle::from_content(b"b")]),
            Original::Text(ids(&[]), "as it was".into()),
        ];
        for original in originals {
            assert_eq!(from_json(&to_json(&original)), Some(original));
        }
        assert_eq!(
            to_json(&Original::Entries(ids(&[1, 2, 3, 7]))).to_string(),
            r#"["entries",[[1,3],[7,7]]]"#
        );
    }

    #[test]
    fn broken_json_is_no_original() {
        for text in ["null", "[]", r#"["place",["text"]]"#, r#"["entries",[[0,4000000000]]]"#, r#"["x",1]"#] {
            assert_eq!(from_json(&serde_json::from_str(text).unwrap()), None, "{text}");
        }
    }
}
