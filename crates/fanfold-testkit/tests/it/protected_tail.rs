//! New entries stay whole until a stage is reached that may fold them.

use fanfold_core::{
    Budget, Entry, EntryId, FoldTarget, FoldedItem, Item, Place, Policy, Receipt, Session, Tokens, View,
    Words, parse,
};

use crate::cases::{Verdict, check_cases, fail};
use crate::drivers::drive;

/// The stages that do not fold the newest steps.
const EARLY_STAGES: [&str; 4] = ["normal", "smaller tail", "smallest tail", "stubs"];

fn has_only_early_stages(session: &Session<'_>) -> bool {
    session.ledger().receipts().iter().all(|receipt| EARLY_STAGES.contains(&receipt.stage))
}

fn check_whole(view: &View, id: EntryId) -> Verdict {
    if view.items.contains(&Item::Whole(id)) {
        Ok(())
    } else {
        fail(format!("entry {} is new but not whole", id.0))
    }
}

/// The number of protected steps is that of the tail of the policy. Passes for old media and reasoning respect the
/// tail, too.
#[test]
fn the_newest_steps_are_whole() {
    check_cases(3_000, &["fanfold", "hermes", "rules", "hamr"], |case| {
        drive(case, |session, view| {
            if !has_only_early_stages(session) {
                return Ok(());
            }
            let entries = session.transcript().entries();
            let steps = (0..entries.len()).rev().filter(|i| entries[*i].step().is_some());
            let n_steps = session.policy().tail.steps;
            steps.take(n_steps).try_for_each(|i| check_whole(view, EntryId::from(i)))
        })
    });
}

/// The number of protected results is that of the tail of the policy.
#[test]
fn the_newest_results_are_whole() {
    check_cases(3_000, &["mask"], |case| {
        drive(case, |session, view| {
            if !has_only_early_stages(session) {
                return Ok(());
            }
            let mut left = session.policy().tail.results;
            for (i, entry) in session.transcript().entries().iter().enumerate().rev() {
                let n_results = entry.step().map_or(0, |step| step.calls.len());
                if n_results > 0 && left > 0 {
                    check_whole(view, EntryId::from(i))?;
                }
                left = left.saturating_sub(n_results);
            }
            Ok(())
        })
    });
}

/// The newest user message keeps its text, and the newest user message with images keeps them, as long as they fit.
#[test]
fn the_newest_user_message_keeps_its_text_and_images() {
    check_cases(3_000, &["fanfold"], |case| {
        drive(case, |session, view| {
            let entries = session.transcript().entries();
            let newest = entries.iter().rposition(Entry::is_user).map(EntryId::from);
            let has_images = |entry: &Entry| {
                entry.is_user() && entry.prompt().is_some_and(|prompt| !prompt.media.is_empty())
            };
            let newest_images = entries.iter().rposition(has_images).map(EntryId::from);
            for item in &view.items {
                let Item::Edited(id, edits) = item else { continue };
                let is_cut = edits.iter().any(|edit| edit.place == Place::Text(*id));
                let lost_images = edits.iter().any(|edit| matches!(edit.place, Place::PromptMedia(..)));
                let receipts = session.ledger().receipts();
                // A receipt of the last stage lists the message.
                let is_reported = receipts
                    .iter()
                    .any(|receipt| receipt.stage == "newest user message" && receipt.user_text.contains(id));
                if Some(*id) == newest && is_cut && !is_reported {
                    return fail("the newest user message is cut");
                }
                // It may have been the newest message when it was folded, but that was a last resort as well.
                let is_last_resort = receipts.iter().any(|receipt| !EARLY_STAGES.contains(&receipt.stage));
                if Some(*id) == newest_images && lost_images && !is_last_resort {
                    return fail("the newest images are folded");
                }
            }
            Ok(())
        })
    });
}

/// The newest images are folded one by one until the view fits.
#[test]
fn the_newest_images_stay_while_they_fit() {
    check_cases(6_000, &["fanfold"], |case| {
        drive(case, |session, view| {
            let is_current = |receipt: &&Receipt| receipt.at == session.transcript().len();
            let Some(receipt) = session.ledger().receipts().last().filter(is_current) else { return Ok(()) };
            let is_image = |left: &&FoldedItem| {
                matches!(left.target, FoldTarget::Place(Place::PromptMedia(..))) && left.pass == "media"
            };
            let Some(last) = receipt.folded.iter().rfind(is_image) else { return Ok(()) };
            let is_needless = view.tokens - last.after + last.before <= session.budget().room();
            if receipt.stage == "newest images" && is_needless {
                return fail(format!("{:?} would fit", last.target));
            }
            Ok(())
        })
    });
}

/// In these policies, the leading system messages stay whole; in `fanfold`, all of them.
#[test]
fn system_text_stays() {
    check_cases(3_000, &["fanfold", "mask", "hamr", "hermes", "window"], |case| {
        drive(case, |session, view| {
            for (i, entry) in session.transcript().entries().iter().enumerate() {
                let is_first = session.transcript().entries()[..i].iter().all(Entry::is_system);
                if entry.is_system() && (is_first || case.policy == "fanfold") {
                    check_whole(view, EntryId::from(i))?;
                }
            }
            Ok(())
        })
    });
}

/// Images cost as much as pages of text, so old ones are folded, and the newest message with images keeps them.
#[test]
fn old_images_are_folded_and_the_newest_stay() {
    let steps =
        "call    bash {\"command\":\"make\"}\nresult  one two three four five six seven eight nine ten\n"
            .repeat(20);
    let conversation = format!(
        "user    what is this?\nimage   image/png\nsay     a square\nuser    and this?\nimage   image/png\n{steps}"
    );
    let budget = Budget::with_reserve(Tokens(300), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, &Words);
    for entry in parse(&conversation).unwrap() {
        session.append(entry);
    }
    let view = session.view().unwrap();
    let is_folded =
        |id| view.items.iter().any(|item| matches!(item, Item::Edited(at, _) if *at == EntryId(id)));
    assert!(is_folded(0) && !is_folded(2), "{view:?}");
    assert!(view.items.contains(&Item::Whole(EntryId(2))), "{view:?}");
}

/// A command of the harness may start a conversation. Its steps are not the context of the first user message, so they
/// do not stay for the rest of the session.
#[test]
fn steps_before_the_first_user_message_are_folded() {
    let step = |i: usize| format!("call    read file_{i}.rs\nresult  {}\n", format!("line_{i} ").repeat(20));
    let steps = |range: std::ops::Range<usize>| range.map(step).collect::<String>();
    let text = format!("harness /review\n{}user    and now mend it\n{}", steps(0..8), steps(8..60));
    let budget = Budget::with_reserve(Tokens(400), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, &Words);
    for entry in parse(&text).expect("notation") {
        session.append(entry);
        session.view().expect("it fits");
    }
    let view = session.view().expect("it fits");
    let early = view
        .items
        .iter()
        .filter(|item| matches!(item, Item::Whole(id) | Item::Edited(id, _) if (1..9).contains(&id.0)));
    assert_eq!(early.count(), 0, "{view:?}");
}
