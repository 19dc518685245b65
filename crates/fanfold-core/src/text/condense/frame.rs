//! What a harness puts around a result: the exit code, tags, timings. It is kept as it is; what stands inside is
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

/// A text as its frame and what stands in it.
pub(crate) struct Frame<'a> {
    above: &'a str,
    pub(crate) body: &'a str,
    below: &'a str,
}

const ABOVE: [&str; 9] = [
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
const BELOW: [&str; 4] = ["</output>", "</output_tail>", "agentId:", "exit_code:"];
const REMINDER: &str = "\n<system-reminder>";
const MOST: usize = 200;

/// Takes the frame off.
pub(crate) fn split(text: &str) -> Frame<'_> {
    let mut start = 0;
    while let Some((line, _)) = text[start..].split_once('\n') {
        let is_above = line.len() <= MOST && ABOVE.iter().any(|mark| line.starts_with(mark));
        if !is_above || start > MOST {
            break;
        }
        start += line.len() + 1;
    }
    let mut body = text[start..].trim_end();
    // A reminder at the end is the harness's talk to the model, and old by now.
    if let Some(at) =
        body.rfind(REMINDER).filter(|at| body.len() - at < 2_000 && body.ends_with("</system-reminder>"))
    {
        body = body[..at].trim_end();
    }
    let last = body.rsplit('\n').next().unwrap_or_default();
    let is_below =
        last.len() <= MOST && last.len() < body.len() && BELOW.iter().any(|mark| last.starts_with(mark));
    let end = if is_below { body.len() - last.len() } else { body.len() };
    Frame { above: &text[..start], body: &body[..end], below: if is_below { last } else { "" } }
}

impl Frame<'_> {
    /// The bytes of the frame alone.
    pub(crate) fn len(&self) -> usize {
        self.above.len() + self.below.len() + 1
    }

    /// The frame around another body.
    pub(crate) fn around(&self, body: &str) -> String {
        let line_end = if self.below.is_empty() || body.is_empty() { "" } else { "\n" };
        format!("{}{body}{line_end}{}", self.above, self.below)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::Kind;
    use crate::text::condense::check::check;

    #[test]
    fn the_frame_stays() {
        let text = {
            let lines: String = (0..60).map(|i| format!("10:00:{i:02} got {i} jobs\n")).collect();
            format!("<returncode>1</returncode>\n<output>\n{lines}</output>")
        };
        check(
            Kind::Log,
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
