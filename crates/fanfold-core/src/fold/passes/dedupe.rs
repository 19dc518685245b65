//! Folds a result that is repeated verbatim later.
//!
//! Agents read the same file many times. Only the newest copy is worth its tokens.
//!
//! ```text
//! call    read notes.md
//! result  buy milk, eggs, bread and a cake for Sunday
//! call    read notes.md
//! result  buy milk, eggs, bread and a cake for Sunday
//! ->
//! call    read notes.md
//! result  [read again later, #1.1]
//! call    read notes.md
//! result  buy milk, eggs, bread and a cake for Sunday
//! ```

use std::collections::BTreeSet;

use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::model::location::Place;
use crate::model::tokens::Tokens;

pub(crate) const PASS: Pass = Pass { name: "dedupe", run };

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    let mut newer = BTreeSet::new();
    for (id, call) in draft.calls().into_iter().rev() {
        let Some(outcome) = &call.result else { continue };
        let is_whole = draft.ledger.fold_at(Place::Result(id)).is_none();
        if !is_whole {
            continue;
        }
        let is_first_seen = newer.insert(outcome.body.as_str());
        if !is_first_seen {
            draft.fold(Place::Result(id), "read again later");
        }
    }
}
