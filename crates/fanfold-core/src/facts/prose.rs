//! The statements in a text of the agent, each with a value: decisions and conclusions with their reasons come first.
//!
//! ```text
//! Now let me look at the tests. They fail because `requeue` loses the job, so I will keep the claim.
//! ->  0.0  Now let me look at the tests.
//!     5.1  They fail because `requeue` loses the job, so I will keep the claim.
//! ```

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// A sentence, a list item or a line of code in a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statement {
    /// The bytes of the text.
    pub(crate) range: Range<usize>,
    /// The number of its paragraph, list item or line.
    pub(crate) paragraph: u32,
    /// Zero for a statement without information.
    pub(crate) value: f32,
    /// The number of list items or rows that it joins.
    n_items: u32,
}

/// Splits a text into statements. In a report to the user, code is kept and every statement has more value.
pub(crate) fn statements(text: &str, is_report: bool) -> Vec<Statement> {
    let found = split(text, is_report);
    let mut found = join_dependent(text, found, is_report);
    let n = found.len();
    for (i, statement) in found.iter_mut().enumerate() {
        if statement.value == 0.0 {
            let is_middle = !is_report && n > LONG_THOUGHT && i >= 3 && n - i > 8;
            let place = SentencePlace { is_first: i == 0, from_end: n - 1 - i, is_middle };
            let value = value(&text[statement.range.clone()], place, is_report);
            statement.value = value * statement.n_items as f32;
        }
    }
    found
}

/// The number of statements above which the middle of a thought counts less: it tries ideas that the end decides on.
const LONG_THOUGHT: usize = 16;

/// The value of a line of code in a report.
const CODE: f32 = 0.8;

fn split(text: &str, is_report: bool) -> Vec<Statement> {
    const MAX_CODE_LINES: usize = 12;
    let mut found: Vec<Statement> = Vec::new();
    let (mut at, mut paragraph, mut n_code_lines) = (0, 0, None);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let trimmed = line.trim();
        let from = start + (line.len() - line.trim_start().len());
        if trimmed.starts_with("```") {
            n_code_lines = if n_code_lines.is_some() { None } else { Some(0) };
            paragraph += 20;
            continue;
        }
        if let Some(n) = &mut n_code_lines {
            *n += 1;
            let has_words = trimmed.contains(char::is_alphanumeric);
            if is_report && *n <= MAX_CODE_LINES && has_words {
                let range = start..start + line.trim_end().len();
                found.push(Statement { range, paragraph, value: CODE, n_items: 1 });
                paragraph += 1;
            }
            continue;
        }
        let has_words = trimmed.chars().filter(|c| c.is_alphanumeric()).count() > 1;
        if !has_words || !is_report && is_code(line) {
            continue;
        }
        paragraph += 1;
        let label = LABEL.find(trimmed).map_or(0, |found| found.end());
        for range in sentences(&trimmed[label..], is_report) {
            let range = from + label + range.start..from + label + range.end;
            found.push(Statement { range, paragraph, value: 0.0, n_items: 1 });
        }
    }
    found
}

/// Returns whether a line outside of a fence is code.
fn is_code(line: &str) -> bool {
    let is_indented = line.starts_with("    ")
        && !line.trim_start().starts_with(|c: char| c == '-' || c == '*' || c.is_ascii_digit());
    is_indented || CODE_LINE.is_match(line.trim())
}

/// The sentences of a line. A list item is one sentence.
fn sentences(line: &str, is_report: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let is_item = line.starts_with(['-', '*', '|', '#']) || NUMBERED.is_match(line);
    let mut start = 0;
    for (at, c) in line.char_indices() {
        let ends_here = matches!(c, '.' | '!' | '?' | '。') && !is_item;
        let rest = &line[at + c.len_utf8()..];
        let next = rest.trim_start();
        let begins = |c: char| c.is_uppercase() || c.is_ascii_digit() || "`*\"'(#".contains(c);
        let has_end = (rest.starts_with(char::is_whitespace) && next.starts_with(begins)) || c == '。';
        let is_abbreviation =
            ["e.g.", "i.e.", "etc.", "vs."].iter().any(|word| line[..at + c.len_utf8()].ends_with(word));
        if ends_here && has_end && !is_abbreviation {
            found.push(start..at + c.len_utf8());
            start = line.len() - next.len();
        }
    }
    found.push(start..line.len());
    let mut found: Vec<Range<usize>> = found.into_iter().filter(|range| range.len() > 3).collect();
    if !is_report {
        for range in &mut found {
            range.start += CHEER.find(&line[range.clone()]).map_or(0, |cheer| cheer.end());
        }
    }
    found
}

