//! Outcomes added up: one row for each policy and window.

use serde::Serialize;

use crate::replay::Outcome;
use crate::sums::{Sums, share};

/// The conversations of one policy and window, added up.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The policy, by its position in the terms.
    #[serde(skip)]
    pub policy: usize,
    /// The window.
    pub window: u64,
    /// How many conversations.
    pub trajectories: u64,
    /// What was counted.
    pub sums: Sums,
    /// The shares that follow.
    pub shares: Shares,
}

/// What the table shows beside plain sums. Nothing stands where there was nothing to count.
#[derive(Debug, Clone, Serialize)]
pub struct Shares {
    /// Mean tokens sent under pressure.
    pub tokens_pressed: Option<f64>,
    /// Views that do not begin with the one before.
    pub rewrite_rate: Option<f64>,
    /// Atoms that could be read, under pressure.
    pub recall: Option<f64>,
    /// Atoms that could be read, at all replies.
    pub recall_all: Option<f64>,
    /// Old ones.
    pub old: Option<f64>,
    /// The 95 % interval of `old`, by drawing conversations again.
    pub old_interval: Option<(f64, f64)>,
    /// Old ones that were there, readable or not.
    pub old_bare: Option<f64>,
    /// The mean over replies of `old`.
    pub old_macro: Option<f64>,
    /// Old ones that could be read or recalled.
    pub old_rec: Option<f64>,
    /// Old ones that could be read while everything would have fitted.
    pub early_old: Option<f64>,
    /// Old ones that only results of tools held.
    pub tool_only: Option<f64>,
    /// Old lines that a call repeats and that were there.
    pub lines: Option<f64>,
    /// Replies that had all their atoms.
    pub suff: Option<f64>,
    /// Replies with old atoms that had all their atoms.
    pub old_suff: Option<f64>,
    /// People's messages that were there word for word.
    pub user: Option<f64>,
    /// What a recall costs in the mean.
    pub rec_tokens: Option<f64>,
    /// Old spans that replies copied from others and that were there.
    pub copied: Option<f64>,
    /// Old spans of the agent's own that they repeated and that were there.
    pub coined: Option<f64>,
    /// What it cost, as a share of what it would have cost as it came.
    pub cost: Option<f64>,
}

/// One row for each window and policy, in that order, of the outcomes that are wanted.
pub fn rows(outcomes: &[Outcome], is_wanted: impl Fn(&Outcome) -> bool) -> Vec<Row> {
    let mut groups: std::collections::BTreeMap<(u64, usize), Vec<&Outcome>> = Default::default();
    for outcome in outcomes.iter().filter(|outcome| is_wanted(outcome)) {
        groups.entry((outcome.window, outcome.policy)).or_default().push(outcome);
    }
    let row = |((window, policy), outcomes): ((u64, usize), Vec<&Outcome>)| {
        let mut sums = Sums::default();
        outcomes.iter().for_each(|outcome| sums.add(&outcome.sums));
        let shares = shares(&sums, &outcomes);
        Row { policy, window, trajectories: outcomes.len() as u64, sums, shares }
    };
    groups.into_iter().map(row).collect()
}

fn shares(sums: &Sums, outcomes: &[&Outcome]) -> Shares {
    let part = &sums.pressed;
    Shares {
        tokens_pressed: share(part.sent, part.calls),
        rewrite_rate: share(sums.rewrites, sums.calls),
        recall: share(part.read, part.atoms),
        recall_all: share(part.read + sums.early.read, part.atoms + sums.early.atoms),
        old: share(part.old_read, part.old),
        old_interval: interval(outcomes),
        old_bare: share(part.old_there, part.old),
        old_macro: (part.with_old > 0).then(|| part.old_shares / part.with_old as f64),
        old_rec: share(part.old_recalled, part.old),
        early_old: share(sums.early.old_read, sums.early.old),
        tool_only: share(part.tool_only_read, part.tool_only),
        lines: share(part.lines_there, part.lines),
        suff: share(part.sufficed, part.with_atoms),
        old_suff: share(part.old_sufficed, part.with_old),
        user: share(sums.users_there, sums.users),
        rec_tokens: share(sums.recall_tokens, sums.recalls),
        copied: share(sums.copied_there, sums.copied),
        coined: share(sums.coined_there, sums.coined),
        cost: (sums.bill_raw.dollars > 0.0).then(|| sums.bill.dollars / sums.bill_raw.dollars),
    }
}

/// How often conversations are drawn again.
const DRAWS: usize = 400;

/// The 95 % interval of the share of old atoms, drawing whole conversations with replacement.
fn interval(outcomes: &[&Outcome]) -> Option<(f64, f64)> {
    let mut state = 7_u64;
    let mut shares = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        let (mut read, mut old) = (0, 0);
        for _ in outcomes {
            let part = &outcomes[(next(&mut state) % outcomes.len() as u64) as usize].sums.pressed;
            read += part.old_read;
            old += part.old;
        }
        shares.extend(share(read, old));
    }
    shares.sort_by(f64::total_cmp);
    let at = |permille: usize| shares.get(shares.len() * permille / 1000).copied();
    at(25).zip(at(975))
}

/// SplitMix64: the same draws on every machine.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
