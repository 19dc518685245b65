//! Texts whose line breaks are escaped as `\n`, all on one long line. They are unescaped and condensed according to
//! their kind.
//!
//! In 150 bytes:
//!
//! ```text
//! content=[Text(text='10:00:01 start\n10:00:02 got 3 jobs\n10:00:03 got 5 jobs\n10:00:04 got 9 jobs\n10:00:05 got 2 jobs\n10:00:06 got 7 jobs\n10:00:07 ERROR db is gone\n10:00:08 got 4 jobs\n10:00:09 stop\n')]
//! ->
//! content=[Text(text='10:00:01 start
//! 10:00:02 got 3 jobs
//! … 4 alike
//! 10:00:07 ERROR db is gone
//! 10:00:08 got 4 jobs
//! 10:00:09 stop
//! ')]
//! ```

use serde_json::Value;

use crate::text::condense::severity::head;

/// Unescapes line breaks, tabs and quotes, if most line breaks of the text are escaped.
pub(crate) fn unescape(text: &str) -> Option<String> {
    let sample = head(text, 8_192);
    let n_real = sample.matches('\n').count();
    let n_written = sample.matches("\\n").count();
    if n_written < 4 || n_written < 4 * n_real {
        return None;
    }
    let looks_like_json = sample.trim_start().starts_with(['{', '[']);
    if looks_like_json && serde_json::from_str::<Value>(text).is_ok() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (real, width) = match after.chars().next() {
            Some('n') => ("\n", 1),
            Some('t') => ("\t", 1),
            Some('r') => ("", 1),
            Some('"') => ("\"", 1),
            Some('\'') => ("'", 1),
            // One level of escapes is removed at a time.
            Some('\\') => ("\\", 1),
            _ => ("\\", 0),
        };
        out.push_str(real);
        rest = &after[width..];
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::ContentKind;
    use crate::text::condense::check::check;

    #[test]
    fn condenses_unescaped_lines() {
        let text = {
            let lines: String = (0..60).map(|i| format!("10:00:{i:02} got {i} jobs\\n")).collect();
            format!("meta=None content=[TextContent(text='{lines}done\\n')]")
        };
        check(
            ContentKind::Log,
            &text,
            160,
            &[],
            &expect![[r#"
            meta=None content=[TextContent(text='10:00:00 got 0 jobs
            10:00:01 got 1 jobs
            … 57 alike
            10:00:59 got 59 jobs
            done
            ')]
        "#]],
        );
    }
}
