//! Shortens user messages if nothing else is left. The receipt reports it, and the originals can be recalled.
//!
//! First, large pasted blocks in old messages are cut to their beginning and end. Then, if user messages fill more than
//! half of the room, the oldest messages are folded to their first lines. Last, if the newest message does not fit, all
//! older messages are folded to their first lines and the newest one is cut to its beginning and end.
//!
//! ```text
//! user    Here is the log:
//!         12:00:01 INFO  server: listening on port 8080
//!         12:00:02 INFO  server: request 1 took 3 ms
//!         12:00:03 INFO  server: request 2 took 4 ms
//!         12:00:04 INFO  server: request 3 took 3 ms
//!         12:00:05 INFO  server: request 4 took 5 ms
//!         12:00:06 INFO  server: request 5 took 3 ms
//!         12:00:07 WARN  server: request 6 took 900 ms
//! say     Thanks.
//! user    Which one is slow?
//! ->
//! user    Here is the log:
//!         12:00:01 INFO  server: listening on port 8080
//!         12:00:02 INFO  server: request 1 took 3 ms
//!         [… 172 characters, #e1 …]
//!         12:00:07 WARN  server: request 6 took 900 ms
//! say     Thanks.
//! user    Which one is slow?
//! ```

use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::fold::passes::last_resort::squeeze::ends_of;
use crate::fold::policy::UserTextReach;
use crate::fold::segment;
use crate::model::location::Place;
use crate::model::tokens::Tokens;

pub(crate) const PASS: Pass = Pass { name: "user_text", run };

/// Longer messages contain a pasted block.
const PASTED: usize = 240;

fn run(draft: &mut Draft<'_>, target: Tokens) {
    match draft.stage.reach.user_text {
        UserTextReach::PastedBlocks => fold_pastes(draft, target),
        UserTextReach::Oldest if !is_mostly_user_text(draft) => {}
        UserTextReach::Oldest | UserTextReach::Older => fold_oldest(draft, target),
        UserTextReach::Newest => fold_newest(draft, target),
        UserTextReach::Never | UserTextReach::Unrestricted => {}
    }
}

/// Cuts large blocks in old messages to their beginning and end.
fn fold_pastes(draft: &mut Draft<'_>, target: Tokens) {
    for place in draft.unfolded_places(|place| matches!(place, Place::Text(_))) {
        if draft.total() <= target {
            return;
        }
        let entry = draft.transcript.entry(place.entry());
        let Some(prompt) = entry.prompt().filter(|_| entry.is_user()) else { continue };
        let text = prompt.body.as_str();
        if text.len() > PASTED {
            draft.fold_to(place, |tag| ends_of(text, PASTED * 2 / 3, tag));
        }
    }
}

/// Cuts the newest message to what fits of its beginning and end.
fn fold_newest(draft: &mut Draft<'_>, target: Tokens) {
    let Some(newest) = draft.transcript.last_user() else { return };
    let Some(prompt) = draft.transcript.entry(newest).prompt() else { return };
    let (text, tokens) = (prompt.body.as_str(), prompt.body.tokens());
    let others = draft.total() - draft.cost(newest);
    // The stub and its handles take some of the room.
    let room = (target - others).permille(700);
    let bytes = (text.len() as u64 * room.0 / tokens.0.max(1)) as usize;
    if text.len() > PASTED {
        draft.fold_to(Place::Text(newest), |tag| ends_of(text, bytes.max(PASTED * 2 / 3), tag));
    }
}

/// Folds the oldest turns into one segment with the first line of each message: half of them, three quarters, all.
fn fold_oldest(draft: &mut Draft<'_>, target: Tokens) {
    let users: Vec<_> =
        draft.absorbable().into_iter().filter(|id| draft.transcript.entry(*id).is_user()).collect();
    if users.is_empty() {
        return;
    }
    for quarters in 2..=4 {
        if draft.total() <= target {
            return;
        }
        let newest = users[(users.len() * quarters).div_ceil(4) - 1];
        let between: Vec<_> = draft.absorbable().into_iter().filter(|id| *id <= newest).collect();
        let is_old = |&id: &u32| draft.ledger.segments[id as usize].span().0 <= newest;
        let ids: Vec<u32> = draft.ledger.live_segments.iter().copied().filter(is_old).collect();
        let removed: Tokens = between.iter().map(|&id| draft.cost(id)).sum::<Tokens>()
            + ids.iter().map(|&id| draft.ledger.segments[id as usize].tokens()).sum();
        let rest = draft.total() - removed;
        let budget = (target - rest).max(draft.room.permille(60)).min(draft.room.permille(400));
        let segment = segment::write(draft, &ids, &between, budget).name(draft);
        draft.absorb_if_shorter(segment, &ids, Tokens::ZERO);
    }
}

/// Returns whether user messages fill more than half of the room in the present view.
fn is_mostly_user_text(draft: &Draft<'_>) -> bool {
    let user_costs = draft.in_view().filter(|(_, entry)| entry.is_user()).map(|(id, _)| draft.cost(id));
    user_costs.sum::<Tokens>().0 * 2 > draft.room.0
}
