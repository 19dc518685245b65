//! Envelopes: exit codes, tags and timings that a harness puts around a result. They are kept; the text inside is
//! condensed.
//!
//! In 150 bytes:
//!
//! ```text
//! <returncode>1</returncode>
//! <output>
//! 10:00:01 start
//! 10:00:02 got 3 jobs
//! 10:00:03 got 5 jobs
//! 10:00:04 got 9 jobs
//! 10:00:05 got 2 jobs
//! 10:00:06 got 7 jobs
//! 10:00:07 ERROR db is gone
//! 10:00:08 got 4 jobs
//! 10:00:09 stop
//! </output>
//! ->
//! <returncode>1</returncode>
//! <output>
//! 10:00:01 start
//! … 5 lines
//! 10:00:07 ERROR db is gone
//! 10:00:08 got 4 jobs
//! 10:00:09 stop
//! </output>
//! ```

/// An envelope and the text inside.
pub(crate) struct Envelope<'a> {
    above: &'a str,
    pub(crate) body: &'a str,
    below: &'a str,
}

const HEAD_MARKS: [&str; 9] = [
    "<returncode>",
    "<output>",
    "Exit code",
    "exit_code:",
    "Chunk ID:",
    "Wall time:",
    "Process exited",
    "Original token count:",
    "Output:",
];
const TAIL_MARKS: [&str; 4] = ["</output>", "</output_tail>", "agentId:", "exit_code:"];
const REMINDER: &str = "\n<system-reminder>";
const LONGEST: usize = 200;

/// Separates the envelope of a text.
pub(crate) fn split(text: &str) -> Envelope<'_> {
    let mut start = 0;
    while let Some((line, _)) = text[start..].split_once('\n') {
        let is_above = line.len() <= LONGEST && HEAD_MARKS.iter().any(|mark| line.starts_with(mark));
        if !is_above || start > LONGEST {
            break;
        }
        start += line.len() + 1;
    }
    let mut body = text[start..].trim_end();
    // A reminder at the end only concerned the step that it was sent with.
    if let Some(at) =
        body.rfind(REMINDER).filter(|at| body.len() - at < 2_000 && body.ends_with("</system-reminder>"))
    {
        body = body[..at].trim_end();
    }
    let last = body.rsplit('\n').next().unwrap_or_default();
    let is_below = last.len() <= LONGEST
        && last.len() < body.len()
        && TAIL_MARKS.iter().any(|mark| last.starts_with(mark));
    let end = if is_below { body.len() - last.len() } else { body.len() };
    Envelope { above: &text[..start], body: &body[..end], below: if is_below { last } else { "" } }
}

impl Envelope<'_> {
    /// The size of the envelope in bytes.
    pub(crate) fn len(&self) -> usize {
        self.above.len() + self.below.len() + 1
    }

    /// Puts another body into the envelope.
    pub(crate) fn wrap(&self, body: &str) -> String {
        let line_end = if self.below.is_empty() || body.is_empty() { "" } else { "\n" };
        format!("{}{body}{line_end}{}", self.above, self.below)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::ContentKind;
    use crate::text::condense::check::check;

    #[test]
    fn keeps_the_envelope() {
        let text = {
            let lines: String = (0..60).map(|i| format!("10:00:{i:02} got {i} jobs\n")).collect();
            format!("<returncode>1</returncode>\n<output>\n{lines}</output>")
        };
        check(
            ContentKind::Log,
            &text,
            160,
            &[],
            &expect![[r#"
                <returncode>1</returncode>
                <output>
                10:00:00 got 0 jobs
                10:00:01 got 1 jobs
                … 55 alike
                10:00:57 got 57 jobs
                10:00:58 got 58 jobs
                … 1 alike
                </output>
            "#]],
        );
    }
}
