//! Folds whole old steps into a segment: what was done, the lines worth most, and handles to all of it.
//!
//! The first segment is left alone by most folds, and with it the provider's cached prefix. Behind it stands one of what
//! came since, which each fold writes anew; after some folds the two are merged.
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
//!          let width = input.next_number();
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
    let Digest::Segments { share, most, recent } = draft.policy.digest else { return };
    let fresh = Fresh::of(draft);
    if let Some(keep) = draft.stage.keep {
        if !fresh.entries.is_empty() {
            replace(draft, &[], &fresh, fresh.cost.permille(keep));
        }
        return;
    }
    // Before people's words are touched, the digest is as small as it can be.
    let is_minimal = draft.stage.reach.tail;
    let most = draft.room.permille(if is_minimal { share / 4 } else { share }).min(most);
    // A tail that is too large is cut by itself: it must not push out what is known.
    let excess = draft.tail_cost() - draft.room.permille(draft.policy.tail.share);
    let others = draft.total() - used(draft) - fresh.cost - excess;
    let limit = most.min(target - others).max(draft.room.permille(share / 4).min(most));
    let plan = Plan::of(draft, limit, recent);
    if !fresh.entries.is_empty() || plan.merged.len() > 1 {
        replace(draft, &plan.merged, &fresh, plan.budget);
    }
    let is_too_much = draft.total() > target && used(draft) > limit;
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
    /// An old segment stays as it is, so that the provider's cache does; behind it stands one of what came since, which
    /// is written anew at each fold. After some folds, or when there is no room left, both become one.
    fn of(draft: &Draft<'_>, limit: Tokens, recent: u32) -> Plan {
        let segment = |id: u32| &draft.ledger.segments[id as usize];
        let base = limit.permille(700);
        let live = &draft.ledger.live;
        let (merged, n_merges) = match live[..] {
            [] => return Plan { merged: Vec::new(), budget: base },
            [_] => (Vec::new(), 0),
            [.., newest] => (vec![newest], segment(newest).tier + 1),
        };
        let giving_way: Tokens = merged.iter().map(|&id| segment(id).tokens()).sum();
        let free = limit - (used(draft) - giving_way);
        if n_merges >= recent || free < limit.permille(150) {
            return Plan { merged: live.clone(), budget: base };
        }
        Plan { merged, budget: free }
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
