//! 5. Between folds, each view begins with the previous one. Each change of the prefix has a receipt.
//!
//! `rules`, `mask` and `window` fold at almost every step. The frequency of folds is measured elsewhere and no
//! invariant.

use fanfold_core::{Policy, Reason, Session, Words};

use crate::cases::{Verdict, check_cases, fail};
use crate::drivers::{SentView, drive_case_as_chat};

/// The messages of the previous view, and the number of receipts at that time.
#[derive(Default)]
pub(crate) struct PreviousView {
    messages: Vec<String>,
    n_receipts: usize,
}

/// The messages begin with the previous ones unless there is a new receipt, which must have a reason.
pub(crate) fn check_sent(previous: &mut PreviousView, sent: &SentView<'_>) -> Verdict {
    let receipts = sent.session.ledger().receipts();
    let is_folded = receipts.len() > previous.n_receipts;
    for receipt in &receipts[previous.n_receipts..] {
        let trigger = sent.session.policy().strategy.trigger(sent.session.budget());
        let is_due = trigger.is_some_and(|trigger| receipt.before > trigger);
        let has_other_reason = matches!(
            receipt.reason,
            Reason::Requested | Reason::Refused | Reason::Cap | Reason::Again | Reason::Economy(_)
        );
        if !is_due && !has_other_reason {
            return fail(format!("a fold without a reason at {} tokens", receipt.before));
        }
        if receipt.folded.is_empty() {
            return fail("a receipt lists no folds");
        }
    }
    let is_prefix = sent.messages.len() >= previous.messages.len()
        && sent.messages.iter().zip(&previous.messages).all(|(a, b)| a == b);
    if !is_folded && !is_prefix {
        let at = sent.messages.iter().zip(&previous.messages).position(|(a, b)| a != b);
        return fail(format!("message {at:?} changed without a receipt"));
    }
    *previous = PreviousView { messages: sent.messages.to_vec(), n_receipts: receipts.len() };
    Ok(())
}

#[test]
fn a_view_begins_with_the_previous_one() {
    check_cases(4_000, &Policy::NAMES, |case| {
        let mut previous = PreviousView::default();
        drive_case_as_chat(case, |sent| check_sent(&mut previous, sent))
    });
}

#[test]
fn conversations_below_the_trigger_are_not_folded() {
    check_cases(2_000, &["fanfold", "hermes", "rules", "hamr", "window"], |case| {
        let mut session = Session::new(case.policy(), case.budget(), &Words);
        for entry in &case.entries {
            session.append(entry.clone());
            let is_small = fits(&session);
            let is_folded = !session.ledger().receipts().is_empty();
            if is_small && is_folded {
                return fail("a small conversation was folded");
            }
            if !is_small {
                return Ok(());
            }
            let view = session.view().map_err(|refusal| refusal.to_string())?;
            if !view.is_untouched() {
                return fail("the view of a small conversation has folds");
            }
        }
        Ok(())
    });
}

fn fits(session: &Session<'_>) -> bool {
    let trigger = session.policy().strategy.trigger(session.budget()).unwrap();
    session.transcript().total() <= trigger
}

/// The working context is the last item of a view and is not in the next view.
#[test]
fn the_working_context_is_only_in_its_own_view() {
    check_cases(1_500, &Policy::NAMES, |case| {
        let mut session = case.session();
        for entry in &case.entries {
            session.append(entry.clone());
            let Ok(with) = session.view_with_context() else { continue };
            let view = session.view().map_err(|refusal| refusal.to_string())?.clone();
            if !with.items.starts_with(&view.items) || with.items.len() > view.items.len() + 1 {
                return fail("the view with the working context does not begin with the view without it");
            }
            let counted = fanfold_core::recount(session.transcript(), &with, session.counter());
            if with.tokens > session.budget().room() || counted != with.tokens {
                return fail(format!(
                    "the view with the working context reports {} tokens and has {counted}",
                    with.tokens
                ));
            }
        }
        Ok(())
    });
}

/// Changes in a fork do not affect the original session.
#[test]
fn forks_are_independent() {
    check_cases(1_000, &Policy::NAMES, |case| {
        let mut session = case.session();
        let half = case.entries.len() / 2;
        case.entries[..half].iter().for_each(|entry| {
            session.append(entry.clone());
        });
        let mut fork = session.fork();
        case.entries.iter().for_each(|entry| {
            fork.append(entry.clone());
        });
        let _ = fork.view();
        case.entries[half..].iter().for_each(|entry| {
            session.append(entry.clone());
        });
        let mut alone = case.session();
        case.entries.iter().for_each(|entry| {
            alone.append(entry.clone());
        });
        if session.view().ok() == alone.view().ok() {
            Ok(())
        } else {
            fail("a fork changed the original session")
        }
    });
}
