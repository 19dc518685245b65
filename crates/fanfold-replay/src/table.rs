//! The totals of many conversations: one row for each policy and window.

use serde::Serialize;

use crate::replay::ReplayOutcome;
use crate::sums::{ReplayTotals, share};

/// The totals of one policy and window.
#[derive(Debug, Clone, Serialize)]
pub struct ReplayRow {
    /// The policy, by its position in the options.
    #[serde(skip)]
    pub policy: usize,
    /// The window, in tokens.
    pub window: u64,
    /// The number of conversations.
    pub trajectories: u64,
    /// The totals.
    pub sums: ReplayTotals,
    /// Shares computed from the totals.
    pub shares: Shares,
}

/// Shares in the table; `None` if there was nothing to count.
#[derive(Debug, Clone, Serialize)]
pub struct Shares {
    /// Mean tokens of the views under pressure.
    pub tokens_pressed: Option<f64>,
    /// Views that do not begin with the whole previous view.
    pub rewrite_rate: Option<f64>,
    /// Readable atoms, under pressure.
    pub recall: Option<f64>,
    /// Readable atoms, at all replies.
    pub recall_all: Option<f64>,
    /// Readable old atoms.
    pub old: Option<f64>,
    /// The 95 % confidence interval of `old`, by bootstrapping.
    pub old_interval: Option<(f64, f64)>,
    /// Old atoms in the view, readable or not.
    pub old_bare: Option<f64>,
    /// The mean of `old` over replies.
    pub old_macro: Option<f64>,
    /// Old atoms readable in the view or after a recall.
    pub old_rec: Option<f64>,
    /// Readable old atoms while the conversation fitted the window.
    pub early_old: Option<f64>,
    /// Readable old atoms that only tool results contain.
    pub tool_only: Option<f64>,
    /// Old lines repeated by a call that were in the view.
    pub lines: Option<f64>,
    /// Replies whose atoms were all readable.
    pub suff: Option<f64>,
    /// Replies with old atoms whose atoms were all readable.
    pub old_suff: Option<f64>,
    /// Messages by people that were in the view verbatim.
    pub user: Option<f64>,
    /// Mean tokens of a recall.
    pub rec_tokens: Option<f64>,
    /// Old spans copied from others that were in the view.
    pub copied: Option<f64>,
    /// Old spans copied from the agent itself that were in the view.
    pub coined: Option<f64>,
    /// The charges as a share of those without folding.
    pub cost: Option<f64>,
    /// The charges with the price of the recalls that the replies needed, as a share of those without folding.
    pub cost_with_recalls: Option<f64>,
}

/// One row for each window and policy, in that order, of the selected outcomes.
pub fn rows(outcomes: &[ReplayOutcome], is_selected: impl Fn(&ReplayOutcome) -> bool) -> Vec<ReplayRow> {
    let mut groups: std::collections::BTreeMap<(u64, usize), Vec<&ReplayOutcome>> = Default::default();
    for outcome in outcomes.iter().filter(|outcome| is_selected(outcome)) {
        groups.entry((outcome.window, outcome.policy)).or_default().push(outcome);
    }
    let row = |((window, policy), outcomes): ((u64, usize), Vec<&ReplayOutcome>)| {
        let mut sums = ReplayTotals::default();
        outcomes.iter().for_each(|outcome| sums.add(&outcome.sums));
        let shares = shares(&sums, &outcomes);
        ReplayRow { policy, window, trajectories: outcomes.len() as u64, sums, shares }
    };
    groups.into_iter().map(row).collect()
}

fn shares(sums: &ReplayTotals, outcomes: &[&ReplayOutcome]) -> Shares {
    let of_unfolded = |dollars: f64| (sums.bill_raw.dollars > 0.0).then(|| dollars / sums.bill_raw.dollars);
    let pressed = &sums.pressed;
    Shares {
        tokens_pressed: share(pressed.sent, pressed.calls),
        rewrite_rate: share(sums.rewrites, sums.calls),
        recall: share(pressed.read, pressed.atoms),
        recall_all: share(pressed.read + sums.early.read, pressed.atoms + sums.early.atoms),
        old: share(pressed.old_read, pressed.old),
        old_interval: interval(outcomes),
        old_bare: share(pressed.old_there, pressed.old),
        old_macro: (pressed.with_old > 0).then(|| pressed.old_shares / pressed.with_old as f64),
        old_rec: share(pressed.old_recalled, pressed.old),
        early_old: share(sums.early.old_read, sums.early.old),
        tool_only: share(pressed.tool_only_read, pressed.tool_only),
        lines: share(pressed.lines_there, pressed.lines),
        suff: share(pressed.sufficed, pressed.with_atoms),
        old_suff: share(pressed.old_sufficed, pressed.with_old),
        user: share(sums.users_there, sums.users),
        rec_tokens: share(sums.recall_tokens, sums.recalls),
        copied: share(sums.copied_there, sums.copied),
        coined: share(sums.coined_there, sums.coined),
        cost: of_unfolded(sums.bill.dollars),
        cost_with_recalls: of_unfolded(sums.bill.dollars + sums.recall_dollars),
    }
}

/// The number of bootstrap samples.
const N_SAMPLES: usize = 400;

/// The 95 % confidence interval of the share of readable old atoms, resampling whole conversations.
fn interval(outcomes: &[&ReplayOutcome]) -> Option<(f64, f64)> {
    let mut state = 7_u64;
    let mut shares = Vec::with_capacity(N_SAMPLES);
    for _ in 0..N_SAMPLES {
        let (mut read, mut old) = (0, 0);
        for _ in outcomes {
            let pressed = &outcomes[(next(&mut state) % outcomes.len() as u64) as usize].sums.pressed;
            read += pressed.old_read;
            old += pressed.old;
        }
        shares.extend(share(read, old));
    }
    shares.sort_by(f64::total_cmp);
    let at = |permille: usize| shares.get(shares.len() * permille / 1000).copied();
    at(25).zip(at(975))
}

/// SplitMix64, so that the samples are the same on every machine.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
