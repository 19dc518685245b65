//! Folds old results to a few facts about them. (`hamr`)
//!
//! ```text
//! call    read {"path":"src/parser.rs"}
//! result  fn read_header(input: &mut Input) -> Header {
//!             let width = input.next_number();
//!             // The first line is the title, which is not counted.
//!             let height = input.next_number() - 1;
//!             Header { width, height }
//!         }
//! ->
//! call    read {"path":"src/parser.rs"}
//! result  [read] src/parser.rs (6 lines); succeeded; folded from view, recall #1.1
//! ```

use crate::actions::Verb;
use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::model::location::Place;
use crate::model::tokens::Tokens;

pub(crate) const PASS: Pass = Pass { name: "stubs", run };

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    for (place, text) in draft.results() {
        let Place::Result(id) = place else { continue };
        let action = draft.action(id);
        let is_short_output = action.verb == Verb::Run && text.len() <= draft.policy.long_result_chars;
        if is_short_output {
            continue;
        }
        let (line, has_failed) = draft.describe_with_failure(id);
        let verdict = if has_failed { "failed" } else { "succeeded" };
        let shown = match action.verb {
            Verb::Run | Verb::Edit => &text[..text.floor_char_boundary(400)],
            _ => "",
        };
        draft.fold_to(place, |tag| {
            let shown = if shown.is_empty() { String::new() } else { format!("\n{shown}") };
            format!("{line}; {verdict}; folded from view, recall {tag}{shown}")
        });
    }
}
