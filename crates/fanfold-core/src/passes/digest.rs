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
use crate::value::knob;

/// Folds whole old steps.
pub(crate) const PASS: Pass = Pass { name: "digest", run };

fn run(draft: &mut Draft<'_>, target: Tokens) {
    let Digest::Segments { share, most, fanout } = draft.policy.digest else { return };
    // Before people's words are touched, the digest is as small as it can be.
    let is_minimal = draft.stage.reach.tail;
    let candidates = draft.absorbable();
    let old: Tokens = candidates.iter().map(|&id| draft.cost(id)).sum();
    // A tail that is too large is cut by itself: it must not push out what is known.
    let tail = draft.tail_cost();
    let excess = tail - draft.room.permille(draft.policy.tail.share);
    let others = draft.total() - used(draft) - old - excess;
    let most = draft.room.permille(if is_minimal { share / 4 } else { share }).min(most);
    let limit = most.min(target - others).max(draft.room.permille(share / 4).min(most));
    if candidates.is_empty() && draft.total() <= target {
        return;
    }
    let _ = fanout;
    if std::env::var("FF_LOG").is_ok() { eprintln!("DIGEST stage {} candidates {:?} old {} total {} tail {} excess {} limit {} used {}", draft.stage.name, candidates, old.0, draft.total().0, tail.0, excess.0, limit.0, used(draft).0); }
    let now = used(draft);
    let base_share = knob("base", 0.7);
    let n_recent = knob("recent", 3.0) as u32;
    let scaled = |share: f32| Tokens((limit.0 as f32 * share) as u64);
    let live = draft.ledger.live.clone();
    let segment = |id: u32| &draft.ledger.segments[id as usize];
    let (ids, budget): (Vec<u32>, Tokens) = match live[..] {
        [] => (vec![], scaled(knob("first", 0.7))),
        [.., recent] => {
            let is_base = live.len() == 1;
            let ids = if is_base { vec![] } else { vec![recent] };
            let merged: Tokens = ids.iter().map(|&id| segment(id).tokens()).sum();
            let free = limit - (now - merged);
            let age = if is_base { 0 } else { segment(recent).tier + 1 };
            if age >= n_recent || free < scaled(knob("leastfree", 0.15)) { (live.clone(), scaled(base_share)) } else { (ids, free) }
        }
    };
    let before: Tokens = ids.iter().map(|&id| segment(id).tokens()).sum();
    if !candidates.is_empty() || ids.len() > 1 {
        let budget = if ids.is_empty() { budget.min(old.permille(knob("half", 500.0) as u32)) } else { budget };
        let merged = segment::merge(draft, &ids, &candidates, budget);
        if merged.tokens() < before + old {
            draft.absorb(merged, &ids);
        }
    }
    let is_too_much = draft.total() > target && used(draft) > limit;
    if is_too_much {
        let all = draft.ledger.live.clone();
        let merged = segment::merge(draft, &all, &[], limit);
        if merged.tokens() < used(draft) {
            draft.absorb(merged, &all);
        }
    }
}

fn used(draft: &Draft<'_>) -> Tokens {
    draft.ledger.live_segments().map(segment::Segment::tokens).sum()
}
