//! What is new stays as it is, for as long as a stage suffices that does not reach for it.

use fanfold_core::{
    Budget, Entry, EntryId, FoldTarget, FoldedItem, Item, Place, Policy, Receipt, Session, Tokens, View,
    Words, parse,
};

use crate::cases::{Verdict, hold, no};
use crate::walks::walk;

/// Stages that leave the newest steps alone.
const GENTLE: [&str; 4] = ["normal", "smaller tail", "smallest tail", "stubs"];

fn is_gentle(session: &Session<'_>) -> bool {
    session.ledger().receipts().iter().all(|receipt| GENTLE.contains(&receipt.stage))
}

fn check_whole(view: &View, id: EntryId) -> Verdict {
    if view.items.contains(&Item::Whole(id)) {
        Ok(())
    } else {
        no(format!("entry {} is new and not whole", id.0))
    }
}

/// The floor of the tail, in steps. Old media and reasoning leave `hermes`' tail alone like all else.
#[test]
fn the_newest_steps_are_whole() {
    hold(3_000, &["fanfold", "hermes", "rules", "hamr"], |case| {
        walk(case, |session, view| {
            if !is_gentle(session) {
                return Ok(());
            }
            let entries = session.transcript().entries();
            let steps = (0..entries.len()).rev().filter(|i| entries[*i].step().is_some());
            let n_steps = session.policy().tail.steps;
            steps.take(n_steps).try_for_each(|i| check_whole(view, EntryId::from(i)))
        })
    });
}

/// The floor of the tail, in results.
#[test]
fn the_newest_results_are_whole() {
    hold(3_000, &["mask"], |case| {
        walk(case, |session, view| {
            if !is_gentle(session) {
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

/// The newest message of a person that has images keeps them, and the newest message keeps its words, for as long as
/// they fit.
#[test]
fn the_newest_user_message_keeps_its_words_and_images() {
    hold(3_000, &["fanfold"], |case| {
        walk(case, |session, view| {
            let entries = session.transcript().entries();
            let newest = entries.iter().rposition(Entry::is_user).map(EntryId::from);
            let has_images = |entry: &Entry| {
                entry.is_user() && entry.prompt().is_some_and(|prompt| !prompt.media.is_empty())
            };
            let newest_images = entries.iter().rposition(has_images).map(EntryId::from);
            for item in &view.items {
                let Item::Edited(id, edits) = item else { continue };
                let is_cut = edits.iter().any(|edit| edit.place == Place::Text(*id));
                let is_blind = edits.iter().any(|edit| matches!(edit.place, Place::PromptMedia(..)));
                let receipts = session.ledger().receipts();
                // The receipt names the stage that reaches for it.
                let is_told = receipts
                    .iter()
                    .any(|receipt| receipt.stage == "newest user message" && receipt.user_text.contains(id));
                if Some(*id) == newest && is_cut && !is_told {
                    return no("the newest user message is cut");
                }
                // When it was folded there may have been none that was newer, but that was a last resort, too.
                let is_last_resort = receipts.iter().any(|receipt| !GENTLE.contains(&receipt.stage));
                if Some(*id) == newest_images && is_blind && !is_last_resort {
                    return no("the newest images are folded");
                }
            }
            Ok(())
        })
    });
}

/// The newest images go one by one, and only as many as must.
#[test]
fn the_newest_images_stay_while_they_fit() {
    hold(6_000, &["fanfold"], |case| {
        walk(case, |session, view| {
            let is_now = |receipt: &&Receipt| receipt.at == session.transcript().len();
            let Some(receipt) = session.ledger().receipts().last().filter(is_now) else { return Ok(()) };
            let is_image = |left: &&FoldedItem| {
                matches!(left.target, FoldTarget::Place(Place::PromptMedia(..))) && left.pass == "media"
            };
            let Some(last) = receipt.folded.iter().rfind(is_image) else { return Ok(()) };
            let is_needless = view.tokens - last.after + last.before <= session.budget().room();
            if receipt.stage == "newest images" && is_needless {
                return no(format!("{:?} would fit", last.target));
            }
            Ok(())
        })
    });
}

/// System text stands in every view of every policy but for `rules`, which folds what comes late, and the last resort
/// of the presets.
#[test]
fn system_text_stays() {
    hold(3_000, &["fanfold", "mask", "hamr", "hermes", "window"], |case| {
        walk(case, |session, view| {
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

/// Pictures cost as much as pages: the old ones go, and the newest message that has some keeps its own.
#[test]
fn old_images_go_and_the_newest_stay() {
    let steps =
        "call    bash {\"command\":\"make\"}\nresult  one two three four five six seven eight nine ten\n"
            .repeat(20);
    let said = format!(
        "user    what is this?\nimage   image/png\nsay     a square\nuser    and this?\nimage   image/png\n{steps}"
    );
    let budget = Budget::with_reserve(Tokens(300), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, &Words);
    for entry in parse(&said).unwrap() {
        session.append(entry);
    }
    let view = session.view().unwrap();
    let is_folded =
        |id| view.items.iter().any(|item| matches!(item, Item::Edited(at, _) if *at == EntryId(id)));
    assert!(is_folded(0) && !is_folded(2), "{view:?}");
    assert!(view.items.contains(&Item::Whole(EntryId(2))), "{view:?}");
}
