//! 4. Every handle in a view recalls its original byte for byte as long as the session exists.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use fanfold_core::{
    CallId, EntryId, Extent, Handle, Item, Place, Policy, Segment, Session, View, check_deeply,
};

use crate::cases::{Verdict, check_cases, fail};
use crate::drivers::{SentView, drive, drive_case_as_chat, originals, view_of};

/// Everything that is not in the view can be recalled by a handle in the view.
pub(crate) fn check(session: &Session<'_>, view: &View) -> Verdict {
    let (transcript, ledger) = (session.transcript(), session.ledger());
    check_deeply(transcript, ledger, view, session.counter()).map_err(|fault| fault.to_string())?;
    let mut is_seen = vec![false; transcript.len()];
    let mut notes = String::new();
    for item in &view.items {
        match item {
            Item::Whole(id) => is_seen[id.index()] = true,
            Item::Edited(id, edits) => {
                is_seen[id.index()] = true;
                for edit in edits {
                    check_stub(session, edit.place, &edit.stub)?;
                }
            }
            Item::Note { text, .. } => notes.push_str(text),
        }
    }
    for segment in ledger.live_segments() {
        check_segment(session, segment, &notes)?;
        segment.entries.iter().for_each(|entry| is_seen[entry.index()] = true);
    }
    match is_seen.iter().position(|is_seen| !is_seen) {
        Some(entry) => fail(format!("entry {entry} is neither in the view nor can be recalled")),
        None => Ok(()),
    }
}

/// A stub names its handle, which recalls the original.
fn check_stub(session: &Session<'_>, place: Place, stub: &str) -> Verdict {
    let entry = session.transcript().entry(place.entry());
    let all = originals(entry, place.entry());
    let Some((_, original)) = all.iter().find(|(at, _)| *at == place) else {
        return fail(format!("there is no original at {place:?}"));
    };
    let Some(fold) = session.ledger().fold_at(place) else {
        return fail(format!("there is no fold at {place:?}"));
    };
    let handle = fold.handle;
    if !stub.contains(&handle.to_string()) {
        return fail(format!("the stub at {place:?} does not name {handle}: {stub}"));
    }
    if open(session, handle)? != *original {
        return fail(format!("{handle} does not recall the original at {place:?}"));
    }
    let media = all
        .iter()
        .filter(|(at, _)| matches!((at, place), (Place::ResultMedia(a, _), Place::Result(b)) if *a == b));
    for (_, raw) in media {
        if !original.contains(raw) {
            return fail(format!("the original at {place:?} lacks its media"));
        }
    }
    Ok(())
}

/// The handles of a segment are in the view, and in order they recall all entries of the segment.
fn check_segment(session: &Session<'_>, segment: &Segment, notes: &str) -> Verdict {
    let mut joined = String::new();
    for handle in &segment.handles {
        let is_named = segment.parts.iter().any(|part| part.text.contains(&handle.to_string()));
        let is_shown = segment.parts.iter().all(|part| notes.contains(&*part.text));
        if !is_named || !is_shown {
            return fail(format!("{handle} is not in the view"));
        }
        joined.push_str(&open(session, *handle)?);
    }
    let whole = open(session, segment.handle)?;
    for opened in [&joined, &whole] {
        let mut rest = opened.as_str();
        for &id in &segment.entries {
            for (place, original) in originals(session.transcript().entry(id), id) {
                let is_media = matches!(place, Place::PromptMedia(..) | Place::ResultMedia(..));
                match (rest.find(original), is_media) {
                    (Some(at), false) => rest = &rest[at + original.len()..],
                    (None, false) => {
                        let (handles, parts) = (&segment.handles, &segment.parts);
                        return fail(format!(
                            "{place:?} cannot be recalled by the handles of its segment {handles:?}:\n{parts:?}"
                        ));
                    }
                    (_, true) if opened.contains(original) => {}
                    (_, true) => {
                        return fail(format!("{place:?} cannot be recalled by the handles of its segment"));
                    }
                }
            }
        }
    }
    Ok(())
}

fn open(session: &Session<'_>, handle: Handle) -> Result<String, String> {
    let whole = session.recall(handle, &Extent::Whole).map_err(|error| error.to_string())?;
    // The ranges in the originals must give the same text.
    let within = session.recall_in_context(handle).map_err(|error| error.to_string())?;
    let joined: String = within.iter().map(|(whole, part)| &whole[part.clone()]).collect();
    if joined == whole {
        Ok(whole)
    } else {
        Err(format!("{handle} differs from its ranges in the originals"))
    }
}

/// A digest of the original of every recorded handle, with the number of results in its entries.
#[derive(Default)]
pub(crate) struct RecordedHandles(BTreeMap<Handle, (u64, usize)>);

