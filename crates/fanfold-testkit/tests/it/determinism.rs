//! 7. The same input gives the same bytes, whether appended at once, step by step or in any portions.

use fanfold_core::{
    Budget, Entry, EntryId, Event, Outcome, ParallelMap, Policy, Session, Task, Tokens, View, ViewError,
    Words, parse,
};
use fanfold_testkit::Rng;

use crate::cases::{Case, Verdict, check_cases, fail};
use crate::drivers::{calls_of, view_of};

pub(crate) fn same(one: &mut Session<'_>, other: &mut Session<'_>) -> Verdict {
    let views: [Option<View>; 2] = [view_of(one)?, view_of(other)?];
    if views[0] != views[1] {
        let tokens =
            |view: &Option<View>| view.as_ref().map_or("none".to_owned(), |view| view.tokens.to_string());
        return fail(format!(
            "two views of the same input: {} and {} tokens",
            tokens(&views[0]),
            tokens(&views[1])
        ));
    }
    let (one, other) = (one.ledger().receipts(), other.ledger().receipts());
    if one == other {
        Ok(())
    } else {
        fail(format!("two lists of receipts for the same input: {one:#?} and {other:#?}"))
    }
}

/// Appends all entries to a new session.
pub(crate) fn replayed(entries: &[Entry], mut session: Session<'static>) -> Session<'static> {
    entries.iter().for_each(|entry| {
        session.append(entry.clone());
    });
    session
}

#[test]
fn replaying_gives_the_same_view() {
    check_cases(6_000, &Policy::NAMES, |case| {
        let mut followed = case.session();
        for entry in &case.entries {
            followed.append(entry.clone());
            let _ = followed.view();
        }
        same(&mut followed, &mut replayed(&case.entries, case.session()))
    });
}

#[test]
fn every_prefix_replays_to_its_view() {
    check_cases(1_200, &Policy::NAMES, |case| {
        let mut followed = case.session();
        for (i, entry) in case.entries.iter().enumerate().take(30) {
            followed.append(entry.clone());
            same(&mut followed, &mut replayed(&case.entries[..=i], case.session()))?;
        }
        Ok(())
    });
}

#[test]
fn the_number_of_views_does_not_matter() {
    check_cases(4_000, &Policy::NAMES, |case| {
        let mut rng = case.rng();
        let mut fed = case.session();
        for entry in &case.entries {
            fed.append(entry.clone());
            (0..rng.below(3)).for_each(|_| drop(fed.view().map(drop)));
        }
        same(&mut fed, &mut replayed(&case.entries, case.session()))
    });
}

/// Appending results one by one gives the same as appending the whole step.
#[test]
fn results_may_arrive_one_by_one() {
    check_cases(4_000, &Policy::NAMES, |case| {
        let mut fed = case.session();
        for entry in &case.entries {
            append_in_pieces(&mut fed, entry, |_| {});
        }
        same(&mut fed, &mut replayed(&case.entries, case.session()))
    });
}

/// Provisional views between the results change nothing.
#[test]
fn views_between_results_do_not_matter() {
    check_cases(4_000, &Policy::NAMES, |case| {
        let mut rng = case.rng();
        let mut fed = case.session();
        for entry in &case.entries {
            append_in_pieces(&mut fed, entry, |session| {
                if rng.percent(50) {
                    let _ = session.view();
                }
            });
        }
        same(&mut fed, &mut replayed(&case.entries, case.session()))
    });
}

fn append_in_pieces(session: &mut Session<'_>, entry: &Entry, mut between: impl FnMut(&mut Session<'_>)) {
    let Entry::Step(step) = entry else {
        session.append(entry.clone());
        return;
    };
    let mut without_results = step.clone();
    without_results.calls.iter_mut().for_each(|call| call.result = None);
    let id: EntryId = session.append(Entry::Step(without_results));
    let results: Vec<(_, Outcome)> =
        calls_of(step, id).filter_map(|(id, call)| Some((id, call.result.clone()?))).collect();
    for (call, outcome) in results {
        between(session);
        assert!(session.set_result(call, outcome), "a call waits for its result");
    }
}

