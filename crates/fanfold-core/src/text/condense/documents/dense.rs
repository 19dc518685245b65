//! Encoded and minified data: keeps the size, the beginning, the end and the parts in use.
//!
//! In 120 bytes:
//!
//! ```text
//! iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJgggiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJgggiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJgggiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNgGAWjYBSMglEwCgAAAABJRU5ErkJgggiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII==
//! ->
//! iVBORw0KGgoAAAANSUhEUgAAAAEAAAABC…ORK5CYII==
//! … 465 bytes in all
//! ```

use crate::model::tokens::thousands;
use crate::text::condense::lines::{NONE, Rows};
use crate::text::condense::{CondenseOptions, Condenser, ContentKind, Sample};

pub(crate) const CONDENSER: Condenser = Condenser {
    kind: ContentKind::Dense,
    detects: |sample| is_dense(sample),
    condense: |text, options, _| condense(text, options),
    has_errors: true,
    suits_line_choice: false,
    may_be_code: false,
};

/// Returns whether a text has long lines and hardly any blanks.
fn is_dense(sample: &Sample<'_>) -> bool {
    let (start, lines) = (sample.start, &sample.lines);
    let n_blank = start.bytes().filter(u8::is_ascii_whitespace).count();
    let is_unbroken = start.len() >= 400 && n_blank * 25 < start.len() && start.is_ascii();
    let is_long = start.len() >= 400 && lines.len() * 300 < start.len();
    is_unbroken && (is_long || lines.iter().all(|line| !line.contains([' ', '/', '.'])))
}

fn condense(text: &str, options: &CondenseOptions<'_>) -> String {
    let size = format!("… {} bytes in all", thousands(text.len() as u64));
    let room = options.room.saturating_sub(size.len() + 1);
    let inner = CondenseOptions { room, ..*options };
    let mut parts = Rows::new(&inner);
    for line in text.split('\n') {
        // Minified code is split at statements, which are valued one by one. Base64 cannot be split.
        let mut rest = line;
        while rest.len() > LONGEST {
            let end =
                rest.as_bytes()[LONGEST / 2..LONGEST].iter().position(|b| matches!(b, b';' | b'}' | b','));
            let Some(end) = end else { break };
            parts.push(&rest[..=LONGEST / 2 + end], NONE);
            rest = &rest[LONGEST / 2 + end + 1..];
        }
        parts.push(rest, NONE);
    }
    parts.raise_ends(1, 1);
    format!("{}\n{size}", parts.choose())
}

const LONGEST: usize = 320;

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::ContentKind;
    use crate::text::condense::check::check;

    #[test]
    fn keeps_the_size_and_the_ends() {
        let text = "iVBORw0KGgoAAAANSUhEUgAA".repeat(200);
        check(
            ContentKind::Dense,
            &text,
            200,
            &[],
            &expect![[r#"
            iVBORw0KGgoAAAANSUhEUgAAiVBORw0KGgoAAAANSUhEUgAAiVBORw0KGgoAAA…Rw0KGgoAAAANSUhEUgAA
            … 4,800 bytes in all
        "#]],
        );
    }
}
