//! Folds whole old steps into a segment: descriptions of calls, the most valuable lines, and handles of everything.
//!
//! Most folds only add a segment at the end, so that the provider's cached prefix stays valid. After several folds, all
//! segments are merged into one.
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

pub(crate) const PASS: Pass = Pass { name: "digest", run };

fn run(draft: &mut Draft<'_>, target: Tokens) {
    let Digest::Segments { share, max_tokens, max_appended } = draft.policy.digest else { return };
    let new_entries = NewEntries::find(draft);
    if let Some(share) = draft.stage.segment_share {
        if !new_entries.entries.is_empty() {
            replace(draft, &[], &new_entries, new_entries.cost.permille(share));
        }
        return;
    }
    // In the last stage before user messages are folded, the digest is minimal.
    let is_minimal = draft.stage.reach.tail && draft.stage.tail == 0;
    let max_tokens = draft.room.permille(if is_minimal { share / 4 } else { share }).min(max_tokens);
    // An oversized tail is cut by other passes, so that it does not reduce the digest.
    let excess = draft.tail_cost() - draft.room.permille(draft.policy.tail.share);
    let others = draft.total() - used(draft) - new_entries.cost - excess;
    let limit = max_tokens.min(target - others).max(draft.room.permille(share / 2).min(max_tokens));
    let plan = Plan::new(draft, limit, max_appended);
    if !new_entries.entries.is_empty() || plan.merged.len() > 1 {
        replace(draft, &plan.merged, &new_entries, plan.budget);
    }
    // Mandatory content may exceed the budget of a segment.
    let allowed: Tokens =
        draft.ledger.live_segments().map(|segment| segment.allowed.unwrap_or(segment.tokens())).sum();
    let is_too_much = draft.total() > target && used(draft) > limit && allowed > limit;
    if is_too_much {
        let all = draft.ledger.live_segments.clone();
        replace(draft, &all, &NewEntries::default(), limit);
    }
}

/// Entries that are folded now.
#[derive(Default)]
struct NewEntries {
    entries: Vec<EntryId>,
    cost: Tokens,
}

impl NewEntries {
    fn find(draft: &Draft<'_>) -> NewEntries {
        let entries = draft.absorbable();
        let cost = entries.iter().map(|&id| draft.cost(id)).sum();
        NewEntries { entries, cost }
    }
}

/// The segments to merge, and the budget of the new segment.
struct Plan {
    merged: Vec<u32>,
    budget: Tokens,
}

impl Plan {
    /// Keeps the segments, so that the provider's cache stays valid, and adds a new one; merges all of them after
    /// several folds or if there is no room left.
    fn new(draft: &Draft<'_>, limit: Tokens, max_appended: usize) -> Plan {
        let live = &draft.ledger.live_segments;
        let free = limit - used(draft);
        if live.is_empty() || live.len() > max_appended || free < limit.permille(100) {
            return Plan { merged: live.clone(), budget: limit.permille(700) };
        }
        // Newer entries get more than an even share.
        let n_more = max_appended as u64 + 1 - live.len() as u64;
        Plan { merged: Vec::new(), budget: free.min(Tokens(free.0 * 3 / (2 * n_more))) }
    }
}

/// Writes new entries and the segments to merge as one segment, if that saves tokens.
fn replace(draft: &mut Draft<'_>, merged: &[u32], new_entries: &NewEntries, budget: Tokens) {
    let before: Tokens = merged.iter().map(|&id| draft.ledger.segments[id as usize].tokens()).sum();
    // A first fold saves at least half.
    let budget = if merged.is_empty() { budget.min(new_entries.cost.permille(500)) } else { budget };
    let new = segment::write(draft, merged, &new_entries.entries, budget);
    // A merge rewrites the cached segments, so it has to save more than a few tokens.
    let least = if new_entries.entries.is_empty() { before.permille(60) } else { Tokens::ZERO };
    if new.tokens() + least < before + new_entries.cost {
        draft.absorb(new, merged);
    }
}

fn used(draft: &Draft<'_>) -> Tokens {
    draft.ledger.live_segments().map(segment::Segment::tokens).sum()
}
