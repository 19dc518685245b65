//! Folds whole old steps into a segment: what was done, the lines worth most, and handles to all of it.
//!
//! Segments are only added behind one another, so that most folds leave the earlier ones, and with them the
//! provider's cached prefix, alone. When segments pile up they are merged by tiers, the deeper the rarer.
//!
//! ```text
//! user    fix the parser
//! call    bash {"command":"cargo test parse_header"}
//! result  test parse_header ... FAILED
//!         assertion failed at src/parse.rs:120 in parse_header: left is 3 and right is 4
//! say     the header is off by one
//! ->
//! user    fix the parser
//! note    to be filled
//! say     the header is off by one
//! ```

use super::Pass;
use crate::draft::Draft;
use crate::policy::Digest;
use crate::segment;
use crate::tokens::Tokens;

/// Folds whole old steps.
pub const PASS: Pass = Pass { name: "digest", run };

fn run(draft: &mut Draft<'_>, target: Tokens) {
    let Digest::Segments { share, fanout } = draft.policy.digest else { return };
    // Before people's words are touched, the digest is as small as it can be.
    let is_minimal = draft.stage.reach.tail;
    let limit = draft.room.permille(if is_minimal { share / 4 } else { share });
    add(draft, target, limit);
    merge_tiers(draft, fanout, limit);
    while used(draft) > limit && draft.ledger.live.len() > 1 {
        let oldest: Vec<u32> = draft.ledger.live[..2].to_vec();
        merge(draft, &oldest, limit);
    }
    if is_minimal && used(draft) > limit {
        let all = draft.ledger.live.clone();
        merge(draft, &all, limit);
    }
}

/// Puts the oldest steps into a fresh segment, as many as are needed.
fn add(draft: &mut Draft<'_>, target: Tokens, limit: Tokens) {
    let candidates = draft.absorbable();
    let all: Tokens = candidates.iter().map(|&id| draft.cost(id)).sum();
    let budget = least(limit).max((limit - used(draft)).permille(500)).min(all.permille(400));
    let needed = draft.total() + budget - target;
    let mut taken = Vec::new();
    let mut won = Tokens::ZERO;
    for id in candidates {
        if won >= needed {
            break;
        }
        won += draft.cost(id);
        taken.push(id);
    }
    if taken.is_empty() {
        return;
    }
    let fresh = segment::write(draft, taken, budget);
    if fresh.tokens() < won {
        draft.absorb(fresh, &[]);
    }
}

/// Merges the newest segments of one tier when there are enough of them, and again on the next tier.
fn merge_tiers(draft: &mut Draft<'_>, fanout: usize, limit: Tokens) {
    loop {
        let live = &draft.ledger.live;
        let tier = |id: u32| draft.ledger.segments[id as usize].tier;
        let Some(&newest) = live.last() else { return };
        let same = live.iter().rev().take_while(|&&id| tier(id) == tier(newest)).count();
        if same < fanout {
            return;
        }
        let ids = live[live.len() - same..].to_vec();
        merge(draft, &ids, limit);
    }
}

fn merge(draft: &mut Draft<'_>, ids: &[u32], limit: Tokens) {
    let sum: Tokens = ids.iter().map(|&id| draft.ledger.segments[id as usize].tokens()).sum();
    let merged = segment::merge(draft, ids, least(limit).max(sum.permille(600)).min(limit));
    draft.absorb(merged, ids);
}

/// What a segment gets at least.
fn least(limit: Tokens) -> Tokens {
    Tokens(limit.0 / 6)
}

fn used(draft: &Draft<'_>) -> Tokens {
    draft.ledger.live_segments().map(segment::Segment::tokens).sum()
}
