//! Shortens the results beside the newest thing that the agent said: its words stay, what came back need not.
//!
//! ```text
//! say     the height is off by one
//! ->
//! say     the height is off by one
//! ```

use super::Pass;
use super::squeeze::squeeze;
use crate::draft::Draft;
use crate::tokens::Tokens;
use crate::view::Place;

/// Shortens the results beside the newest thing that the agent said.
pub(crate) const PASS: Pass = Pass { name: "anchor", run };

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    let Some(anchor) = draft.anchor() else { return };
    let most = Tokens(draft.room.0 / 50).max(Tokens(100));
    let of_anchor =
        |place: Place| place.entry() == anchor && matches!(place, Place::Result(_) | Place::Arguments(_));
    for place in draft.places(of_anchor) {
        let cost = match draft.ledger.fold_at(place) {
            Some(fold) => fold.tokens,
            None => draft.ledger.whole_cost(draft.transcript, place),
        };
        if cost > most {
            squeeze(draft, place, most);
        }
    }
}
