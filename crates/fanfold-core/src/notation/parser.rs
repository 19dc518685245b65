//! Parses conversations.

use std::sync::Arc;

use crate::model::transcript::{Body, Call, Entry, Media, Origin, Outcome, Prompt, Speaker, Step};
use crate::notation::{COLUMN, Keyword, NotationError, StepPart};

/// Parses a conversation. Origins and call ids are numbered like the messages of a Chat client.
pub fn parse(text: &str) -> Result<Vec<Entry>, NotationError> {
    let mut reader = Reader::default();
    for line in split(text)? {
        reader.take(line)?;
    }
    Ok(reader.entries)
}

/// A keyword with its text.
struct NotationLine {
    number: usize,
    keyword: Keyword,
    text: String,
}

fn split(text: &str) -> Result<Vec<NotationLine>, NotationError> {
    let mut lines: Vec<NotationLine> = Vec::new();
    let mut n_blank = 0;
    for (i, line) in text.split('\n').enumerate() {
        if line.is_empty() {
            n_blank += 1;
            continue;
        }
        let continued = line.strip_prefix("        ");
        match (continued, lines.last_mut()) {
            (Some(more), Some(last)) => {
                (0..n_blank).for_each(|_| last.text.push('\n'));
                last.text.push('\n');
                last.text.push_str(more);
            }
            _ => {
                let head = line.get(..COLUMN).unwrap_or(line);
                let unknown =
                    || NotationError::Keyword { line: i + 1, found: line.chars().take(COLUMN).collect() };
                let keyword = Keyword::find(head.trim_end_matches(' ')).ok_or_else(unknown)?;
                let text = line.get(COLUMN..).unwrap_or_default().to_owned();
                lines.push(NotationLine { number: i + 1, keyword, text });
            }
        }
        n_blank = 0;
    }
    Ok(lines)
}

#[derive(Default)]
struct Reader {
    entries: Vec<Entry>,
    last_part: StepPart,
    n_messages: usize,
    n_calls: usize,
    n_results: usize,
}

impl Reader {
    fn take(&mut self, line: NotationLine) -> Result<(), NotationError> {
        let NotationLine { number, keyword, text } = line;
        match keyword {
            Keyword::System => self.prompt(Speaker::System, text),
            Keyword::User => self.prompt(Speaker::User, text),
            Keyword::Harness | Keyword::Note => self.prompt(Speaker::Harness, text),
            Keyword::Provider => self.prompt(Speaker::Provider, text),
            Keyword::Think => self.step_at(StepPart::Think).reasoning = Body::text(text),
            Keyword::Say => self.step_at(StepPart::Say).text = Body::text(text),
            Keyword::Call => self.call(&text),
            Keyword::Result | Keyword::Error => {
                let origin = Origin::message(self.n_messages);
                let is_error = keyword == Keyword::Error;
                let outcome = Outcome { body: Body::text(text), is_error, media: Vec::new(), origin };
                let stray = NotationError::Stray { line: number, keyword: keyword.word(), expected: "call" };
                self.next_open().ok_or(stray)?.result = Some(outcome);
                self.n_messages += 1;
            }
            Keyword::Open => {
                let stray = NotationError::Stray { line: number, keyword: "open", expected: "call" };
                self.next_open().ok_or(stray)?;
            }
            Keyword::Image => {
                let stray =
                    NotationError::Stray { line: number, keyword: "image", expected: "prompt or result" };
                self.image(text).ok_or(stray)?;
            }
        }
        Ok(())
    }

    fn message(&mut self) -> Origin {
        self.n_messages += 1;
        Origin::message(self.n_messages - 1)
    }

    fn prompt(&mut self, speaker: Speaker, text: String) {
        let origin = self.message();
        self.entries.push(Entry::Prompt(Prompt {
            speaker,
            body: Body::text(text),
            media: Vec::new(),
            origin,
        }));
        self.last_part = StepPart::NoStep;
    }

    /// The step that a line of this part belongs to: the current one, or a new one.
    fn step_at(&mut self, line: StepPart) -> &mut Step {
        let is_repeatable = line == StepPart::Call;
        let belongs = self.last_part != StepPart::NoStep
            && (self.last_part < line || (is_repeatable && self.last_part == line));
        if !belongs {
            let origin = self.message();
            let (text, reasoning) = (Body::text(""), Body::text(""));
            self.entries.push(Entry::Step(Step { text, reasoning, calls: Vec::new(), origin }));
            self.n_results = 0;
        }
        self.last_part = line;
        match self.entries.last_mut() {
            Some(Entry::Step(step)) => step,
            _ => unreachable!("the last entry is a step: it was begun by an earlier line or just now"),
        }
    }

    fn call(&mut self, text: &str) {
        self.n_calls += 1;
        let id = format!("call{}", self.n_calls);
        let (tool, arguments) = text.split_once([' ', '\n']).unwrap_or((text, ""));
        let step = self.step_at(StepPart::Call);
        let origin = Origin { message: step.origin.message, part: step.calls.len() as u32 };
        let (tool, arguments) = (tool.to_owned(), Body::text(arguments));
        step.calls.push(Call { id, tool, arguments, result: None, origin });
    }

    /// The next call without a result.
    fn next_open(&mut self) -> Option<&mut Call> {
        if self.last_part < StepPart::Call {
            return None;
        }
        let Some(Entry::Step(step)) = self.entries.last_mut() else { return None };
        let call = step.calls.get_mut(self.n_results)?;
        self.n_results += 1;
        self.last_part = StepPart::Result;
        Some(call)
    }

    fn image(&mut self, label: String) -> Option<()> {
        let (media, message) = match self.entries.last_mut()? {
            Entry::Prompt(prompt) => (&mut prompt.media, prompt.origin.message),
            Entry::Step(step) => {
                let answered = self.n_results.checked_sub(1)?;
                let outcome = step.calls.get_mut(answered)?.result.as_mut()?;
                (&mut outcome.media, outcome.origin.message)
            }
        };
        let origin = Origin { message, part: media.len() as u32 + 1 };
        media.push(Media { raw: Arc::from(label.as_str()), label, origin });
        Some(())
    }
}
