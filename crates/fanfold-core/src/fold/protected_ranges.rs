//! The two ends of a conversation, which stay as they are: where it began, and what is new.
//!
//! ```text
//! system, first user message      the head
//! old steps                       what may be folded
//! newest steps                    the tail: a share of the room, and at least so many steps
//! ```

use crate::fold::draft::Terms;
use crate::fold::ledger::Ledger;
use crate::fold::policy::Head;
use crate::model::tokens::Tokens;
use crate::model::transcript::{Entry, EntryId, Transcript};

/// How many of the oldest entries stay as they are.
pub(crate) fn head_end(transcript: &Transcript, ledger: &Ledger, terms: &Terms<'_>) -> usize {
    let entries = transcript.entries();
    match terms.policy.head {
        Head::Messages(least) => {
            let n_messages = |entry: &Entry| 1 + entry.step().map_or(0, |step| step.calls.len());
            let mut so_far = 0;
            let is_head = |entry: &&Entry| {
                let is_in = so_far < least;
                so_far += n_messages(entry);
                is_in
            };
            entries.iter().take_while(is_head).count()
        }
        Head::FirstTurn { steps, share } => {
            let first_user = entries.iter().position(Entry::is_user).map_or(0, |i| i + 1);
            // What framed it goes when the segment behind it is written anew: the provider's cache breaks then anyway.
            let is_merged = ledger.segments.iter().any(|segment| segment.tier > 0);
            let is_merge_due = terms.stage.keep.is_none() && ledger.live.len() > terms.policy.digest.behind();
            if is_merged || is_merge_due || terms.stage.reach.tail {
                return first_user;
            }
            let is_small = |i: usize| ledger.cost(transcript, EntryId::from(i)) <= terms.room.permille(share);
            let is_frame = |i: &usize| entries[*i].step().is_some() && is_small(*i);
            first_user + (first_user..entries.len()).take(steps).take_while(is_frame).count()
        }
    }
}

/// The first of the newest entries, which stay as they are.
pub(crate) fn tail_start(transcript: &Transcript, ledger: &Ledger, terms: &Terms<'_>) -> usize {
    let Terms { policy, stage, room, .. } = *terms;
    let share = room.permille(policy.tail.share).permille(stage.tail);
    let ceiling = share.permille(policy.tail.ceiling);
    let (least_steps, least_results) =
        if stage.reach.tail { (1, 0) } else { (policy.tail.steps, policy.tail.results) };
    let (mut steps, mut results, mut sum) = (0, 0, Tokens::ZERO);
    let mut start = transcript.len();
    for (i, entry) in transcript.entries().iter().enumerate().rev() {
        let cost = ledger.cost(transcript, EntryId::from(i));
        let is_floor = steps < least_steps || results < least_results;
        let is_room = sum < share && sum + cost <= ceiling;
        if !is_floor && !is_room {
            break;
        }
        start = i;
        sum += cost;
        if let Some(step) = entry.step() {
            steps += 1;
            results += step.calls.len();
        }
    }
    start
}
