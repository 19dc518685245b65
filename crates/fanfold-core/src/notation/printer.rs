//! Prints entries and views.

use std::sync::Arc;

use crate::model::location::Place;
use crate::model::transcript::{Body, Entry, Media, Outcome, Speaker, Step, Transcript};
use crate::model::view::{Edit, Item, View, Voice};
use crate::notation::{COLUMN, Keyword, StepPart};

/// Prints entries. `parse` returns the same entries.
pub fn print_entries(entries: &[Entry]) -> String {
    let mut printer = Printer::default();
    for entry in entries {
        printer.entry(entry);
    }
    printer.out
}

/// Prints a view as it is sent.
pub fn print_view(transcript: &Transcript, view: &View) -> String {
    let mut printer = Printer::default();
    for item in &view.items {
        match item {
            Item::Whole(id) => printer.entry(transcript.entry(*id)),
            Item::Edited(id, edits) => printer.entry(&apply_edits(transcript.entry(*id), edits)),
            Item::Note { text, voice: Voice::Fanfold } => printer.prompt(Keyword::Note, text),
            Item::Note { text, voice: Voice::Assistant } => printer.assistant_note(text),
        }
    }
    printer.out
}

#[derive(Default)]
struct Printer {
    out: String,
    last_part: StepPart,
}

impl Printer {
    fn line(&mut self, keyword: Keyword, text: &str) {
        let word = keyword.word();
        let body = text.trim_end_matches('\n');
        let n_trailing = text.len() - body.len();
        self.out.push_str(word);
        for (i, line) in body.split('\n').enumerate() {
            if i > 0 {
                self.out.push('\n');
            }
            if !line.is_empty() {
                let indent = if i == 0 { COLUMN - word.len() } else { COLUMN };
                self.out.extend(std::iter::repeat_n(' ', indent));
                self.out.push_str(line);
            }
        }
        for _ in 0..n_trailing {
            self.out.push_str("\n        ");
        }
        self.out.push('\n');
    }

    fn entry(&mut self, entry: &Entry) {
        match entry {
            Entry::Prompt(prompt) => {
                let keyword = match prompt.speaker {
                    Speaker::System => Keyword::System,
                    Speaker::User => Keyword::User,
                    Speaker::Harness => Keyword::Harness,
                    Speaker::Provider => Keyword::Provider,
                };
                self.prompt(keyword, prompt.body.as_str());
                self.images(&prompt.media);
            }
            Entry::Step(step) => self.step(step),
        }
    }

    fn prompt(&mut self, keyword: Keyword, text: &str) {
        self.line(keyword, text);
        self.last_part = StepPart::NoStep;
    }

    fn assistant_note(&mut self, text: &str) {
        self.begin(StepPart::Say, false);
        self.line(Keyword::Say, text);
        self.last_part = StepPart::Say;
    }

    /// Begins a step. Prints an empty thought if its first line would otherwise continue the previous step.
    fn begin(&mut self, first: StepPart, has_thought: bool) {
        let would_join = self.last_part != StepPart::NoStep && self.last_part < first;
        if has_thought || !would_join {
            return;
        }
        self.line(Keyword::Think, "");
    }

    fn step(&mut self, step: &Step) {
        let is_silent = step.text.is_empty() && (!step.reasoning.is_empty() || !step.calls.is_empty());
        let first = if is_silent { StepPart::Call } else { StepPart::Say };
        self.begin(first, !step.reasoning.is_empty());
        if !step.reasoning.is_empty() {
            self.line(Keyword::Think, step.reasoning.as_str());
            self.last_part = StepPart::Think;
        }
        if !is_silent {
            self.line(Keyword::Say, step.text.as_str());
            self.last_part = StepPart::Say;
        }
        for call in &step.calls {
            let space = if call.arguments.is_empty() { "" } else { " " };
            self.line(Keyword::Call, &format!("{}{space}{}", call.tool, call.arguments.as_str()));
        }
        for call in &step.calls {
            self.last_part = StepPart::Result;
            let Some(outcome) = &call.result else {
                self.line(Keyword::Open, "");
                continue;
            };
            self.line(if outcome.is_error { Keyword::Error } else { Keyword::Result }, outcome.body.as_str());
            self.images(&outcome.media);
        }
    }

    fn images(&mut self, media: &[Media]) {
        for one in media {
            self.line(Keyword::Image, &one.label);
        }
    }
}

/// Applies the edits to an entry.
fn apply_edits(entry: &Entry, edits: &[Edit]) -> Entry {
    let mut entry = entry.clone();
    for Edit { place, stub } in edits {
        let body = Body::text(Arc::clone(stub));
        match (&mut entry, *place) {
            (Entry::Prompt(prompt), Place::Text(_)) => prompt.body = body,
            (Entry::Step(step), Place::Text(_)) => step.text = body,
            (Entry::Step(step), Place::Reasoning(_)) => step.reasoning = body,
            (Entry::Step(step), Place::Arguments(id)) => {
                if let Some(call) = step.calls.get_mut(usize::from(id.call)) {
                    call.arguments = body;
                }
            }
            (Entry::Step(step), Place::Result(id)) => {
                if let Some(outcome) = result_of(step, id.call) {
                    outcome.body = body;
                }
            }
            (Entry::Prompt(prompt), Place::PromptMedia(_, i)) => relabel(&mut prompt.media, i, stub),
            (Entry::Step(step), Place::ResultMedia(id, i)) => {
                if let Some(outcome) = result_of(step, id.call) {
                    relabel(&mut outcome.media, i, stub);
                }
            }
            (Entry::Prompt(_), Place::Reasoning(_) | Place::Arguments(_) | Place::Result(_))
            | (Entry::Prompt(_), Place::ResultMedia(..))
            | (Entry::Step(_), Place::PromptMedia(..)) => {}
        }
    }
    entry
}

fn result_of(step: &mut Step, call: u16) -> Option<&mut Outcome> {
    step.calls.get_mut(usize::from(call))?.result.as_mut()
}

fn relabel(media: &mut [Media], i: u16, stub: &str) {
    if let Some(one) = media.get_mut(usize::from(i)) {
        one.label = stub.to_owned();
    }
}
