//! Folds results of tools that a policy names: always when they are old, or if they exceed a cap.
//!
//! Of a plan that is rewritten often, only the newest state is needed; a tool that returns a megabyte should not fill
//! the window.
//!
//! ```text
//! call    TodoWrite {"todos":[{"content":"fix the parser","status":"pending"}]}
//! result  Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress.
//! say     First the parser.
//! ->
//! call    TodoWrite {"todos":[{"content":"fix the parser","status":"pending"}]}
//! result  [TodoWrite] updated the plan [#1.1]
//! say     First the parser.
//! ```

use crate::actions::tool_rule::ToolFold;
use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::fold::passes::condense::fold_condensed;
use crate::model::location::Place;
use crate::model::tokens::Tokens;

pub(crate) const PASS: Pass = Pass { name: "tool_rules", run };

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    for (place, text) in draft.results() {
        let Place::Result(id) = place else { continue };
        let call = draft.transcript.call(id);
        let Some(rule) = draft.policy.tool(&call.tool) else { continue };
        let cost = draft.ledger.original_cost(draft.transcript, place);
        let cap = rule.cap.map(|share| draft.room.permille(share));
        let is_capping = draft.stage.reach.tail;
        if let Some(max_tokens) = cap.filter(|max_tokens| cost > *max_tokens) {
            let bytes = (text.len() as u64 * max_tokens.0 / cost.0.max(1)) as usize;
            fold_condensed(draft, place, text, bytes);
        } else if rule.fold == ToolFold::Always && !is_capping {
            let (line, _) = draft.describe_with_failure(id);
            draft.fold_to(place, |tag| format!("{line} [{tag}]"));
        }
    }
}
