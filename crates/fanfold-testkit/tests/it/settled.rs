//! 6. Fitting again with the resulting ledger changes nothing. A fold once made stays, or a deeper one swallows it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use fanfold_core::{
    Analysis, EntryId, FoldedItem, Handle, Item, Place, Policy, Sequential, Session, StepInput, View, step,
};

use crate::cases::{Verdict, hold, no};
use crate::walks::{view_of, walk};

/// How entries stood in the last view.
#[derive(Default)]
pub(crate) struct Last {
    stubs: BTreeMap<Place, usize>,
    is_gone: Vec<bool>,
}

/// What was folded is folded, as it was or deeper.
pub(crate) fn check(last: &mut Last, session: &Session<'_>, view: &View) -> Verdict {
    let mut now = Last { stubs: BTreeMap::new(), is_gone: vec![true; session.transcript().len()] };
    for item in &view.items {
        match item {
            Item::Whole(id) => now.is_gone[id.index()] = false,
            Item::Edited(id, edits) => {
                now.is_gone[id.index()] = false;
                let cost = |stub: &str| session.counter().count(stub).0 as usize;
                now.stubs.extend(edits.iter().map(|edit| (edit.place, cost(&edit.stub))));
            }
            Item::Note { .. } => {}
        }
    }
    for (i, was_gone) in last.is_gone.iter().enumerate() {
        if *was_gone && !now.is_gone[i] {
            return no(format!("entry {i} came back into the view"));
        }
    }
    for (place, was) in &last.stubs {
        let is_swallowed = now.is_gone[place.entry().index()] || is_in_folded_result(*place, &now);
        let is_no_longer = now.stubs.get(place).is_some_and(|now| now <= was);
        if !is_swallowed && !is_no_longer {
            return no(format!("the fold at {place:?} is gone or longer"));
        }
    }
    *last = now;
    Ok(())
}

fn is_in_folded_result(place: Place, now: &Last) -> bool {
    matches!(place, Place::ResultMedia(call, _) if now.stubs.contains_key(&Place::Result(call)))
}

/// One more step of the same ledger makes no fold.
pub(crate) fn check_again(session: &Session<'_>) -> Verdict {
    let now = StepInput {
        transcript: session.transcript(),
        policy: session.policy(),
        budget: session.budget(),
        prices: session.prices(),
        counter: session.counter(),
        parallel: &Sequential,
        event: None,
    };
    let n = session.ledger().receipts().len();
    let (ledger, _) = step(session.ledger().clone(), &mut Analysis::default(), &now);
    match ledger.receipts().get(n) {
        None => Ok(()),
        Some(more) => no(format!(
            "fitting again folds again: from {} to {} in {:?}",
            more.before, more.after, more.passes
        )),
    }
}

#[test]
fn asking_again_changes_nothing() {
    hold(4_000, &Policy::NAMES, |case| {
        walk(case, |session, view| {
            let again = view_of(session)?;
            if again.as_ref() == Some(view) { Ok(()) } else { no("the view asked for again is another one") }
        })
    });
}

#[test]
fn fitting_again_changes_nothing() {
    hold(4_000, &Policy::NAMES, |case| walk(case, |session, _| check_again(session)));
}

#[test]
fn folds_stay() {
    hold(4_000, &Policy::NAMES, |case| {
        let mut last = Last::default();
        walk(case, |session, view| check(&mut last, session, view))
    });
}

#[test]
fn an_entry_is_in_one_live_segment_or_none() {
    hold(2_000, &Policy::NAMES, |case| {
        walk(case, |session, _| {
            let mut seen: BTreeMap<EntryId, u32> = BTreeMap::new();
            for segment in session.ledger().live_segments() {
                segment.entries.iter().for_each(|entry| *seen.entry(*entry).or_default() += 1);
            }
            match seen.iter().find(|(_, n)| **n > 1) {
                Some((entry, n)) => no(format!("entry {} is in {n} live segments", entry.0)),
                None => Ok(()),
            }
        })
    });
}

/// What is folded is shorter for it, each place and each fold as a whole: else a prefix is broken for nothing.
#[test]
fn folds_win_something() {
    hold(4_000, &Policy::NAMES, |case| {
        let mut session = case.session();
        for entry in &case.entries {
            session.append(entry.clone());
            let _ = session.view();
        }
        for receipt in session.ledger().receipts() {
            let is_vain = |left: &&FoldedItem| left.after >= left.before;
            if let Some(left) = receipt.folded.iter().find(is_vain) {
                return no(format!("{} made {} tokens of {}", left.pass, left.after, left.before));
            }
            if receipt.after >= receipt.before {
                return no(format!(
                    "a fold made {} tokens of {}: {:?}",
                    receipt.after, receipt.before, receipt.passes
                ));
            }
        }
        Ok(())
    });
}

/// New segments are added behind the first, and only now and then are all of them written anew: else every fold breaks
/// the prefix where it begins.
#[test]
fn most_folds_leave_the_first_segment_alone() {
    let (n_folds, n_left_alone) = (AtomicUsize::new(0), AtomicUsize::new(0));
    hold(4_000, &["fanfold"], |case| {
        let mut session = case.session_by(Policy { economy: None, ..case.policy() });
        let mut n_receipts = 0;
        let mut first: Option<Handle> = None;
        for entry in &case.entries {
            session.append(entry.clone());
            view_of(&mut session)?;
            let ledger = session.ledger();
            let now = ledger.live_segments().next().map(|segment| segment.handle);
            // Later stages are in need of every token.
            let new = &ledger.receipts()[n_receipts..];
            if !new.is_empty() && first.is_some() && new.iter().all(|receipt| receipt.stage == "normal") {
                n_folds.fetch_add(1, Ordering::Relaxed);
                n_left_alone.fetch_add(usize::from(now == first), Ordering::Relaxed);
            }
            (n_receipts, first) = (ledger.receipts().len(), now);
        }
        Ok(())
    });
    let (n_folds, n_left_alone) = (n_folds.into_inner(), n_left_alone.into_inner());
    assert!(n_folds > 20, "too few folds to tell: {n_folds}");
    assert!(n_left_alone * 2 > n_folds, "{n_left_alone} of {n_folds} folds left the first segment alone");
}