/// Joins sentences that depend on each other, such as `So I keep it.`, the items of a short list, and a line that ends in
/// a colon with the next one.
fn join_dependent(text: &str, statements: Vec<Statement>, is_report: bool) -> Vec<Statement> {
    const MAX_LEN: usize = 360;
    const MAX_LIST: usize = 1_000;
    let mut joined: Vec<Statement> = Vec::new();
    // The paragraph of the last statement that was joined.
    let mut paragraph = 0;
    for statement in statements {
        let own = &text[statement.range.clone()];
        let is_joined = joined.last().is_some_and(|last| {
            let before = &text[last.range.clone()];
            let last_line = before.rsplit('\n').next().unwrap_or_default().trim_start();
            let is_list = is_item(last_line) && is_item(own);
            let is_next = statement.paragraph <= paragraph + 1;
            let depends = !is_report && DEPENDENT.is_match(own) && statement.paragraph == paragraph;
            let len = statement.range.end - last.range.start;
            let continues = is_next && (is_list || before.ends_with(':') && last.n_items > 1);
            continues && len < MAX_LIST || len < MAX_LEN && (depends || is_next && before.ends_with(':'))
        });
        paragraph = statement.paragraph;
        match joined.last_mut().filter(|_| is_joined) {
            Some(last) => {
                last.range.end = statement.range.end;
                last.n_items += 1;
            }
            None => joined.push(statement),
        }
    }
    joined
}

/// Returns whether a line is an item of a list or a row of a table.
fn is_item(line: &str) -> bool {
    NUMBERED.is_match(line) || ["- ", "* ", "| ", "|"].iter().any(|mark| line.starts_with(mark))
}

/// The place of a sentence in its text.
#[derive(Clone, Copy)]
struct SentencePlace {
    is_first: bool,
    from_end: usize,
    is_middle: bool,
}

fn value(sentence: &str, place: SentencePlace, is_report: bool) -> f32 {
    let n_strong = STRONG.find_iter(sentence).take(3).count();
    let n_weak = REASON.find_iter(sentence).take(4).count();
    let n_words = sentence.split_whitespace().count();
    let mut value = 0.6 + 1.6 * n_strong.min(2) as f32 + 0.5 * n_weak.min(3) as f32;
    value += if place.is_first { 0.7 } else { 0.0 };
    value += match place.from_end {
        0 => 1.8,
        1 => 1.0,
        2 => 0.5,
        _ => 0.0,
    };
    if HESITATION.is_match(sentence) {
        value -= 1.4;
    }
    if TELLS_CODE.is_match(sentence) {
        value -= 0.7;
    }
    if place.is_middle {
        value *= 0.6;
    }
    let bare = NUMBERED.find(sentence).map_or(sentence, |found| &sentence[found.end()..]);
    if is_filler(bare) {
        value -= if n_strong + n_weak < 2 { 1.6 } else { 0.6 };
    }
    // A heading was joined with the text below it. If that is code, the record has none of it.
    if sentence.ends_with(':') && !is_report {
        value -= 2.0;
    }
    if sentence.ends_with(':') && place.from_end == 0 || n_words < 4 && !sentence.contains("。") {
        value -= 1.0;
    }
    if sentence.ends_with('?') {
        value -= 0.8;
    }
    if sentence.len() < 45 && !NAMES_SOMETHING.is_match(sentence) {
        value -= 1.2;
    }
    (value + if is_report { 1.5 } else { 0.0 }).max(0.0)
}

/// Returns whether a text states a reason or a decision.
pub(crate) fn gives_reason(text: &str) -> bool {
    STRONG.is_match(text)
}