/// Events of users and providers can be replayed in order.
#[test]
fn events_replay() {
    check_cases(4_000, &Policy::NAMES, |case| {
        let mut rng = case.rng();
        let mut followed = case.session();
        for entry in &case.entries {
            followed.append(entry.clone());
            if rng.percent(60) {
                let _ = followed.view();
            }
            if rng.percent(20) {
                let event = event(&mut rng, &followed);
                followed.apply(event);
            }
        }
        let events = followed.events().to_vec();
        same(&mut followed, &mut replayed_with(case, &events))
    });
}

/// Replays a conversation with events at the same positions.
pub(crate) fn replayed_with(case: &Case, events: &[(usize, Event)]) -> Session<'static> {
    let mut session = Session::new(case.policy(), case.budget(), &Words);
    let mut events = events.iter().peekable();
    for (i, entry) in case.entries.iter().enumerate() {
        session.append(entry.clone());
        while let Some((_, event)) = events.next_if(|(at, _)| *at == i + 1) {
            session.apply(event.clone());
        }
    }
    session
}

/// A random event.
pub(crate) fn event(rng: &mut Rng, session: &Session<'_>) -> Event {
    let n = session.transcript().len();
    let entry = EntryId::from(rng.below(n));
    match rng.below(10) {
        0 => Event::Pinned(entry),
        1 => Event::Unpinned(entry),
        2 => Event::Focused(rng.pick(&["", "parse_header", "timeout of the worker"]).to_owned()),
        3 => Event::FoldRequested { range: None },
        4 => Event::FoldRequested {
            range: Some((entry, EntryId::from(entry.index() + rng.below(n - entry.index())))),
        },
        5 => Event::Budget(Budget::with_reserve(Tokens(20 + rng.below(3_000) as u64), Tokens::ZERO)),
        6 => Event::Refused { limit: rng.percent(50).then(|| Tokens(50 + rng.below(2_000) as u64)) },
        7 => Event::CacheExpired,
        // Usually the count of the provider is near ours.
        8 => {
            let counted = 50 + rng.below(3_000) as u64;
            let permille = if rng.percent(80) { 850 + rng.below(300) } else { 1 + rng.below(5_000) } as u64;
            Event::UsageReported { counted: Tokens(counted), reported: Tokens(counted * permille / 1_000) }
        }
        _ => {
            let handles: Vec<_> = session.ledger().originals().map(|(handle, _)| handle).collect();
            match handles.is_empty() {
                true => Event::FoldRequested { range: None },
                false => Event::Unfolded(handles[rng.below(handles.len())]),
            }
        }
    }
}

/// Events do not break the invariants of views.
#[test]
fn views_after_events_keep_the_invariants() {
    check_cases(3_000, &Policy::NAMES, |case| {
        let mut rng = case.rng();
        let mut session = case.session();
        for entry in &case.entries {
            session.append(entry.clone());
            if rng.percent(25) {
                let event = event(&mut rng, &session);
                session.apply(event);
            }
            match session.view().cloned() {
                Ok(view) => {
                    crate::budget::check_view(&session, &view)?;
                    crate::lossless::check(&session, &view)?;
                    crate::running_calls::check(&session, &view)?;
                }
                Err(ViewError::Overflow(_)) => {}
                Err(ViewError::Fault(fault)) => return fail(fault.to_string()),
            }
        }
        Ok(())
    });
}

/// Claims three threads and runs the last task first.
pub(crate) struct Backwards;

impl ParallelMap for Backwards {
    fn n_threads(&self) -> usize {
        3
    }

    fn run(&self, tasks: Vec<Task<'_>>) {
        tasks.into_iter().rev().for_each(|task| task());
    }
}

#[test]
fn parallel_scans_change_nothing() {
    let budget = Budget::with_reserve(Tokens(20_000), Tokens::ZERO);
    let mut sequential = Session::new(Policy::fanfold(), budget, &Words);
    let mut parallel = sequential.fork();
    parallel.set_parallel(&Backwards);
    let mut text = "user    look at all of them\n".to_owned();
    for i in 0..400 {
        text += &format!("call    read {{\"path\":\"src/file_{i}.rs\"}}\nresult  use super::name_{i};\n");
        (0..8 + i % 40)
            .for_each(|line| text += &format!("        let value_{i}_{line} = read_it({line}) + {i};\n"));
    }
    for entry in parse(&text).unwrap() {
        sequential.append(entry.clone());
        parallel.append(entry);
    }
    assert_eq!(sequential.view().unwrap(), parallel.view().unwrap());
    assert!(!sequential.ledger().receipts().is_empty(), "something is folded");
}
