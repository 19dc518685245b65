//! Prose: keeps headings, the first sentence of each paragraph, and sentences in use.
//!
//! In 400 bytes:
//!
//! ```text
//! # Storage
//!
//! All of it is kept in one SQLite file in the home directory of the user. The file is made when it is first needed,
//! and grows by about a megabyte for every thousand messages. It can be copied while nothing is running.
//!
//! ## Limits
//!
//! A session may have a million messages before it gets slow. Searching takes longer from there on, and so does opening
//! it. Old sessions can be moved to another file, which is then read only.
//!
//! ## Moving house
//!
//! Copy the file, and the folder beside it. Nothing else has to be done, since no path in it is absolute. If the new
//! machine has another version, the first start brings the file up to date, and keeps the old one under another name.
//! ->
//! # Storage
//!
//! All of it is kept in one SQLite file in the home directory of the user.
//! … 4 lines
//! ## Limits
//!
//! A session may have a million messages before it gets slow.
//! … 3 lines
//! ## Moving house
//!
//! Copy the file, and the folder beside it. Nothing else has to be done, since no path in it is absolute.
//! … 2 lines
//! ```

use std::sync::LazyLock;

use regex::Regex;

use crate::text::condense::lines::{FRAME, MUST, NONE, PLAIN, Rows, SHAPE};
use crate::text::condense::severity::{Severity, head, severity_of};
use crate::text::condense::source::code::{self, code_share, unnumbered};
use crate::text::condense::{CondenseOptions, Condenser, ContentKind, Sample};

pub(crate) const CONDENSER: Condenser = Condenser {
    kind: ContentKind::Prose,
    detects: |sample| is_prose(sample),
    condense: |text, options, _| condense(text, options),
    has_errors: false,
    suits_line_choice: true,
    may_be_code: true,
};

/// Returns whether a text has headings, or more lines of prose than of code.
fn is_prose(sample: &Sample<'_>) -> bool {
    let n_headings = sample.lines.iter().filter(|line| unnumbered(line).starts_with("##")).count();
    let share = sample.share(is_prose_line);
    (n_headings >= 2 && share > 0.15) || (share > 0.35 && share > code_share(sample))
}

fn is_prose_line(line: &str) -> bool {
    let line = unnumbered(line);
    let trimmed = line.trim_start();
    let is_mark =
        ["# ", "## ", "### ", "- ", "* ", "> ", "**", "1. "].iter().any(|mark| trimmed.starts_with(mark));
    is_mark || SENTENCE.is_match(head(trimmed, 300))
}

static SENTENCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[\w\x60*\x22'(][^{}=;<>]*(?:\s[\w'’,-]+){4}").expect("a valid pattern"));

fn condense(text: &str, options: &CondenseOptions<'_>) -> String {
    let mut rows = Rows::new(options);
    let mut starts_paragraph = true;
    let mut is_fenced = false;
    for line in text.split('\n') {
        let bare = unnumbered(line).trim_start();
        if bare.is_empty() {
            rows.push("", NONE);
            starts_paragraph = true;
            continue;
        }
        if bare.starts_with("```") {
            is_fenced = !is_fenced;
            rows.push(line, PLAIN);
            continue;
        }
        let is_heading = bare.starts_with('#') || (bare.starts_with("**") && bare.trim_end().ends_with("**"));
        let is_item =
            bare.starts_with(['-', '*', '|', '>', '+']) || bare.starts_with(|c: char| c.is_ascii_digit());
        let is_error = severity_of(bare) == Severity::Error && bare.len() < 300;
        let weight = match () {
            () if is_heading && !is_fenced => FRAME,
            () if is_error => FRAME,
            () if is_fenced => code::weight(unnumbered(line)) / 2.0,
            () if starts_paragraph => SHAPE,
            () if is_item => PLAIN * 4.0,
            () => PLAIN,
        };
        push_sentences(&mut rows, line, weight);
        starts_paragraph = is_heading;
    }
    rows.raise(0, MUST);
    rows.choose()
}

/// Adds a line, split into sentences if it is long. Only the first sentence has the line's weight.
fn push_sentences<'a>(rows: &mut Rows<'a, '_>, line: &'a str, weight: f32) {
    const LONG: usize = 100;
    if line.len() <= LONG {
        rows.push(line, weight);
        return;
    }
    let mut weight = weight;
    let mut start = 0;
    let bytes = line.as_bytes();
    for at in 0..bytes.len() {
        let is_end = matches!(bytes[at], b'.' | b'!' | b'?') && bytes.get(at + 1) == Some(&b' ');
        if is_end && at - start >= 40 {
            rows.push(&line[start..=at], weight);
            start = at + 2;
            weight = weight.min(PLAIN);
        }
    }
    if let Some(rest) = line.get(start..).filter(|rest| !rest.is_empty()) {
        rows.push(rest, weight);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::ContentKind;
    use crate::text::condense::check::check;

    #[test]
    fn keeps_headings_and_first_sentences() {
        let text = {
            let more = "It is followed by more words that nobody will need again, ever. ".repeat(5);
            format!(
                "# Storage\n\nAll of it is kept in one SQLite file in the home directory. {more}\n\n## Limits\n\nA session may have a million messages before it gets slow. {more}The key `max_sessions` changes that. {more}\n"
            )
        };
        check(
            ContentKind::Prose,
            &text,
            330,
            &["max_sessions"],
            &expect![[r#"
                # Storage

                All of it is kept in one SQLite file in the home directory.
                … 6 lines
                ## Limits

                A session may have a million messages before it gets slow.
                … 5 lines
                The key `max_sessions` changes that. It is followed by more words that nobody will need again, ever.
                … 4 lines
            "#]],
        );
    }
}