/// Returns whether a sentence only announces the next step.
fn is_filler(sentence: &str) -> bool {
    FILLER.find(sentence).is_some_and(|found| !sentence[found.end()..].trim_start().starts_with("not"))
}

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect("a pattern"));
    };
}

pattern!(LABEL, r"^(?i:thought):\s*");
pattern!(NUMBERED, r"^\d+\. ");
pattern!(CODE_LINE, r"^(?:def|class|if|for|with|return|import|from|elif|else|try)\b.*[:)=]$|^[\w.]+ = ");
pattern!(
    CHEER,
    r"^(?i:(?:perfect|great|excellent|good|ok(?:ay)?|alright|wait|ah|oh|yes|hmm+|nice|awesome|wow|right)\b[!.,:]+ *)+"
);
pattern!(
    DEPENDENT,
    r"^(?:So|This|That|It|But|However|Therefore|Thus|Then|And|Which|These|Those|They|He|Because|Since|Instead|Hence|Also|i\.e)\b|^[a-z(]"
);
pattern!(
    REASON,
    r"(?i)\b(?:because|so|since|therefore|thus|instead|but|however|actually|fix(?:e[sd])?|found|root cause|decided?|won't|fail(?:s|ed|ing)?|works?|cause[sd]?|issue|problem|bug|means?|cannot|can't|doesn't|isn't|wasn't|not|only|must|should|correct|wrong|confirm(?:s|ed)?|expected|turns out|reason|already|missing|never|breaks?|broken|reverted?|keep|prefer|passe[sd]|passing|succe\w+)\b"
);
pattern!(
    STRONG,
    r"(?i)\b(?:because|therefore|instead|root cause|decided?|won't|fails|works|turns out|the (?:issue|problem|bug|cause|reason|fix) (?:is|was)|fixed|confirm(?:s|ed)|critical|conclu\w+|i(?:'ll| will) (?:keep|use|change|replace|remove|revert)|passed|both)\b"
);
pattern!(
    FILLER,
    r"^(?i:(?:ok(?:ay)?|now|first|next|then|so|also|finally|and|good|alright|again)[,.]? +)*(?i:let me|let's|i'll|i will|i need to|i should|i want to|i'm going to|time to|we need to|we should|here(?:'s| is)|i have (?:a good|all)|(?:check|run|verify|look|create|update|add|fix)\w*)"
);
pattern!(
    HESITATION,
    r"^(?i:but wait|wait|maybe|hmm|what if|or maybe|perhaps|actually, wait|let's see|i wonder|is it|does it|if i can)\b"
);
pattern!(
    TELLS_CODE,
    r"^(?:It|Then it|`[^`]+`)(?: also)? (?:calls?|iterates?|accesses|checks?|adds?|returns?|takes?|contains?|loops?|points?|sends?)\b"
);
pattern!(NAMES_SOMETHING, r"[`_\d/.(]\w|[a-z][A-Z]");

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, is_report: bool, expected: &Expect) {
        let shown = |found: Statement| {
            format!("{:.1} {} {}\n", found.value, found.paragraph, &text[found.range].replace('\n', "⏎"))
        };
        expected.assert_eq(&statements(text, is_report).into_iter().map(shown).collect::<String>());
    }

    #[test]
    fn decisions_with_reasons_have_the_most_value() {
        check(
            "Great! Now let me look at the tests. They fail because `requeue` loses the job, so I will keep the claim.\n\n1. Run it\n```bash\npytest\n```\nIs that right?",
            false,
            &expect![[r#"
                0.0 1 
                10.4 1 Now let me look at the tests. They fail because `requeue` loses the job, so I will keep the claim.
                0.0 2 1. Run it
                0.0 43 Is that right?
            "#]],
        );
    }

    #[test]
    fn a_report_keeps_its_code() {
        check(
            "Done.\n\n```\nlet a = 1;\n```\nAll of it works, e.g. `a.rs`.",
            true,
            &expect![[r#"
                1.1 1 Done.
                0.8 21 let a = 1;
                6.0 43 All of it works, e.g. `a.rs`.
            "#]],
        );
    }
}
