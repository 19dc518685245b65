//! The events of a fold: a checkpoint, and a record of the new handles and the folded messages.

use std::collections::{BTreeMap, BTreeSet};

use fanfold_core::{EntryId, Extent, Place};

use crate::follow::folded_conversation::{FoldedConversation, messages_of};
use crate::log::events::{FoldRecord, SentRequest, SessionEvent};
use crate::log::originals::{self, runs_of};
use crate::log::session_log::SessionLog;

/// The events of a fold: a checkpoint before it, and the fold.
pub(crate) fn fold_events(
    folded: &FoldedConversation,
    log: &SessionLog,
    sent: &SentRequest,
) -> Vec<SessionEvent> {
    let session = &folded.session;
    let ledger = session.ledger();
    let mut handles = Vec::new();
    for (handle, original) in ledger.originals() {
        let digits = handle.to_string();
        if log.recorded_handles.contains(&digits) {
            continue;
        }
        // The hash is of the content that the session itself recalls; a later recall from the store is checked
        // against it.
        let content = session.recall(handle, &Extent::Whole).unwrap_or_default();
        handles.push((digits, originals::to_json(original), content_hash(&content)));
    }
    let n_folds = session.status().n_folds;
    let tokens = ledger.receipts().last().map_or((0, 0), |receipt| (receipt.before.0, receipt.after.0));
    let fold = FoldRecord {
        tip: sent.tip.clone().unwrap_or_default(),
        frame: sent.frame.clone(),
        format: sent.format.clone(),
        n_folds,
        tokens,
        folded: runs_of(folded_messages(folded)),
        handles,
    };
    let name = format!("before fold {n_folds}");
    vec![SessionEvent::Checkpoint { name, auto: true, tip: sent.tip.clone() }, SessionEvent::Fold(fold)]
}

/// The first 32 hexadecimal digits of the hash of an original.
pub(crate) fn content_hash(content: &str) -> String {
    blake3::hash(content.as_bytes()).to_hex()[..32].to_owned()
}

/// The messages that the view does not have in full.
pub(crate) fn folded_messages(folded: &FoldedConversation) -> BTreeSet<u32> {
    let session = &folded.session;
    let (transcript, ledger) = (session.transcript(), session.ledger());
    let mut places_of_entry: BTreeMap<EntryId, Vec<Place>> = BTreeMap::new();
    for fold in ledger.folds().iter().filter(|fold| ledger.fold_at(fold.place) == Some(fold)) {
        places_of_entry.entry(fold.place.entry()).or_default().push(fold.place);
    }
    let mut messages = BTreeSet::new();
    for (i, entry) in transcript.entries().iter().enumerate() {
        let id = EntryId::from(i);
        if ledger.is_whole(id) {
            continue;
        }
        let entry_messages = messages_of(entry);
        let Some(places) = places_of_entry.get(&id) else {
            // An entry that is not whole and has no fold of its own is part of a segment.
            messages.extend(entry_messages);
            continue;
        };
        for place in places {
            let result = match place {
                Place::Result(call) | Place::ResultMedia(call, _) => transcript.call(*call).result.as_ref(),
                _ => None,
            };
            let first = entry_messages.first().copied();
            let message = result.map(|outcome| outcome.origin.message).or(first);
            messages.extend(message.filter(|message| *message != u32::MAX));
        }
    }
    messages
}
