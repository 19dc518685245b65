//! Folds a result that a later call made stale or redundant.
//!
//! Examples are a file that was read again or edited since, and a listing, a status or a test run that was repeated.
//!
//! ```text
//! call    bash {"command":"cargo test"}
//! result  test a ... FAILED because the left was one and the right was two
//! call    bash {"command":"cargo test"}
//! result  test a ... ok
//! ->
//! call    bash {"command":"cargo test"}
//! result  [overtaken: run again later, #1.1]
//! call    bash {"command":"cargo test"}
//! result  test a ... ok
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use crate::actions::{Action, Verb, overtakes};
use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::model::location::Place;
use crate::model::tokens::Tokens;

pub(crate) const PASS: Pass = Pass { name: "overtaken", run };

/// The number of newest calls per target that are compared.
const NEWEST: usize = 8;

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    let mut newer: HashMap<String, Vec<Arc<Action>>> = HashMap::new();
    for (id, call) in draft.calls().into_iter().rev() {
        if call.result.is_none() {
            continue;
        }
        let action = draft.action(id);
        let later = newer.get(key(&action)).map_or(&[][..], Vec::as_slice);
        let overtaken_by = later.iter().rev().find(|newer| overtakes(newer, &action)).map(|newer| newer.verb);
        if let Some(verb) = overtaken_by
            && draft.ledger.fold_at(Place::Result(id)).is_none()
        {
            draft.fold(Place::Result(id), stub_words(verb));
        }
        let touched = action
            .reads
            .iter()
            .map(|file_read| &file_read.path)
            .chain(&action.changes)
            .chain([&action.target]);
        for name in touched {
            let later = newer.entry(name.clone()).or_default();
            if later.len() < NEWEST {
                later.push(Arc::clone(&action));
            }
        }
    }
}

/// The file that was read, or the target. Later calls are indexed by it.
fn key(action: &Action) -> &str {
    action.reads.first().map_or(&action.target, |file_read| &file_read.path)
}

fn stub_words(verb: Verb) -> &'static str {
    match verb {
        Verb::Read => "overtaken: read again later",
        Verb::Edit | Verb::Write => "overtaken: the file was changed later",
        Verb::List | Verb::Search | Verb::Run | Verb::Fetch | Verb::Ask | Verb::Plan | Verb::Other => {
            "overtaken: run again later"
        }
    }
}
