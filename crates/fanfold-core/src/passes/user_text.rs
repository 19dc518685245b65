//! Shortens people's own words, when nothing else is left: told loudly in the receipt, and recallable.
//!
//! First large pasted blocks in old messages, to their beginning, their end and the handle. Then, only when people's
//! text alone fills more than half of the room, the oldest messages to their first line and the handle.
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
//!         [… 172 characters, c3abb33a …]
//!         12:00:07 WARN  server: request 6 took 900 ms
//! say     Thanks.
//! user    Which one is slow?
//! ```

use super::Pass;
use super::squeeze::ends_of;
use crate::draft::Draft;
use crate::policy::Users;
use crate::tokens::Tokens;
use crate::transcript::{Entry, EntryId};
use crate::view::Place;

/// Shortens people's words.
pub(crate) const PASS: Pass = Pass { name: "user_text", run };

/// A message of more bytes than this holds a pasted block.
const PASTED: usize = 240;

fn run(draft: &mut Draft<'_>, target: Tokens) {
    let is_text = |place| matches!(place, Place::Text(_));
    let of_users = |place: &Place| draft.transcript.entry(place.entry()).is_user();
    let places: Vec<_> = draft.places(is_text).into_iter().filter(of_users).collect();
    let is_oldest = draft.stage.reach.users == Users::Oldest;
    if is_oldest && human_text(draft).0 * 2 <= draft.room.0 {
        return;
    }
    for place in places {
        if draft.total() <= target {
            return;
        }
        let Entry::Prompt(prompt) = draft.transcript.entry(place.entry()) else { continue };
        let text = prompt.body.as_str();
        if is_oldest {
            let line = text.lines().next().unwrap_or_default();
            let line = &line[..line.floor_char_boundary(120)];
            draft.fold_to(place, |tag| format!("{line}\n[the rest of this message is folded, {tag}]"));
        } else if text.len() > PASTED {
            draft.fold_to(place, |tag| ends_of(text, 160, tag));
        }
    }
}

fn human_text(draft: &Draft<'_>) -> Tokens {
    let entries = draft.transcript.entries().iter().enumerate();
    entries.filter(|(_, entry)| entry.is_user()).map(|(i, _)| draft.transcript.tokens(EntryId::from(i))).sum()
}
