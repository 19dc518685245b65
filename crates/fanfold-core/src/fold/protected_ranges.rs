//! The protected ranges of a conversation: the head and the tail are not folded.
//!
//! ```text
//! system, first user message      the head
//! old steps                       may be folded
//! recent steps                    the middle zone: keeps what the agent wrote, and a line of each result
//! newest steps                    the tail: a share of the room, and a minimum number of steps
//! ```

use crate::fold::draft::DraftOptions;
use crate::fold::ledger::Ledger;
use crate::fold::policy::Head;
use crate::model::location::Place;
use crate::model::tokens::Tokens;
use crate::model::transcript::{CallId, Entry, EntryId, Transcript};

/// The number of oldest entries that are not folded.
pub(crate) fn head_end(transcript: &Transcript, ledger: &Ledger, options: &DraftOptions<'_>) -> usize {
    let entries = transcript.entries();
    match options.policy.head {
        Head::Messages(min_messages) => {
            let n_messages = |entry: &Entry| 1 + entry.step().map_or(0, |step| step.calls.len());
            let mut n_before = 0;
            let is_head = |entry: &&Entry| {
                let is_protected = n_before < min_messages;
                n_before += n_messages(entry);
                is_protected
            };
            entries.iter().take_while(is_head).count()
        }
        Head::FirstTurn { steps, share } => {
            let first_user = entries.iter().position(Entry::is_user).map_or(0, |i| i + 1);
            // A command of the harness may start the conversation. Its steps are not the context of the first user message.
            let first_step = entries.iter().position(|entry| entry.step().is_some());
            let first_user = first_user.min(first_step.unwrap_or(entries.len()));
            // A merge of segments breaks the provider's cache anyway, so the steps before the segment are folded with
            // it.
            let is_merged = ledger.segments.iter().any(|segment| segment.tier > 0);
            let is_merge_due = options.stage.segment_size.is_none()
                && ledger.live_segments.len() > options.policy.digest.max_appended();
            if is_merged || is_merge_due || options.stage.reach.tail {
                return first_user;
            }
            let is_small =
                |i: usize| ledger.cost(transcript, EntryId::from(i)) <= options.room.permille(share);
            let is_small_step = |i: &usize| entries[*i].step().is_some() && is_small(*i);
            first_user + (first_user..entries.len()).take(steps).take_while(is_small_step).count()
        }
    }
}

/// The index of the first of the newest entries that are not folded.
pub(crate) fn tail_start(transcript: &Transcript, ledger: &Ledger, options: &DraftOptions<'_>) -> usize {
    let DraftOptions { policy, stage, room, .. } = *options;
    let share = room.permille(policy.tail.share).permille(stage.tail);
    let ceiling = share.permille(policy.tail.ceiling);
    let (min_steps, min_results) =
        if stage.reach.tail { (1, 0) } else { (policy.tail.steps, policy.tail.results) };
    let (mut steps, mut results, mut sum) = (0, 0, Tokens::ZERO);
    let mut start = transcript.len();
    for (i, entry) in transcript.entries().iter().enumerate().rev() {
        let cost = ledger.cost(transcript, EntryId::from(i));
        let is_below_minimum = steps < min_steps || results < min_results;
        let fits = sum < share && sum + cost <= ceiling;
        if !is_below_minimum && !fits {
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

/// The index of the first entry of the middle zone, which ends where the tail begins.
pub(crate) fn middle_start(
    transcript: &Transcript,
    ledger: &Ledger,
    options: &DraftOptions<'_>,
    tail: usize,
) -> usize {
    const LINE: Tokens = Tokens(150);
    let DraftOptions { policy, stage, room, .. } = *options;
    let reach = if stage.reach.tail { 0 } else { stage.tail };
    let share = room.permille(policy.middle_share).permille(reach);
    let mut sum = Tokens::ZERO;
    for i in (0..tail).rev() {
        let id = EntryId::from(i);
        let n_calls = transcript.entry(id).step().map_or(0, |step| step.calls.len());
        let results = (0..n_calls).map(|call| Place::Result(CallId { step: id, call: call as u16 }));
        let saved: Tokens = results.map(|place| ledger.original_cost(transcript, place) - LINE).sum();
        sum += transcript.tokens(id) - saved;
        if sum > share || ledger.is_in_segment(id) {
            return i + 1;
        }
    }
    0
}
