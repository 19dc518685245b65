//! Folds whole old steps into a segment of the record.
//!
//! Most folds only add a segment at the end, so that the provider's cached prefix stays valid. After several folds, all
//! segments are merged into one.
//!
//! ```text
//! user    fix the parser
//! call    bash {"command":"cargo test -p parser"}
//! result     Compiling lexer v0.1.0
//!            Compiling parser v0.1.0
//!         running 14 tests
//!         test lexer::splits_words ... ok
//!         test lexer::skips_comments ... ok
//!         test lexer::reads_numbers ... ok
//!         test lexer::reads_negative_numbers ... ok
//!         test parser::reads_a_row ... ok
//!         test parser::reads_a_title ... ok
//!         test parser::reads_blank_cells ... ok
//!         test parser::reads_a_header ... FAILED
//!         thread 'parser::reads_a_header' panicked at src/parser.rs:140:9:
//!         assertion `left == right` failed
//!           left: 3
//!          right: 4
//!         test result: FAILED. 13 passed; 1 failed; 0 ignored
//! say     The height is one too small, because the title is subtracted although it is not counted. So I remove the subtraction.
//! call    Edit {"file_path":"src/parser.rs","old_string":"    // The first line is the title, which is not counted.\n    let height = input.next_number() - 1;\n    Header { width, height }","new_string":"    let height = input.next_number();\n    Header { width, height }"}
//! result  The file src/parser.rs has been updated.
//!         117 fn read_header(input: &mut Input) -> Header {
//!         118     let width = input.next_number();
//!         119     let height = input.next_number();
//!         120     Header { width, height }
//!         121 }
//! call    bash {"command":"cargo test -p parser"}
//! result  running 14 tests
//!         test lexer::splits_words ... ok
//!         test lexer::skips_comments ... ok
//!         test lexer::reads_numbers ... ok
//!         test lexer::reads_negative_numbers ... ok
//!         test parser::reads_a_row ... ok
//!         test parser::reads_a_title ... ok
//!         test parser::reads_blank_cells ... ok
//!         test parser::reads_a_header ... ok
//!         test result: ok. 14 passed; 0 failed; 0 ignored
//! say     all tests pass
//! ->
//! user    fix the parser
//! note    <fanfold>
//!         Record of steps 1–3, written by fanfold, not by the user. Recall #N for the original of step N. … marks text left out.
//!         #1 bash `cargo test -p parser` → 1 failed, 13 passed, thread 'parser::reads_a_header' panicked at src/parser.rs:140:9:
//!             left: 3 …
//!         #2 The height is one too small, because the title is subtracted although it is not counted. So I remove the subtraction.
//!           edited src/parser.rs (+1 −2)
//!             -     // The first line is the title, which is not counted.
//!             -     let height = input.next_number() - 1;
//!             +     let height = input.next_number();
//!         #3 bash `cargo test -p parser` → 14 passed
//!         </fanfold>
//! note    <fanfold>
//!         State after step 3
//!           changed: src/parser.rs +1 −2 (#2)
//!           tests: `cargo test -p parser` → 14 passed (#3)
//!         </fanfold>
//! say     all tests pass
//! ```

use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::fold::policy::{Digest, SegmentPrices, SegmentSize};
use crate::fold::segment::{self, Segment, UnnamedSegment};
use crate::model::tokens::Tokens;
use crate::model::transcript::EntryId;

pub(crate) const PASS: Pass = Pass { name: "digest", run };

fn run(draft: &mut Draft<'_>, target: Tokens) {
    let Digest::Segments { share, max_tokens, max_appended } = draft.policy.digest else { return };
    let new_entries = NewEntries::find(draft);
    if let Some(size) = draft.stage.segment_size {
        if !new_entries.entries.is_empty() {
            append(draft, &new_entries, size);
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

/// Adds a segment for new entries, if that saves tokens.
fn append(draft: &mut Draft<'_>, new_entries: &NewEntries, size: SegmentSize) {
    let new = match size {
        SegmentSize::Share(share) => write_new(draft, new_entries, share),
        SegmentSize::Cheapest(prices) => write_cheapest(draft, new_entries, &prices),
    };
    absorb_if_shorter(draft, &[], new_entries, new);
}

fn write_new(draft: &mut Draft<'_>, new_entries: &NewEntries, share: u32) -> Segment {
    segment::write(draft, &[], &new_entries.entries, new_entries.cost.permille(share)).name(draft)
}

/// Writes the segment with the lowest price of its tokens and of the content that it leaves out.
fn write_cheapest(draft: &mut Draft<'_>, new_entries: &NewEntries, prices: &SegmentPrices) -> Segment {
    /// Sizes relative to the folded entries, in per mille.
    const SHARES: [u32; 8] = [60, 120, 180, 245, 350, 500, 650, 800];
    let mut best: Option<(f64, UnnamedSegment)> = None;
    for share in SHARES {
        let budget = new_entries.cost.permille(share);
        let new = segment::write(draft, &[], &new_entries.entries, budget);
        let price = prices.price(new.tokens(), new.expected_uses);
        if best.as_ref().is_some_and(|(lowest, _)| price >= *lowest) {
            break;
        }
        best = Some((price, new));
    }
    let (_, segment) = best.expect("there are sizes");
    segment.name(draft)
}

/// Writes new entries and the segments to merge as one segment, if that saves tokens.
fn replace(draft: &mut Draft<'_>, merged: &[u32], new_entries: &NewEntries, budget: Tokens) {
    // A first fold saves at least half.
    let budget = if merged.is_empty() { budget.min(new_entries.cost.permille(500)) } else { budget };
    let new = segment::write(draft, merged, &new_entries.entries, budget).name(draft);
    absorb_if_shorter(draft, merged, new_entries, new);
}

/// Adds a segment for new entries and the segments that it merges, if that saves tokens.
fn absorb_if_shorter(draft: &mut Draft<'_>, merged: &[u32], new_entries: &NewEntries, new: Segment) {
    // A merge rewrites the cached segments, so it has to save more than a few tokens.
    let before: Tokens = merged.iter().map(|&id| draft.ledger.segments[id as usize].tokens()).sum();
    let least = if new_entries.entries.is_empty() { before.permille(60) } else { Tokens::ZERO };
    draft.absorb_if_shorter(new, merged, least);
}

fn used(draft: &Draft<'_>) -> Tokens {
    let segments: Tokens = draft.ledger.live_segments().map(Segment::tokens).sum();
    segments + draft.ledger.state_tokens()
}
