//! 4. Every handle in a view recalls its original, byte for byte, for as long as the session lives.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use fanfold_core::{EntryId, Extent, Handle, Item, Place, Policy, Segment, Session, View, check_deeply};

use crate::cases::{Verdict, hold, no};
use crate::walks::{Sent, originals, walk, walk_case_in_chat};

/// All that is not in the view is behind a handle that stands in it, word for word.
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
        Some(entry) => no(format!("entry {entry} is neither in the view nor behind a handle")),
        None => Ok(()),
    }
}

/// A stub names its original, and the slices of it are all of it.
fn check_stub(session: &Session<'_>, place: Place, stub: &str) -> Verdict {
    let entry = session.transcript().entry(place.entry());
    let all = originals(entry, place.entry());
    let Some((_, original)) = all.iter().find(|(at, _)| *at == place) else {
        return no(format!("nothing is at {place:?}"));
    };
    let Some(fold) = session.ledger().fold_at(place) else { return no(format!("no fold is at {place:?}")) };
    for handle in &fold.handles {
        if !stub.contains(&handle.to_string()) {
            return no(format!("the stub at {place:?} does not name {handle}: {stub}"));
        }
    }
    let Some((whole, slices)) = fold.handles.split_first() else {
        return no(format!("the stub at {place:?} has no handle"));
    };
    if open(session, *whole)? != *original {
        return no(format!("{whole} does not open to what was at {place:?}"));
    }
    let joined: String = slices.iter().map(|slice| open(session, *slice)).collect::<Result<_, _>>()?;
    if !slices.is_empty() && joined != *original {
        return no(format!("the slices of {whole} are not all of it"));
    }
    let media = all
        .iter()
        .filter(|(at, _)| matches!((at, place), (Place::ResultMedia(a, _), Place::Result(b)) if *a == b));
    for (_, raw) in media {
        if !original.contains(raw) {
            return no(format!("media of {place:?} are lost"));
        }
    }
    Ok(())
}

/// The handles of a segment stand in the view, and open one after another to all that it stands for.
fn check_segment(session: &Session<'_>, segment: &Segment, notes: &str) -> Verdict {
    let mut joined = String::new();
    for handle in &segment.handles {
        let is_named = segment.parts.iter().any(|part| part.text.contains(&handle.to_string()));
        let is_shown = segment.parts.iter().all(|part| notes.contains(&*part.text));
        if !is_named || !is_shown {
            return no(format!("{handle} does not stand in the view"));
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
                        return no(format!("{place:?} is not behind the handles of its segment"));
                    }
                    (_, true) if opened.contains(original) => {}
                    (_, true) => return no(format!("{place:?} is not behind the handles of its segment")),
                }
            }
        }
    }
    Ok(())
}

fn open(session: &Session<'_>, handle: Handle) -> Result<String, String> {
    let whole = session.recall(handle, &Extent::Whole).map_err(|error| error.to_string())?;
    // What it is cut out of holds it, where it says so.
    let within = session.recall_in_context(handle).map_err(|error| error.to_string())?;
    let joined: String = within.iter().map(|(whole, part)| &whole[part.clone()]).collect();
    if joined == whole { Ok(whole) } else { Err(format!("{handle} is not what it is cut out of")) }
}

/// What every handle opened to when it was first seen.
#[derive(Default)]
pub(crate) struct Remembered(BTreeMap<Handle, u64>);

impl Remembered {
    /// Notes what the handles of a view open to.
    pub(crate) fn see(&mut self, session: &Session<'_>, view: &View) -> Verdict {
        for &handle in &view.handles {
            if let Entry::Vacant(place) = self.0.entry(handle) {
                place.insert(digest(&open(session, handle)?));
            }
        }
        Ok(())
    }

