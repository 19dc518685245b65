//! Folds whole old steps into a segment: what was done, the lines worth most, and handles to all of it.
//!
//! Segments are left alone by most folds, and with them the provider's cached prefix: new ones are added behind them.
//! After some folds all are merged into one.
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
//!         [491127] [bash] read src/parser.rs lines 115–121
//!          fn read_header(input: &mut Input) -> Header {
//!              let width = input.next_number();
//!         </fanfold>
//! say     the height is off by one
//! ```

use crate::fold::digest::segment;
use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::fold::policy::Digest;
use crate::model::tokens::Tokens;
use crate::model::transcript::EntryId;

/// Folds whole old steps.
pub(crate) const PASS: Pass = Pass { name: "digest", run };

fn run(draft: &mut Draft<'_>, target: Tokens) {
    let Digest::Segments { share, most, behind } = draft.policy.digest else { return };
    let fresh = Fresh::of(draft);
    if let Some(keep) = draft.stage.keep {
        if !fresh.entries.is_empty() {
            replace(draft, &[], &fresh, fresh.cost.permille(keep));
        }
        return;
    }
    // Before people's words are touched, the digest is as small as it can be.
    let is_minimal = draft.stage.reach.tail && draft.stage.tail == 0;
    let most = draft.room.permille(if is_minimal { share / 4 } else { share }).min(most);
    // A tail that is too large is cut by itself: it must not push out what is known.
    let excess = draft.tail_cost() - draft.room.permille(draft.policy.tail.share);
    let others = draft.total() - used(draft) - fresh.cost - excess;
    let limit = most.min(target - others).max(draft.room.permille(share / 2).min(most));
    let plan = Plan::of(draft, limit, behind);
    if !fresh.entries.is_empty() || plan.merged.len() > 1 {
        replace(draft, &plan.merged, &fresh, plan.budget);
    }
    // What was written for no more than this has in it what has to be.
    let allowed: Tokens =
        draft.ledger.live_segments().map(|segment| segment.allowed.unwrap_or(segment.tokens())).sum();
    let is_too_much = draft.total() > target && used(draft) > limit && allowed > limit;
    if is_too_much {
        let all = draft.ledger.live.clone();
        replace(draft, &all, &Fresh::default(), limit);
    }
}

/// Entries that go into the digest now.
#[derive(Default)]
struct Fresh {
    entries: Vec<EntryId>,
    cost: Tokens,
}

impl Fresh {
    fn of(draft: &Draft<'_>) -> Fresh {
        let entries = draft.absorbable();
        let cost = entries.iter().map(|&id| draft.cost(id)).sum();
        Fresh { entries, cost }
    }
}

/// Which segments give way to a new one, and what that may cost.
struct Plan {
    merged: Vec<u32>,
    budget: Tokens,
}

impl Plan {
    /// Segments stay as they are, so that the provider's cache does; new ones are added behind them. After some folds, or
    /// when there is no room left, all become one.
    fn of(draft: &Draft<'_>, limit: Tokens, behind: usize) -> Plan {
        let live = &draft.ledger.live;
        let free = limit - used(draft);
        if live.is_empty() || live.len() > behind || free < limit.permille(100) {
            return Plan { merged: live.clone(), budget: limit.permille(700) };
        }
        // What is newest is worth more than an even share.
        let n_more = behind as u64 + 1 - live.len() as u64;
        Plan { merged: Vec::new(), budget: free.min(Tokens(free.0 * 3 / (2 * n_more))) }
    }
}

/// Writes fresh entries and the segments that give way into a new one, if that wins anything.
fn replace(draft: &mut Draft<'_>, merged: &[u32], fresh: &Fresh, budget: Tokens) {
    let before: Tokens = merged.iter().map(|&id| draft.ledger.segments[id as usize].tokens()).sum();
    // What is folded for the first time gives at least half.
    let budget = if merged.is_empty() { budget.min(fresh.cost.permille(500)) } else { budget };
    let new = segment::write(draft, merged, &fresh.entries, budget);
    // A merge rewrites what it merges: a few tokens are not worth that.
    let least = if fresh.entries.is_empty() { before.permille(60) } else { Tokens::ZERO };
    if new.tokens() + least < before + fresh.cost {
        draft.absorb(new, merged);
    }
}

fn used(draft: &Draft<'_>) -> Tokens {
    draft.ledger.live_segments().map(segment::Segment::tokens).sum()
}
