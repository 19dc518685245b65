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
    let fixed: Tokens = draft.total() - used(draft) - draft.absorbable().iter().map(|&id| draft.cost(id)).sum();
    let limit = if is_minimal { limit } else { (target - fixed).max(limit.permille(500)) };
    add(draft, target, limit);
    let _ = fanout;
    while used(draft) > limit && draft.ledger.live.len() > 1 {
        let k = std::env::var("MERGE").ok().and_then(|v| v.parse::<usize>().ok()).unwrap_or(2).min(draft.ledger.live.len());
        let oldest: Vec<u32> = draft.ledger.live[..k].to_vec();
        let rest: Tokens = draft.ledger.live[k..].iter().map(|&id| draft.ledger.segments[id as usize].tokens()).sum();
        let merged = segment::merge(draft, &oldest, limit - rest);
        draft.absorb(merged, &oldest);
        if k == draft.ledger.live.len() { break; }
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
    let share: u32 = std::env::var("NEW").ok().and_then(|v| v.parse().ok()).unwrap_or(400);
    let budget = limit.permille(share).max(limit - used(draft)).min(all.permille(500));
    let _ = target;
    let won = all;
    let taken = candidates;
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
