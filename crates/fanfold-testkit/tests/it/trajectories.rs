//! All invariants on recorded conversations, with every policy and windows of 8,000 and 24,000 tokens.
//!
//! Every view gets the cheap checks; every eighth, and the first after each fold, also the expensive ones.

use fanfold_core::{Budget, Count, Policy, Session, Tokens};
use fanfold_testkit::trajectories::{Trajectory, trajectories};
use fanfold_tokens::o200k;
use fanfold_wire::{Conversation, Format};
use rayon::prelude::*;
use serde_json::value::RawValue;

use crate::cases::{Verdict, catch_panic, fail, is_fast};
use crate::drivers::{SentView, apply, drive_chat};
use crate::{
    budget, call_pairing, fold_persistence, lossless, pass_through, record, running_calls, stable_prefix,
    user_text,
};

const WINDOWS: [u64; 2] = [8_000, 24_000];

#[test]
fn recorded_conversations_keep_the_invariants() {
    if is_fast() {
        return;
    }
    let Some(all) = trajectories() else { return };
    // A fixed number, because a missing file would go unnoticed.
    assert_eq!(all.len(), 280, "the number of recorded conversations");
    let mut runs: Vec<(&Trajectory, &str, u64)> = Vec::new();
    for trajectory in &all {
        for policy in Policy::NAMES {
            runs.extend(WINDOWS.map(|window| (trajectory, policy, window)));
        }
    }
    let failed: Vec<String> = runs
        .into_par_iter()
        .filter_map(|(trajectory, policy, window)| {
            let verdict = catch_panic(|| check(trajectory, policy, window));
            let verdict = verdict.unwrap_or_else(|panic| Err(format!("panicked: {panic}")));
            verdict.err().map(|message| {
                format!("{}/{}, {policy}, {window}: {message}", trajectory.source, trajectory.id)
            })
        })
        .collect();
    assert!(
        failed.is_empty(),
        "{} runs fail:\n{}",
        failed.len(),
        failed.iter().take(20).cloned().collect::<Vec<_>>().join("\n")
    );
}

/// 9 and 10: an unfolded body is encoded byte for byte.
#[test]
fn recorded_conversations_that_fit_are_sent_unchanged() {
    if is_fast() {
        return;
    }
    let Some(all) = trajectories() else { return };
    let failed: Vec<String> = all
        .par_iter()
        .filter(|trajectory| {
            let messages: Vec<&str> = trajectory.messages.iter().map(|message| message.get()).collect();
            let tools = trajectory.tools.as_deref().unwrap_or("[]");
            let body = format!("{{\"messages\": [{}], \"tools\": {tools}}}", messages.join(" ,\n"));
            let (conversation, changes) = Conversation::decode(&body, Some(Format::Chat)).unwrap();
            let budget = Budget::with_reserve(Tokens(u64::from(u32::MAX)), Tokens::ZERO);
            let mut session = Session::new(Policy::fanfold(), budget, o200k());
            changes.into_iter().for_each(|change| apply(&mut session, change));
            let view = session.view().unwrap().clone();
            conversation.encode(session.transcript(), &view) != body
        })
        .map(|trajectory| format!("{}/{}", trajectory.source, trajectory.id))
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}

fn check(trajectory: &Trajectory, policy: &str, window: u64) -> Verdict {
    let budget = Budget::with_reserve(Tokens(window), Tokens::ZERO);
    let session = || {
        let mut session = Session::new(Policy::named(policy).unwrap(), budget, o200k());
        session.set_tools(trajectory.tools.as_ref().map_or(Tokens::ZERO, |tools| o200k().count(tools)));
        session
    };
    let messages: Vec<&RawValue> = trajectory.messages.iter().map(|message| &**message).collect();
    let mut checks = ConversationChecks::default();
    let mut followed = drive_chat(&messages, session(), |sent| checks.check(sent))?;
    checks.handles.check(&followed)?;
    lossless::check_addresses(&followed)?;
    // 7: a new process gets the same bytes, even if it sometimes drops its analysis.
    let mut conversation = Conversation::empty(Format::Chat);
    let mut replayed = session();
    for (i, change) in conversation.append(&messages).into_iter().enumerate() {
        apply(&mut replayed, change);
        if i % 40 == 39 {
            replayed.drop_analysis();
        }
    }
    // A view settles the newest entry, so receipts are compared after it.
    let (view, replayed_view) = (followed.view().ok().cloned(), replayed.view().ok().cloned());
    let has_same_receipts = followed.ledger().receipts() == replayed.ledger().receipts();
    if has_same_receipts && view == replayed_view { Ok(()) } else { fail("a replay gives another view") }
}

/// The state of the checks of a conversation.
#[derive(Default)]
struct ConversationChecks {
    n_views: usize,
    n_receipts: usize,
    prefix: stable_prefix::PreviousView,
    folds: fold_persistence::PreviousFolds,
    handles: lossless::RecordedHandles,
}

impl ConversationChecks {
    fn check(&mut self, sent: &SentView<'_>) -> Verdict {
        let n_receipts = sent.session.ledger().receipts().len();
        let is_deep = self.n_views.is_multiple_of(8) || n_receipts > self.n_receipts;
        if n_receipts > self.n_receipts && sent.session.policy().name == "fanfold" {
            record::check(sent.session, sent.view)?;
        }
        (self.n_views, self.n_receipts) = (self.n_views + 1, n_receipts);
        stable_prefix::check_sent(&mut self.prefix, sent)?;
        fold_persistence::check(&mut self.folds, sent.session, sent.view)?;
        user_text::check(sent.session, sent.view)?;
        running_calls::check(sent.session, sent.view)?;
        if is_deep {
            budget::check_view(sent.session, sent.view)?;
            budget::check_sent(sent)?;
            user_text::check_sent(sent)?;
            call_pairing::check_sent(sent)?;
            pass_through::check_sent(sent)?;
            lossless::check(sent.session, sent.view)?;
            lossless::check_sent(sent)?;
            self.handles.record(sent.session, sent.view)?;
        }
        Ok(())
    }
}
