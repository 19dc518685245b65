//! Keeps only the last of several consecutive assistant messages. (`rules`)
//!
//! ```text
//! user    think about it
//! say     The first thought is long and leads nowhere in particular.
//! say     The second thought is no better and not much shorter.
//! say     The third thought is the one.
//! ->
//! user    think about it
//! say     [2 earlier thoughts, #1-2]
//! say     The third thought is the one.
//! ```

use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::fold::segment::{part, runs, seal};
use crate::model::tokens::Tokens;
use crate::model::transcript::EntryId;
use crate::model::view::Voice;

pub(crate) const PASS: Pass = Pass { name: "collapse", run };

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    let entries = draft.transcript.entries();
    let is_plain =
        |i: usize| entries.get(i).and_then(|entry| entry.step()).is_some_and(|step| step.calls.is_empty());
    let is_followed = |id: &EntryId| is_plain(id.index()) && is_plain(id.index() + 1);
    let collapsed: Vec<EntryId> = draft.absorbable().into_iter().filter(is_followed).collect();
    if collapsed.is_empty() {
        return;
    }
    let mut parts = Vec::new();
    let mut handles = Vec::new();
    for run in runs(&collapsed) {
        let handle = draft.name_entries(run);
        parts.push(part(draft, run[0], format!("[{} earlier thoughts, {handle}]", run.len())));
        handles.push(handle);
    }
    let segment = seal(draft, collapsed, parts, Voice::Assistant, handles);
    draft.absorb_if_shorter(segment, &[], Tokens::ZERO);
}