    /// Every handle ever seen opens to what it opened to at first.
    pub(crate) fn check(&self, session: &Session<'_>) -> Verdict {
        for (&handle, &first) in &self.0 {
            if digest(&open(session, handle)?) != first {
                return no(format!("{handle} opens to something else than at first"));
            }
        }
        Ok(())
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The handles stand literally in what is sent.
pub(crate) fn check_sent(sent: &Sent<'_>) -> Verdict {
    let lost = |handle: &&Handle| {
        let name = handle.to_string();
        !sent.messages.iter().any(|message| message.contains(&name))
    };
    match sent.view.handles.iter().find(lost) {
        Some(handle) => no(format!("{handle} is in the view and not in what is sent")),
        None => Ok(()),
    }
}

#[test]
fn all_that_left_is_behind_a_handle() {
    hold(6_000, &Policy::NAMES, |case| walk(case, |session, view| check(session, view)));
}

#[test]
fn handles_open_after_many_more_folds() {
    hold(3_000, &Policy::NAMES, |case| {
        let mut remembered = Remembered::default();
        walk(case, |session, view| {
            remembered.see(session, view)?;
            remembered.check(session)
        })
    });
}

#[test]
fn handles_stand_in_what_is_sent() {
    hold(3_000, &Policy::NAMES, |case| {
        walk_case_in_chat(case, |sent| {
            check_sent(sent)?;
            check(sent.session, sent.view)
        })
    });
}

#[test]
fn handles_of_a_view_are_those_of_its_stubs_and_segments() {
    hold(2_000, &Policy::NAMES, |case| {
        walk(case, |session, view| {
            let ledger = session.ledger();
            let mut expected: Vec<Handle> = Vec::new();
            for item in &view.items {
                let Item::Edited(_, edits) = item else { continue };
                // What is small comes first.
                for fold in edits.iter().filter_map(|edit| ledger.fold_at(edit.place)) {
                    expected.extend(&fold.handles[1..]);
                    expected.push(fold.handles[0]);
                }
            }
            expected.extend(ledger.live_segments().flat_map(|segment| &segment.handles));
            if view.handles == expected {
                Ok(())
            } else {
                no(format!("{:?} and not {expected:?}", view.handles))
            }
        })
    });
}

/// Lines and searches give parts of the same original.
#[test]
fn parts_of_an_original_are_parts_of_it() {
    hold(200, &["fanfold", "hermes"], |case| {
        let mut n_views = 0;
        walk(case, |session, view| {
            n_views += 1;
            let some = if n_views % 8 == 0 { view.handles.as_slice() } else { &[] };
            for &handle in some {
                let whole = open(session, handle)?;
                let lines: Vec<_> = whole.split('\n').collect();
                let each: Result<Vec<_>, _> =
                    (1..=lines.len()).map(|n| session.recall(handle, &Extent::Lines(n, n))).collect();
                if each.map_err(|error| error.to_string())? != lines {
                    return no(format!("the lines of {handle} are not its own"));
                }
                if session.recall(handle, &Extent::Lines(lines.len() + 1, lines.len() + 1)).is_ok() {
                    return no(format!("{handle} has a line more than it has"));
                }
                let Some(word) = lines.iter().flat_map(|line| line.split(' ')).find(|word| word.len() > 3)
                else {
                    continue;
                };
                let found = session.recall(handle, &Extent::Search { text: word.to_owned(), around: 0 });
                if !found.is_ok_and(|found| found.lines().any(|line| line.contains(word))) {
                    return no(format!("{word} is not found in {handle}"));
                }
            }
            Ok(())
        })
    });
}

/// Receipts tell of all that left: each fold that is made stands in one.
#[test]
fn receipts_tell_of_every_fold() {
    hold(2_000, &Policy::NAMES, |case| {
        walk(case, |session, view| {
            let left: Vec<_> =
                session.ledger().receipts().iter().flat_map(|receipt| &receipt.folded).collect();
            for item in &view.items {
                let Item::Edited(_, edits) = item else { continue };
                for edit in edits {
                    let is_told =
                        left.iter().any(|one| one.target == fanfold_core::FoldTarget::Place(edit.place));
                    if !is_told {
                        return no(format!("no receipt tells of {:?}", edit.place));
                    }
                }
            }
            for segment in session.ledger().live_segments() {
                let (first, last): (EntryId, EntryId) = segment.span();
                let is_told = left.iter().any(|one| {
                    one.target == fanfold_core::FoldTarget::Entries(first, last)
                        && one.handle == segment.handle
                });
                if !is_told {
                    return no(format!("no receipt tells of the segment at {}", first.0));
                }
            }
            let receipts = session.ledger().receipts();
            match receipts.iter().find(|receipt| {
                receipt.passes.iter().map(|pass| pass.n_folded).sum::<usize>() != receipt.folded.len()
            }) {
                Some(receipt) => no(format!("the passes of a receipt do not add up: {:?}", receipt.passes)),
                None => Ok(()),
            }
        })
    });
}

/// Two originals whose short names are the same open each to its own.
#[test]
fn originals_never_share_a_handle() {
    let mut seen: BTreeMap<Handle, usize> = BTreeMap::new();
    let text = |i: usize| format!("original number {i} and a few more words that make it worth folding away");
    let found =
        (0..1_000_000).find_map(|i| seen.insert(Handle::new(text(i).as_bytes()), i).map(|other| (other, i)));
    let (one, other) = found.unwrap();
    let said = format!(
        "user    go\ncall    read a\nresult  {}\ncall    read b\nresult  {}\nsay     well\n",
        text(one),
        text(other)
    );
    let mut policy = Policy::named("mask").unwrap();
    policy.tail.results = 0;
    let budget = fanfold_core::Budget::with_reserve(fanfold_core::Tokens(1_000), fanfold_core::Tokens::ZERO);
    let mut session = Session::new(policy, budget, &fanfold_core::Words);
    fanfold_core::parse(&said).unwrap().into_iter().for_each(|entry| {
        session.append(entry);
    });
    let view = session.view().unwrap().clone();
    let opened: Vec<_> = view.handles.iter().map(|handle| open(&session, *handle).unwrap()).collect();
    assert_eq!(opened, [text(one), text(other)]);
}