impl RecordedHandles {
    /// Records the originals of the handles in a view.
    pub(crate) fn record(&mut self, session: &Session<'_>, view: &View) -> Verdict {
        for &handle in &view.handles {
            if let Entry::Vacant(place) = self.0.entry(handle) {
                place.insert((digest(&open(session, handle)?), n_results(session, handle)));
            }
        }
        Ok(())
    }

    /// Every recorded handle still recalls the same original. The handle of a step also gives a result that arrived late.
    pub(crate) fn check(&self, session: &Session<'_>) -> Verdict {
        for (&handle, &(first, n_first)) in &self.0 {
            let has_late_result = handle.is_address() && n_results(session, handle) > n_first;
            if digest(&open(session, handle)?) != first && !has_late_result {
                return fail(format!("{handle} recalls another text than at first"));
            }
        }
        Ok(())
    }
}

/// The number of results in the entries behind a handle.
fn n_results(session: &Session<'_>, handle: Handle) -> usize {
    let original = session.ledger().original(session.transcript(), handle);
    let entries = original.map(|original| original.entries()).unwrap_or_default();
    let steps = entries.iter().filter_map(|id| session.transcript().entry(*id).step());
    steps.flat_map(|step| &step.calls).filter(|call| call.result.is_some()).count()
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The sent messages contain the handles literally.
pub(crate) fn check_sent(sent: &SentView<'_>) -> Verdict {
    let lost = |handle: &&Handle| {
        let name = handle.to_string();
        !sent.messages.iter().any(|message| message.contains(&name))
    };
    match sent.view.handles.iter().find(lost) {
        Some(handle) => fail(format!("{handle} is in the view but not in the sent messages")),
        None => Ok(()),
    }
}

#[test]
fn everything_folded_can_be_recalled() {
    check_cases(6_000, &Policy::NAMES, |case| drive(case, |session, view| check(session, view)));
}

#[test]
fn handles_stay_valid_after_later_folds() {
    check_cases(3_000, &Policy::NAMES, |case| {
        let mut recorded = RecordedHandles::default();
        drive(case, |session, view| {
            recorded.record(session, view)?;
            recorded.check(session)
        })
    });
}

#[test]
fn sent_messages_contain_the_handles() {
    check_cases(3_000, &Policy::NAMES, |case| {
        drive_case_as_chat(case, |sent| {
            check_sent(sent)?;
            check(sent.session, sent.view)
        })
    });
}

#[test]
fn a_view_lists_the_handles_of_its_stubs_and_segments() {
    check_cases(2_000, &Policy::NAMES, |case| {
        drive(case, |session, view| {
            let ledger = session.ledger();
            let mut expected: Vec<Handle> = Vec::new();
            for item in &view.items {
                let Item::Edited(_, edits) = item else { continue };
                let folds = edits.iter().filter_map(|edit| ledger.fold_at(edit.place));
                expected.extend(folds.map(|fold| fold.handle));
            }
            expected.extend(ledger.live_segments().flat_map(|segment| &segment.handles));
            if view.handles == expected {
                Ok(())
            } else {
                fail(format!("the handles are {:?}, but {expected:?} is expected", view.handles))
            }
        })
    });
}

/// Recalls of lines and searches return parts of the original.
#[test]
fn lines_and_searches_return_parts_of_the_original() {
    check_cases(200, &["fanfold", "hermes"], |case| {
        let mut n_views = 0;
        drive(case, |session, view| {
            n_views += 1;
            let some = if n_views % 8 == 0 { view.handles.as_slice() } else { &[] };
            for &handle in some {
                let whole = open(session, handle)?;
                let lines: Vec<_> = whole.split('\n').collect();
                let each: Result<Vec<_>, _> =
                    (1..=lines.len()).map(|n| session.recall(handle, &Extent::Lines(n, n))).collect();
                if each.map_err(|error| error.to_string())? != lines {
                    return fail(format!("the lines of {handle} are wrong"));
                }
                if session.recall(handle, &Extent::Lines(lines.len() + 1, lines.len() + 1)).is_ok() {
                    return fail(format!("{handle} recalls a line after the last one"));
                }
                let Some(word) = lines.iter().flat_map(|line| line.split(' ')).find(|word| word.len() > 3)
                else {
                    continue;
                };
                let found = session.recall(handle, &Extent::Search { text: word.to_owned(), around: 0 });
                if !found.is_ok_and(|found| found.lines().any(|line| line.contains(word))) {
                    return fail(format!("a search in {handle} does not find {word}"));
                }
            }
            Ok(())
        })
    });
}

/// Every fold in the view is listed in a receipt.
#[test]
fn receipts_list_every_fold() {
    check_cases(2_000, &Policy::NAMES, |case| {
        drive(case, |session, view| {
            let left: Vec<_> =
                session.ledger().receipts().iter().flat_map(|receipt| &receipt.folded).collect();
            for item in &view.items {
                let Item::Edited(_, edits) = item else { continue };
                for edit in edits {
                    let is_reported =
                        left.iter().any(|one| one.target == fanfold_core::FoldTarget::Place(edit.place));
                    if !is_reported {
                        return fail(format!("no receipt lists {:?}", edit.place));
                    }
                }
            }
            for segment in session.ledger().live_segments() {
                let (first, last): (EntryId, EntryId) = segment.span();
                let is_reported = left.iter().any(|one| {
                    one.target == fanfold_core::FoldTarget::Entries(first, last)
                        && one.handle == segment.handle
                });
                if !is_reported {
                    return fail(format!("no receipt lists the segment at {}", first.0));
                }
            }
            let receipts = session.ledger().receipts();
            match receipts.iter().find(|receipt| {
                receipt.passes.iter().map(|pass| pass.n_folded).sum::<usize>() != receipt.folded.len()
            }) {
                Some(receipt) => fail(format!("the passes of a receipt do not add up: {:?}", receipt.passes)),
                None => Ok(()),
            }
        })
    });
}

/// Every address in a transcript opens the original there, whether or not a fold has recorded it.
pub(crate) fn check_addresses(session: &Session<'_>) -> Verdict {
    let entries = session.transcript().entries();
    let mut scripts: Vec<(bool, String)> = Vec::new();
    let mut number = 0;
    for (i, entry) in entries.iter().enumerate() {
        let is_step = entry.step().is_some();
        number += usize::from(is_step);
        for (place, original) in originals(entry, EntryId::from(i)) {
            let opened = open_address(session, &address(place, is_step, number))?;
            // A text of `null` is listed as an empty one.
            if opened != original && !original.is_empty() {
                return fail(format!("the address of {place:?} opens another text"));
            }
        }
        let name = if is_step { format!("#{number}") } else { format!("#e{}", i + 1) };
        scripts.push((is_step, open_address(session, &name)?));
    }
    for unknown in [format!("#{}", number + 1), format!("#e{}", entries.len() + 1), "#1.99".to_owned()] {
        let opened = session.recall(unknown.parse().map_err(|_| unknown.clone())?, &Extent::Whole);
        let message = opened.err().map(|error| error.to_string()).unwrap_or_default();
        if !message.contains(&format!("the conversation has {number} step")) {
            return fail(format!("the error for {unknown} is `{message}`"));
        }
    }
    check_range(session, &scripts, number)
}

/// The range of all steps contains every step and every prompt between the first and the last one, in order.
fn check_range(session: &Session<'_>, scripts: &[(bool, String)], n_steps: usize) -> Verdict {
    let is_step = |(is_step, _): &(bool, String)| *is_step;
    let (Some(first), Some(last)) = (scripts.iter().position(is_step), scripts.iter().rposition(is_step))
    else {
        return Ok(());
    };
    let range = open_address(session, &format!("#1-{n_steps}"))?;
    let mut rest = range.as_str();
    for (_, script) in &scripts[first..=last] {
        let Some(at) = rest.find(script) else {
            return fail(format!("the range of all {n_steps} steps lacks an entry"));
        };
        rest = &rest[at + script.len()..];
    }
    Ok(())
}

fn open_address(session: &Session<'_>, address: &str) -> Result<String, String> {
    open(session, address.parse().map_err(|error| format!("{error}"))?)
}

/// The address of a place in the step `number` or in an entry.
fn address(place: Place, is_step: bool, number: usize) -> String {
    let call = |call: CallId| format!("#{number}.{}", call.call + 1);
    match place {
        Place::Text(_) if is_step => format!("#{number}t"),
        Place::Text(entry) => format!("#e{}", entry.0 + 1),
        Place::Reasoning(_) => format!("#{number}r"),
        Place::Arguments(id) => format!("{}a", call(id)),
        Place::Result(id) => call(id),
        Place::PromptMedia(entry, media) => format!("#e{}i{}", entry.0 + 1, media + 1),
        Place::ResultMedia(id, media) => format!("{}i{}", call(id), media + 1),
    }
}

#[test]
fn every_address_opens_without_a_fold() {
    check_cases(1_000, &Policy::NAMES, |case| {
        let mut session = case.session();
        for entry in &case.entries {
            session.append(entry.clone());
        }
        check_addresses(&session)?;
        view_of(&mut session)?;
        check_addresses(&session)
    });
}
