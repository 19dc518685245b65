//! Folds old images and files to a short text.
//!
//! A picture costs like pages of text and is needed once. The newest user message with pictures keeps them,
//! unless user text would have to be folded instead.
//!
//! ```text
//! user    what is this?
//! image   image/png
//! say     a red square
//! user    and this?
//! image   image/png
//! ->
//! user    what is this?
//! image   [image/png, #e1i1]
//! say     a red square
//! user    and this?
//! image   image/png
//! ```

use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::model::location::Place;
use crate::model::tokens::Tokens;
use crate::model::transcript::{Entry, Media};

pub(crate) const PASS: Pass = Pass { name: "media", run };

fn run(draft: &mut Draft<'_>, target: Tokens) {
    let has_any = draft.in_view().any(|(_, entry)| entry.has_media());
    if !has_any {
        return;
    }
    let is_media = |place| matches!(place, Place::PromptMedia(..) | Place::ResultMedia(..));
    for place in draft.unfolded_places(is_media) {
        // Old media are folded together, so that the cached prefix breaks once; newer ones one by one.
        let is_enough = draft.stage.reach.images && draft.total() <= target;
        if is_enough {
            return;
        }
        let label = media_at(draft, place).map_or_else(|| "media".to_owned(), |media| media.label.clone());
        draft.fold(place, &label);
    }
}

fn media_at<'a>(draft: &Draft<'a>, place: Place) -> Option<&'a Media> {
    match (draft.transcript.entry(place.entry()), place) {
        (Entry::Prompt(prompt), Place::PromptMedia(_, i)) => prompt.media.get(usize::from(i)),
        (Entry::Step(_), Place::ResultMedia(call, i)) => {
            draft.transcript.call(call).result.as_ref()?.media.get(usize::from(i))
        }
        _ => None,
    }
}
