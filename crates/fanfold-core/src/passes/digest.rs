//! Folds whole old steps into a segment: what was done, the lines worth most, and handles to all of it.
//!
//! Segments are only added behind one another, so that most folds leave the earlier ones, and with them the
//! provider's cached prefix, alone. When segments pile up they are merged by tiers, the deeper the rarer.
//!
//! ```text
//! user    fix the parser
//! call    bash {"command":"cargo test reads_a_header"}
//! result  running 1 test
//!         test parser::reads_a_header ... FAILED
//!         thread 'parser::reads_a_header' panicked at src/parser.rs:120:9:
//!         assertion `left == right` failed
//!           left: 3
//!          right: 4
//!         test result: FAILED. 0 passed; 1 failed; 0 ignored; 11 filtered out
//! call    bash {"command":"sed -n 115,121p src/parser.rs"}
//! result  fn read_header(input: &mut Input) -> Header {
//!             let width = input.next_number();
//!             // The first line is the title, which is not counted.
//!             let height = input.next_number() - 1;
//!             Header { width, height }
//!         }
//! say     the height is off by one
//! ->
//! user    fix the parser
//! note    <fanfold>
//!         Earlier steps, folded by fanfold (not the user's words). Recall a [handle] for the original.
//!         [bb3a1cbb]
//!          test parser::reads_a_header ... FAILED
//!         [bash] read src/parser.rs lines 115–121
//!         </fanfold>
//! say     the height is off by one
//! ```

use super::Pass;
use crate::draft::Draft;
use crate::policy::Digest;
use crate::segment;
use crate::tokens::Tokens;
use crate::transcript::EntryId;

/// Folds whole old steps.
pub(crate) const PASS: Pass = Pass { name: "digest", run };

fn run(draft: &mut Draft<'_>, target: Tokens) {
    let Digest::Segments { share, most, fanout } = draft.policy.digest else { return };
    // Before people's words are touched, the digest is as small as it can be.
    let is_minimal = draft.stage.reach.tail;
    let candidates = draft.absorbable();
    let old: Tokens = candidates.iter().map(|&id| draft.cost(id)).sum();
    let others = draft.total() - used(draft) - old;
    let most = draft.room.permille(if is_minimal { share / 4 } else { share }).min(most);
    let limit = most.min(target - others).max(draft.room.permille(share / 4).min(most));
    add(draft, candidates, old, limit);
    merge_tiers(draft, fanout, limit);
    while used(draft) > limit && draft.ledger.live.len() > 1 {
        let oldest = draft.ledger.live[..2].to_vec();
        if !merge(draft, &oldest, limit) {
            break;
        }
    }
    let is_too_much = draft.total() > target && used(draft) > limit;
    if is_too_much {
        let all = draft.ledger.live.clone();
        merge(draft, &all, limit);
    }
}

/// Puts old entries into a fresh segment.
fn add(draft: &mut Draft<'_>, candidates: Vec<EntryId>, cost: Tokens, limit: Tokens) {
    if candidates.is_empty() {
        return;
    }
    let budget = least(limit).max((limit - used(draft)).permille(800)).min(cost.permille(500));
    let fresh = segment::write(draft, candidates, budget);
    if fresh.tokens() < cost {
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
        if !merge(draft, &ids, limit) {
            return;
        }
    }
}

/// Merges segments if that wins anything; says whether it did.
fn merge(draft: &mut Draft<'_>, ids: &[u32], limit: Tokens) -> bool {
    let sum: Tokens = ids.iter().map(|&id| draft.ledger.segments[id as usize].tokens()).sum();
    let free = limit - (used(draft) - sum);
    let merged = segment::merge(draft, ids, &[], least(limit).max(sum.permille(700).min(free)));
    // A merge rewrites what it merges: a few tokens are not worth that.
    let is_shorter = merged.tokens() + sum.permille(60) < sum;
    if is_shorter {
        draft.absorb(merged, ids);
    }
    is_shorter
}

/// What a segment gets at least.
fn least(limit: Tokens) -> Tokens {
    Tokens(limit.0 * 3 / 10)
}

fn used(draft: &Draft<'_>) -> Tokens {
    draft.ledger.live_segments().map(segment::Segment::tokens).sum()
}
