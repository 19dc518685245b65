//! 8. A step with a running call is never folded.

use fanfold_core::{Entry, EntryId, Event, Item, Policy, Session, View};

use crate::cases::{Verdict, check_cases, fail};
use crate::drivers::{drive, view_of};

/// Every step with a running call is whole in the view.
pub(crate) fn check(session: &Session<'_>, view: &View) -> Verdict {
    let transcript = session.transcript();
    let ids = (0..transcript.len()).map(EntryId::from);
    for id in ids.filter(|id| is_running(transcript.entries(), *id)) {
        if !view.items.contains(&Item::Whole(id)) {
            return fail(format!("entry {} has a running call but is not whole", id.0));
        }
    }
    Ok(())
}

/// By definition, a call is running if it has no result and no reply follows.
fn is_running(entries: &[Entry], id: EntryId) -> bool {
    let waits =
        entries[id.index()].step().is_some_and(|step| step.calls.iter().any(|call| call.result.is_none()));
    waits && entries[id.index() + 1..].iter().all(|later| later.step().is_none())
}

/// Removes the last result of the newest step, which prompts may follow.
#[test]
fn running_steps_are_whole() {
    check_cases(4_000, &Policy::NAMES, |case| {
        let mut case = case.clone();
        let last = case.entries.iter().rposition(|entry| entry.step().is_some());
        if let Some(Entry::Step(step)) = last.map(|last| &mut case.entries[last])
            && let Some(call) = step.calls.last_mut()
        {
            call.result = None;
        }
        drive(&case, |session, view| check(session, view))
    });
}

/// A requested fold does not change that.
#[test]
fn running_steps_are_whole_after_a_requested_fold() {
    check_cases(2_000, &Policy::NAMES, |case| {
        let mut session = case.session();
        for (i, entry) in case.entries.iter().enumerate() {
            let mut entry = entry.clone();
            if let Entry::Step(step) = &mut entry
                && i % 3 == 0
            {
                step.calls.iter_mut().for_each(|call| call.result = None);
            }
            session.append(entry);
            let range = (i % 2 == 0).then_some((EntryId(0), EntryId::from(i)));
            session.apply(Event::FoldRequested { range });
            if let Some(view) = view_of(&mut session)? {
                check(&session, &view)?;
            }
        }
        Ok(())
    });
}
