//! All promises on recorded conversations: every policy, in a window of 8,000 and one of 24,000 tokens.
//!
//! Every view is checked lightly; every eighth, and the first after each fold, deeply.

use fanfold_core::{Budget, Count, Policy, Session, Tokens};
use fanfold_testkit::trajectories::{Trajectory, trajectories};
use fanfold_tokens::o200k;
use fanfold_wire::{Conversation, Format};
use rayon::prelude::*;
use serde_json::value::RawValue;

use crate::cases::{Verdict, is_fast, no, quietly};
use crate::walks::{Sent, apply, walk_chat};
use crate::{budget, lossless, paired, running, settled, stable, transparent, verbatim};

const WINDOWS: [u64; 2] = [8_000, 24_000];

#[test]
fn recorded_conversations_keep_every_promise() {
    if is_fast() {
        return;
    }
    let Some(all) = trajectories() else { return };
    // All that there are: a file that is not read would go unnoticed.
    assert_eq!(all.len(), 280, "conversations were read");
    let mut runs: Vec<(&Trajectory, &str, u64)> = Vec::new();
    for trajectory in &all {
        for policy in Policy::NAMES {
            runs.extend(WINDOWS.map(|window| (trajectory, policy, window)));
        }
    }
    let failed: Vec<String> = runs
        .into_par_iter()
        .filter_map(|(trajectory, policy, window)| {
            let verdict = quietly(|| check(trajectory, policy, window));
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

/// 9 and 10: a body in which nothing is folded leaves byte for byte as it came, whatever stands in it.
#[test]
fn recorded_conversations_that_fit_leave_as_they_came() {
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
    let mut seen = Seen::default();
    let mut followed = walk_chat(&messages, session(), |sent| seen.check(sent))?;
    seen.remembered.check(&followed)?;
    // 7: a process that has never seen it arrives at the same bytes, even if it loses its analysis now and then.
    let mut conversation = Conversation::empty(Format::Chat);
    let mut replayed = session();
    for (i, change) in conversation.append(&messages).into_iter().enumerate() {
        apply(&mut replayed, change);
        if i % 40 == 39 {
            replayed.drop_analysis();
        }
    }
    let is_same = followed.ledger().receipts() == replayed.ledger().receipts();
    match (followed.view().ok(), replayed.view().ok()) {
        (one, other) if is_same && one == other => Ok(()),
        _ => no("replaying gives another view"),
    }
}

#[derive(Default)]
struct Seen {
    n_views: usize,
    n_receipts: usize,
    stable: stable::Last,
    settled: settled::Last,
    remembered: lossless::Remembered,
}

impl Seen {
    fn check(&mut self, sent: &Sent<'_>) -> Verdict {
        let n_receipts = sent.session.ledger().receipts().len();
        let is_deep = self.n_views.is_multiple_of(8) || n_receipts > self.n_receipts;
        (self.n_views, self.n_receipts) = (self.n_views + 1, n_receipts);
        stable::check_sent(&mut self.stable, sent)?;
        settled::check(&mut self.settled, sent.session, sent.view)?;
        verbatim::check(sent.session, sent.view)?;
        running::check(sent.session, sent.view)?;
        if is_deep {
            budget::check_view(sent.session, sent.view)?;
            budget::check_sent(sent)?;
            verbatim::check_sent(sent)?;
            paired::check_sent(sent)?;
            transparent::check_sent(sent)?;
            lossless::check(sent.session, sent.view)?;
            lossless::check_sent(sent)?;
            self.remembered.see(sent.session, sent.view)?;
        }
        Ok(())
    }
}
