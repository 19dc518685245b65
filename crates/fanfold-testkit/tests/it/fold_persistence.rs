//! 6. A repeated step with the resulting ledger changes nothing. A fold stays until a deeper fold replaces it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use fanfold_core::{
    Analysis, EntryId, FoldedItem, Handle, Item, Place, Policy, Sequential, Session, StepInput, View, step,
};

use crate::cases::{Verdict, check_cases, fail};
use crate::drivers::{drive, view_of};

/// The folds of the previous view.
#[derive(Default)]
pub(crate) struct PreviousFolds {
    /// The tokens of each stub.
    stubs: BTreeMap<Place, usize>,
    /// For each entry, whether it is missing from the view.
    is_absent: Vec<bool>,
}

/// Everything that was folded is still folded, in the same way or deeper.
pub(crate) fn check(last: &mut PreviousFolds, session: &Session<'_>, view: &View) -> Verdict {
    let mut now = PreviousFolds { stubs: BTreeMap::new(), is_absent: vec![true; session.transcript().len()] };
    for item in &view.items {
        match item {
            Item::Whole(id) => now.is_absent[id.index()] = false,
            Item::Edited(id, edits) => {
                now.is_absent[id.index()] = false;
                let cost = |stub: &str| session.counter().count(stub).0 as usize;
                now.stubs.extend(edits.iter().map(|edit| (edit.place, cost(&edit.stub))));
            }
            Item::Note { .. } => {}
        }
    }
    for (i, was_absent) in last.is_absent.iter().enumerate() {
        if *was_absent && !now.is_absent[i] {
            return fail(format!("entry {i} came back into the view"));
        }
    }
    for (place, was) in &last.stubs {
        let is_replaced = now.is_absent[place.entry().index()] || is_in_folded_result(*place, &now);
        let has_not_grown = now.stubs.get(place).is_some_and(|now| now <= was);
        if !is_replaced && !has_not_grown {
            return fail(format!("the fold at {place:?} was removed or grew"));
        }
    }
    *last = now;
    Ok(())
}

fn is_in_folded_result(place: Place, now: &PreviousFolds) -> bool {
    matches!(place, Place::ResultMedia(call, _) if now.stubs.contains_key(&Place::Result(call)))
}

/// A further step with the same ledger folds nothing.
pub(crate) fn check_fixed_point(session: &Session<'_>) -> Verdict {
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
        Some(more) => fail(format!(
            "a repeated step folds from {} to {} tokens: {:?}",
            more.before, more.after, more.passes
        )),
    }
}

#[test]
fn a_repeated_view_is_the_same() {
    check_cases(4_000, &Policy::NAMES, |case| {
        drive(case, |session, view| {
            let again = view_of(session)?;
            if again.as_ref() == Some(view) { Ok(()) } else { fail("a repeated view differs") }
        })
    });
}

#[test]
fn a_repeated_step_folds_nothing() {
    check_cases(4_000, &Policy::NAMES, |case| drive(case, |session, _| check_fixed_point(session)));
}

#[test]
fn folds_stay() {
    check_cases(4_000, &Policy::NAMES, |case| {
        let mut last = PreviousFolds::default();
        drive(case, |session, view| check(&mut last, session, view))
    });
}

#[test]
fn an_entry_is_in_at_most_one_live_segment() {
    check_cases(2_000, &Policy::NAMES, |case| {
        drive(case, |session, _| {
            let mut seen: BTreeMap<EntryId, u32> = BTreeMap::new();
            for segment in session.ledger().live_segments() {
                segment.entries.iter().for_each(|entry| *seen.entry(*entry).or_default() += 1);
            }
            match seen.iter().find(|(_, n)| **n > 1) {
                Some((entry, n)) => fail(format!("entry {} is in {n} live segments", entry.0)),
                None => Ok(()),
            }
        })
    });
}

/// Every folded place and every fold as a whole saves tokens; otherwise it would break the prefix for nothing.
#[test]
fn folds_save_tokens() {
    check_cases(4_000, &Policy::NAMES, |case| {
        let mut session = case.session();
        for entry in &case.entries {
            session.append(entry.clone());
            let _ = session.view();
        }
        for receipt in session.ledger().receipts() {
            let is_not_shorter = |left: &&FoldedItem| left.after >= left.before;
            if let Some(left) = receipt.folded.iter().find(is_not_shorter) {
                return fail(format!("{} replaced {} tokens by {}", left.pass, left.before, left.after));
            }
            if receipt.after >= receipt.before {
                return fail(format!(
                    "a fold replaced {} tokens by {}: {:?}",
                    receipt.before, receipt.after, receipt.passes
                ));
            }
        }
        Ok(())
    });
}

/// Most folds add a segment after the first one and rarely rewrite all, because a rewrite breaks the prefix at its
/// start.
#[test]
fn most_folds_keep_the_first_segment() {
    let (n_folds, n_unchanged) = (AtomicUsize::new(0), AtomicUsize::new(0));
    check_cases(4_000, &["fanfold"], |case| {
        let mut session = case.session_with(Policy { economy: None, ..case.policy() });
        let mut n_receipts = 0;
        let mut first: Option<Handle> = None;
        for entry in &case.entries {
            session.append(entry.clone());
            view_of(&mut session)?;
            let ledger = session.ledger();
            let now = ledger.live_segments().next().map(|segment| segment.handle);
            // Later stages need every token and may rewrite the first segment.
            let new = &ledger.receipts()[n_receipts..];
            if !new.is_empty() && first.is_some() && new.iter().all(|receipt| receipt.stage == "normal") {
                n_folds.fetch_add(1, Ordering::Relaxed);
                n_unchanged.fetch_add(usize::from(now == first), Ordering::Relaxed);
            }
            (n_receipts, first) = (ledger.receipts().len(), now);
        }
        Ok(())
    });
    let (n_folds, n_unchanged) = (n_folds.into_inner(), n_unchanged.into_inner());
    assert!(n_folds > 20, "only {n_folds} folds");
    assert!(n_unchanged * 2 > n_folds, "{n_unchanged} of {n_folds} folds kept the first segment");
}
