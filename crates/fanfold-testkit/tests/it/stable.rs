//! 5. While a conversation fits, its next view begins with its last one. Each break has a receipt.
//!
//! `rules`, `mask` and `window` roll: they fold at almost every step, so that it holds between their folds only, as for
//! all others. How rare folds are is a measure and not a promise.

use fanfold_core::{Policy, Reason, Session, Words};

use crate::cases::{Verdict, hold, no};
use crate::walks::{Sent, walk_case_in_chat};

/// The messages of the last view, and how many folds there were.
#[derive(Default)]
pub(crate) struct Last {
    messages: Vec<String>,
    n_receipts: usize,
}

/// The messages begin with the last ones, unless there is a new receipt; then that has a reason.
pub(crate) fn check_sent(last: &mut Last, sent: &Sent<'_>) -> Verdict {
    let receipts = sent.session.ledger().receipts();
    let is_folded = receipts.len() > last.n_receipts;
    for receipt in &receipts[last.n_receipts..] {
        let trigger = sent.session.policy().strategy.trigger(sent.session.budget());
        let is_due = trigger.is_some_and(|trigger| receipt.before > trigger);
        let is_asked = matches!(
            receipt.reason,
            Reason::Requested | Reason::Refused | Reason::Cap | Reason::Again | Reason::Economy(_)
        );
        if !is_due && !is_asked {
            return no(format!("a fold was made at {} tokens", receipt.before));
        }
        if receipt.folded.is_empty() {
            return no("a receipt names nothing that left");
        }
    }
    let begins = sent.messages.len() >= last.messages.len()
        && sent.messages.iter().zip(&last.messages).all(|(a, b)| a == b);
    if !is_folded && !begins {
        let at = sent.messages.iter().zip(&last.messages).position(|(a, b)| a != b);
        return no(format!("message {at:?} changed without a receipt"));
    }
    *last = Last { messages: sent.messages.to_vec(), n_receipts: receipts.len() };
    Ok(())
}

#[test]
fn a_view_begins_with_the_last_one() {
    hold(4_000, &Policy::NAMES, |case| {
        let mut last = Last::default();
        walk_case_in_chat(case, |sent| check_sent(&mut last, sent))
    });
}

#[test]
fn what_fits_is_never_folded() {
    hold(2_000, &["fanfold", "hermes", "rules", "hamr", "window"], |case| {
        let mut session = Session::new(case.policy(), case.budget(), &Words);
        for entry in &case.entries {
            session.append(entry.clone());
            let is_small = fits(&session);
            let is_folded = !session.ledger().receipts().is_empty();
            if is_small && is_folded {
                return no("a small conversation was folded");
            }
            if !is_small {
                return Ok(());
            }
            let view = session.view().map_err(|refusal| refusal.to_string())?;
            if !view.is_untouched() {
                return no("a small conversation was touched");
            }
        }
        Ok(())
    });
}

fn fits(session: &Session<'_>) -> bool {
    let trigger = session.policy().strategy.trigger(session.budget()).unwrap();
    session.transcript().total() <= trigger
}

/// The working context rides at the very end and is gone from the next view.
#[test]
fn the_working_context_is_no_part_of_what_comes_next() {
    hold(1_500, &Policy::NAMES, |case| {
        let mut session = case.session();
        for entry in &case.entries {
            session.append(entry.clone());
            let Ok(with) = session.view_with_context() else { continue };
            let view = session.view().map_err(|refusal| refusal.to_string())?.clone();
            if !with.items.starts_with(&view.items) || with.items.len() > view.items.len() + 1 {
                return no("the view with its context does not begin with the view");
            }
            let counted = fanfold_core::recount(session.transcript(), &with, session.counter());
            if with.tokens > session.budget().room() || counted != with.tokens {
                return no(format!("the view with its context says {} and costs {counted}", with.tokens));
            }
        }
        Ok(())
    });
}

/// What happens in a fork is not seen by what it was forked from.
#[test]
fn forks_go_their_own_way() {
    hold(1_000, &Policy::NAMES, |case| {
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
            no("a fork changed what it was forked from")
        }
    });
}
