//! Shortens anything long, the newest too, when nothing else helps: the last thing before people's words.
//!
//! ```text
//! say     alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi psi omega
//! ->
//! say     to be filled
//! ```

use super::Pass;
use super::arguments::fold_arguments;
use super::condense::fold_condensed;
use crate::draft::Draft;
use crate::recall::body_at;
use crate::tokens::Tokens;
use crate::view::Place;

/// Shortens anything long.
pub const PASS: Pass = Pass { name: "squeeze", run };

fn run(draft: &mut Draft<'_>, target: Tokens) {
    // Each round allows a place half as much; the largest give way first.
    for halving in 2..9 {
        let most = Tokens(draft.room.0 >> halving).max(Tokens(24));
        for place in long_places(draft, most) {
            if draft.total() <= target {
                return;
            }
            squeeze(draft, place, most);
        }
    }
}

/// The places that cost more than `most`, oldest first.
fn long_places(draft: &Draft<'_>, most: Tokens) -> Vec<Place> {
    let cost = |place: Place| match draft.ledger.fold_at(place) {
        Some(fold) => fold.tokens,
        None => draft.ledger.whole_cost(draft.transcript, place),
    };
    draft.places(|place| body_at(draft.transcript, place).is_some() && cost(place) > most)
}

fn squeeze(draft: &mut Draft<'_>, place: Place, most: Tokens) {
    let body = body_at(draft.transcript, place).expect("a long place has a text");
    let (text, tokens) = (body.as_str(), body.tokens().0.max(1));
    // As many bytes as `most` tokens of this very text take, less the handle.
    let room = (text.len() as u64 * most.0.saturating_sub(16) / tokens).max(40) as usize;
    if matches!(place, Place::Arguments(_)) {
        fold_arguments(draft, place, room / 2, room / 4);
        return;
    }
    let is_condensed = matches!(place, Place::Result(_)) && fold_condensed(draft, place, text, room);
    if !is_condensed {
        draft.fold_to(place, |tag| ends_of(text, room, tag));
    }
}

/// The beginning and the end of a text, with the handle between them.
pub(super) fn ends_of(text: &str, room: usize, tag: &str) -> String {
    let head = text.floor_char_boundary(room * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - (room / 3).min(text.len() - head));
    format!(
        "{}\n[… {} characters, {tag} …]\n{}",
        text[..head].trim_end(),
        tail - head,
        text[tail..].trim_start()
    )
}
