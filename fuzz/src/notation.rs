//! The text notation: parsed text can be printed, and parsing the print gives the same entries.

use fanfold_core::{EntryId, Item, Transcript, View, Words, parse, print_entries, print_view};

/// Parses and prints. Panics if the two do not agree.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(entries) = parse(text) else { return };
    let printed = print_entries(&entries);
    let again = parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(again, entries, "{printed}");
    assert_eq!(print_entries(&again), printed, "printed twice");
    let mut transcript = Transcript::new();
    for entry in entries {
        transcript.append(entry, &Words);
    }
    let items = (0..transcript.len()).map(|i| Item::Whole(EntryId::from(i))).collect();
    let view = View { items, ..View::default() };
    assert_eq!(print_view(&transcript, &view), printed, "a view in which nothing is folded");
}
