//! Condenses long results according to their kind: JSON, logs, test output, patches, code, listings, prose.
//!
//! Keeps what later work needs: errors, paths, identifiers, values, the beginning and the end.
//!
//! ```text
//! call    bash {"command":"cargo test"}
//! result  running 12 tests
//!         test lexer::reads_an_empty_file ... ok
//!         test lexer::reads_comments ... ok
//!         test lexer::reads_numbers ... ok
//!         test lexer::reads_strings ... ok
//!         test parser::reads_a_header ... FAILED
//!         test parser::reads_a_list ... ok
//!         test parser::reads_a_map ... ok
//!         test parser::reads_nested_lists ... ok
//!         test printer::prints_a_header ... ok
//!         test printer::prints_a_list ... ok
//!         test printer::prints_a_map ... ok
//!         test printer::round_trips ... ok
//!
//!         ---- parser::reads_a_header stdout ----
//!         thread 'parser::reads_a_header' panicked at src/parser.rs:120:9:
//!         assertion `left == right` failed
//!           left: 3
//!          right: 4
//!
//!         test result: FAILED. 11 passed; 1 failed; 0 ignored; finished in 0.02s
//! ->
//! call    bash {"command":"cargo test"}
//! result  running 12 tests
//!         … 4 passed
//!         test parser::reads_a_header ... FAILED
//!         … 7 passed
//!         ---- parser::reads_a_header stdout ----
//!         thread 'parser::reads_a_header' panicked at src/parser.rs:120:9:
//!         assertion `left == right` failed
//!           left: 3
//!          right: 4
//!
//!         test result: FAILED. 11 passed; 1 failed; 0 ignored; finished in 0.02s
//!         [condensed from 21 lines, #1.1]
//! ```

use crate::actions::{FileRead, Verb};
use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::fold::passes::arguments::lines;
use crate::model::location::Place;
use crate::model::tokens::Tokens;
use crate::text::condense::{
    CondenseOptions, ContentKind, FileExcerpt, Outlines, condense, default_room_for, detect_kind,
};

pub(crate) const PASS: Pass = Pass { name: "condense", run };

/// Shorter results are not condensed.
const LONG: usize = 400;

fn run(draft: &mut Draft<'_>, target: Tokens) {
    for (place, text) in draft.results() {
        if draft.total() <= target {
            return;
        }
        if text.len() >= LONG {
            let kind = configured_kind(draft, place).unwrap_or_else(|| detect_kind(text));
            fold_condensed(draft, place, text, default_room_for(text, kind));
        }
    }
}

/// Folds a text to about `room` bytes.
pub(crate) fn fold_condensed(draft: &mut Draft<'_>, place: Place, text: &str, room: usize) -> bool {
    let file_read = file_read(draft, place);
    let edited = file_read.as_ref().map(|file_read| draft.edited_lines(&file_read.path)).unwrap_or_default();
    let relevance = draft.relevance_without(place.entry());
    let outlines = Outlines::from_cache(std::mem::take(&mut draft.analysis.outlines));
    let lexicon = &draft.analysis.lexicon;
    let value = |line: &str| relevance.line_score(lexicon, line);
    let is_edited = |line: &str| edited.contains(line);
    let file = file_read.as_ref().map(|file_read| FileExcerpt {
        path: &file_read.path,
        first_line: file_read.lines.first(),
        is_edited: &is_edited,
    });
    let kind = configured_kind(draft, place);
    let short =
        condense(text, &CondenseOptions { room, kind, value: &value, file, outlines: Some(&outlines) });
    draft.analysis.outlines = outlines.into_cache();
    let Some(short) = short else { return false };
    let n_lines = lines(text);
    draft.fold_to(place, |tag| format!("{short}\n[condensed from {n_lines}, {tag}]"))
}

/// The kind that the policy configures for the results of a tool.
pub(crate) fn configured_kind(draft: &Draft<'_>, place: Place) -> Option<ContentKind> {
    let Place::Result(call) = place else { return None };
    draft.policy.tool(&draft.transcript.call(call).tool)?.condense
}

/// The file that a result shows, if it shows exactly one.
pub(crate) fn file_read(draft: &mut Draft<'_>, place: Place) -> Option<FileRead> {
    let Place::Result(call) = place else { return None };
    let action = draft.action(call);
    match (action.verb, action.reads.as_slice()) {
        (Verb::Read, [only]) => Some(only.clone()),
        _ => None,
    }
}
