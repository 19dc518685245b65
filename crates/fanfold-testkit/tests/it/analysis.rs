//! 7. Dropping the analysis at any point changes no byte of the views and receipts.

use fanfold_core::{CallId, Entry, Outcome, Policy, Session};

use crate::cases::{Verdict, check_cases};
use crate::determinism::{event, same};

/// Two sessions of a conversation; the second one sometimes drops its analysis.
struct SessionPair {
    reference: Session<'static>,
    dropped: Session<'static>,
}

impl SessionPair {
    /// Applies a change to both.
    fn each(&mut self, change: impl Fn(&mut Session<'static>)) {
        change(&mut self.reference);
        change(&mut self.dropped);
    }

    fn compare(&mut self) -> Verdict {
        same(&mut self.reference, &mut self.dropped)
    }
}

#[test]
fn dropping_the_analysis_changes_nothing() {
    check_cases(8_000, &Policy::NAMES, |case| {
        let mut rng = case.rng();
        let mut pair = SessionPair { reference: case.session(), dropped: case.session() };
        let mut late: Option<(CallId, Outcome)> = None;
        for entry in &case.entries {
            let (entry, withheld) = match entry {
                Entry::Step(step) if rng.percent(10) => withhold(step.clone()),
                entry => (entry.clone(), None),
            };
            let id = pair.reference.append(entry.clone());
            pair.dropped.append(entry);
            if rng.percent(40) {
                pair.dropped.drop_analysis();
            }
            if rng.percent(60) {
                pair.compare()?;
            }
            // A result may arrive while others wait, or after the next entry.
            if let Some((call, outcome)) = late.take() {
                pair.each(|session| assert!(session.set_result(call, outcome.clone())));
            }
            late = withheld.map(|(call, outcome)| (CallId { step: id, call }, outcome));
            if rng.percent(20) {
                let event = event(&mut rng, &pair.reference);
                pair.each(|session| session.apply(event.clone()));
            }
            if rng.percent(40) {
                pair.dropped.drop_analysis();
            }
        }
        pair.compare()
    });
}

/// Removes the result of the last call of a step, and returns both.
fn withhold(mut step: fanfold_core::Step) -> (Entry, Option<(u16, Outcome)>) {
    let last = step.calls.len().checked_sub(1);
    let withheld = last.and_then(|last| Some((last as u16, step.calls[last].result.take()?)));
    (Entry::Step(step), withheld)
}
