//! What was folded, as it is noted: every new handle with what it opens, and what is no longer in the view.

use std::collections::{BTreeMap, BTreeSet};

use fanfold_core::{EntryId, Extent, Place};

use crate::follow::pipeline::{Followed, messages_of};
use crate::log::notes::{FoldMade, Note, Sent};
use crate::log::originals::{self, runs_of};
use crate::log::session_log::Past;

/// The notes of a fold: a place to come back to, and the fold.
pub(crate) fn record(followed: &Followed, past: &Past, sent: &Sent) -> Vec<Note> {
    let session = &followed.session;
    let ledger = session.ledger();
    let mut handles = Vec::new();
    for (handle, original) in ledger.originals() {
        let digits = handle.to_string();
        if past.known.contains(&digits) {
            continue;
        }
        // What a handle opens is taken from the session itself, so that a check is against what was promised.
        let content = session.recall(handle, &Extent::Whole).unwrap_or_default();
        handles.push((digits, originals::write(original), print_of(&content)));
    }
    let n_folds = session.status().n_folds;
    let tokens = ledger.receipts().last().map_or((0, 0), |receipt| (receipt.before.0, receipt.after.0));
    let fold = FoldMade {
        tip: sent.tip.clone().unwrap_or_default(),
        frame: sent.frame.clone(),
        format: sent.format.clone(),
        n_folds,
        tokens,
        folded: runs_of(folded(followed)),
        handles,
    };
    let name = format!("before fold {n_folds}");
    vec![Note::Checkpoint { name, auto: true, tip: sent.tip.clone() }, Note::Fold(fold)]
}

/// The beginning of the hash of an original: enough to tell that it is the one.
pub(crate) fn print_of(content: &str) -> String {
    blake3::hash(content.as_bytes()).to_hex()[..32].to_owned()
}

/// The messages that are not in the view as they came, in order.
pub(crate) fn folded(followed: &Followed) -> BTreeSet<u32> {
    let session = &followed.session;
    let (transcript, ledger) = (session.transcript(), session.ledger());
    let mut standing: BTreeMap<EntryId, Vec<Place>> = BTreeMap::new();
    for fold in ledger.folds().iter().filter(|fold| ledger.fold_at(fold.place) == Some(fold)) {
        standing.entry(fold.place.entry()).or_default().push(fold.place);
    }
    let mut folded = BTreeSet::new();
    for (i, entry) in transcript.entries().iter().enumerate() {
        let id = EntryId::from(i);
        if ledger.is_whole(id) {
            continue;
        }
        let messages = messages_of(entry);
        let Some(places) = standing.get(&id) else {
            // What has no fold of its own is inside a segment.
            folded.extend(messages);
            continue;
        };
        for place in places {
            let result = match place {
                Place::Result(call) | Place::ResultMedia(call, _) => transcript.call(*call).result.as_ref(),
                _ => None,
            };
            let own = messages.first().copied();
            folded.extend(result.map(|outcome| outcome.origin.message).or(own).filter(|m| *m != u32::MAX));
        }
    }
    folded
}
