//! The lines of one result that are worth most, in their order, for a result that is too large to stay as it is.
//!
//! What a line adds is what it adds to a segment: the names, paths and values that are likely to be used and stand
//! nowhere else in view, each once; what was worked on comes first. What is printed reads like the original with parts
//! left out.

use crate::candidates::{lines_of_result, sources, weigh};
use crate::changed::Changed;
use crate::choice::Chooser;
use crate::condense::is_definition;
use crate::copies::without_number;
use crate::draft::Draft;
use crate::tokens::Tokens;
use crate::transcript::CallId;

/// What a line of a file is worth that was worked on, or is no further than so many lines from one.
const WORKED_ON: f32 = 1.0;
const AROUND: usize = 2;
/// What the first line of a definition is worth beside what stands in it.
const DEFINITION: f32 = 0.1;

/// The lines of a call's result worth most, for about so many tokens; nothing where none is worth anything.
pub(crate) fn gist(draft: &mut Draft<'_>, call: CallId, most: Tokens, changed: &Changed) -> Option<String> {
    let worth = draft.worth_beside(call.step);
    let source = sources(draft, &[call.step]).pop()?;
    let mut lines = lines_of_result(&source, call.call, &worth);
    let lexicon = &draft.ledger.lexicon;
    weigh(&mut lines, &worth, lexicon, |line| worth.has_line(line));
    let is_changed: Vec<bool> = lines.iter().map(|line| changed.holds(line.text)).collect();
    for (i, line) in lines.iter_mut().enumerate() {
        let around = i.saturating_sub(AROUND)..(i + AROUND + 1).min(is_changed.len());
        line.worth += if is_changed[around].contains(&true) { WORKED_ON } else { 0.0 };
    }
    // What stands under one is understood by it.
    lines.iter_mut().filter(|line| is_definition(line.text)).for_each(|line| line.worth += DEFINITION);
    let of_stretch = vec![0; lines.len()];
    let atoms = lines.iter().map(|line| line.atoms);
    let values = draft.ledger.values.work_out(lexicon, atoms, &worth, std::iter::empty());
    let mut chooser = Chooser::new(&lines, &of_stretch, values, draft.counter);
    chooser.is_once = worth.choice.is_once;
    chooser.choose(most.0 as usize);
    let mut best = chooser.chosen;
    while !best.is_empty() {
        let mut chosen: Vec<&str> = best.iter().map(|chosen| lines[chosen.line].text).collect();
        chosen.sort_unstable_by_key(|line| line.as_ptr() as usize);
        let shown = printed(&source.scan.script, &chosen);
        let mut over = (draft.counter.count(&shown) - most).0 as usize;
        if over == 0 {
            return Some(shown);
        }
        // The brackets and marks between them are not counted in.
        while let Some(worst) = best.pop_if(|_| over > 0) {
            over = over.saturating_sub(worst.cost);
        }
    }
    None
}

/// Parts of a script in their order, without their numbers. Where much is left out between two of them, that is told:
/// by the number of the line that comes next, if it has one.
fn printed(script: &str, chosen: &[&str]) -> String {
    const FAR: usize = 12;
    const SHORT: usize = 6;
    let mut out = String::new();
    let mut behind = None;
    for part in chosen {
        let from = part.as_ptr() as usize - script.as_ptr() as usize;
        if let Some(behind) = behind {
            let between = script.get(behind..from).unwrap_or_default();
            let number = number_before(&script[..from]);
            out.push('\n');
            if between.matches('\n').count() > FAR {
                out.push_str(if number.is_empty() { "…\n" } else { number });
            } else if number.is_empty() && between.trim().len() <= SHORT {
                // A bracket costs no more than its being left out.
                between.trim().lines().for_each(|line| {
                    out.push_str(line);
                    out.push('\n');
                });
            }
        }
        out.push_str(part);
        behind = Some(from + part.len());
    }
    out
}

/// The number that stands before a part of a script, with its sign; nothing where there is none.
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
    fn what_is_printed_reads_like_the_original() {
        let script = "fn one() {\n    first();\n}\n\nfn two() {\n    second();\n    third();\n}\n";
        let chosen = parts(script, &["fn one() {", "    first();", "fn two() {", "    third();"]);
        assert_eq!(printed(script, &chosen), "fn one() {\n    first();\n}\nfn two() {\n    third();");
    }

    #[test]
    fn what_is_far_is_told() {
        let plain: String = (0..30).map(|i| format!("line {i}.\n")).collect();
        assert_eq!(printed(&plain, &parts(&plain, &["line 1.", "line 20."])), "line 1.\n…\nline 20.");
        let numbered: String = (0..30).map(|i| format!("  {i}→line {i}.\n")).collect();
        let chosen = parts(&numbered, &["line 1.", "line 2.", "line 20."]);
        assert_eq!(printed(&numbered, &chosen), "line 1.\nline 2.\n20→line 20.");
    }
}
