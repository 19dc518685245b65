//! Shortens a large result to its most valuable lines.
//!
//! Lines are valued as in a segment: by the names, paths and values that are likely to be used and not visible
//! elsewhere. Lines that were edited come first. The output reads like the original with parts left out.

use crate::fold::draft::Draft;
use crate::model::tokens::Tokens;
use crate::model::transcript::CallId;
use crate::select::analysis::Analysis;
use crate::select::candidates::{lines_of_result, sources, weigh};
use crate::select::chooser::Chooser;
use crate::select::edited_lines::EditedLines;
use crate::text::condense::is_definition;
use crate::text::copied_lines::without_number;

/// The value of a line within `AROUND` lines of an edited one.
const WORKED_ON: f32 = 1.0;
const AROUND: usize = 2;
/// The additional value of the first line of a definition.
const DEFINITION: f32 = 0.1;

/// The most valuable lines of a call's result in about `max_tokens` tokens, if any line has a value.
pub(crate) fn gist(
    draft: &mut Draft<'_>,
    call: CallId,
    max_tokens: Tokens,
    edited: &EditedLines,
) -> Option<String> {
    let relevance = draft.relevance_without(call.step);
    let source = sources(draft.analysis, draft.transcript, &draft.policy.tools, &[call.step]).pop()?;
    let mut lines = lines_of_result(&source, call.call);
    let Analysis { lexicon, values, .. } = &mut *draft.analysis;
    weigh(&mut lines, &relevance, lexicon, &draft.ledger.folded_lines, |line| relevance.has_line(line));
    let is_edited: Vec<bool> = lines.iter().map(|line| edited.contains(line.text)).collect();
    for (i, line) in lines.iter_mut().enumerate() {
        let around = i.saturating_sub(AROUND)..(i + AROUND + 1).min(is_edited.len());
        line.worth += if is_edited[around].contains(&true) { WORKED_ON } else { 0.0 };
    }
    // A definition explains the lines below it.
    lines.iter_mut().filter(|line| is_definition(line.text)).for_each(|line| line.worth += DEFINITION);
    let of_stretch = vec![0; lines.len()];
    let atoms = lines.iter().map(|line| line.atoms);
    let values = values.compute(lexicon, atoms, &relevance, std::iter::empty());
    let mut chooser = Chooser::new(&lines, &of_stretch, values, draft.counter);
    chooser.choose(max_tokens.0 as usize);
    let mut best = chooser.chosen;
    while !best.is_empty() {
        let mut chosen: Vec<&str> = best.iter().map(|chosen| lines[chosen.line].text).collect();
        chosen.sort_unstable_by_key(|line| line.as_ptr() as usize);
        let shown = join_parts(&source.scan.script, &chosen);
        let mut over = (draft.counter.count(&shown) - max_tokens).0 as usize;
        if over == 0 {
            return Some(shown);
        }
        // The budget of the chooser does not include brackets and gaps.
        while let Some(worst) = best.pop_if(|_| over > 0) {
            over = over.saturating_sub(worst.cost);
        }
    }
    None
}

/// Joins parts of a script without their line numbers. A large gap is marked by the next line's number, if it has one.
fn join_parts(script: &str, chosen: &[&str]) -> String {
    const FAR: usize = 12;
    const SHORT: usize = 6;
    let mut out = String::new();
    let mut end_of_last = None;
    for part in chosen {
        let from = part.as_ptr() as usize - script.as_ptr() as usize;
        if let Some(end_of_last) = end_of_last {
            let between = script.get(end_of_last..from).unwrap_or_default();
            let number = number_before(&script[..from]);
            out.push('\n');
            if between.matches('\n').count() > FAR {
                out.push_str(if number.is_empty() { "…\n" } else { number });
            } else if number.is_empty() && between.trim().len() <= SHORT {
                // A closing bracket is as short as a gap mark.
                between.trim().lines().for_each(|line| {
                    out.push_str(line);
                    out.push('\n');
                });
            }
        }
        out.push_str(part);
        end_of_last = Some(from + part.len());
    }
    out
}

/// The line number before a part of a script, with its separator; empty without a line number.
fn number_before(before: &str) -> &str {
    let line = before.rsplit('\n').next().unwrap_or_default();
    if without_number(line).is_empty() { line.trim_start() } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<'a>(script: &'a str, wanted: &[&str]) -> Vec<&'a str> {
        let part = |wanted: &&str| {
            let at = script.find(*wanted).expect("it is there");
            &script[at..at + wanted.len()]
        };
        wanted.iter().map(part).collect()
    }

    #[test]
    fn keeps_closing_brackets() {
        let script = "fn one() {\n    first();\n}\n\nfn two() {\n    second();\n    third();\n}\n";
        let chosen = parts(script, &["fn one() {", "    first();", "fn two() {", "    third();"]);
        assert_eq!(join_parts(script, &chosen), "fn one() {\n    first();\n}\nfn two() {\n    third();");
    }

    #[test]
    fn marks_large_gaps() {
        let plain: String = (0..30).map(|i| format!("line {i}.\n")).collect();
        assert_eq!(join_parts(&plain, &parts(&plain, &["line 1.", "line 20."])), "line 1.\n…\nline 20.");
        let numbered: String = (0..30).map(|i| format!("  {i}→line {i}.\n")).collect();
        let chosen = parts(&numbered, &["line 1.", "line 2.", "line 20."]);
        assert_eq!(join_parts(&numbered, &chosen), "line 1.\nline 2.\n20→line 20.");
    }
}
