//! A conversation, verbatim.
//!
//! A transcript is append-only. Its entries are prompts (messages from outside) and steps (model replies with the
//! results of every call they made); a turn is a run of prompts and the steps answering it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::model::tokens::{Count, FrameCosts, Tokens};

/// The position of an entry in the client's request. Only the wire formats read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The position of the message or item in the client's list.
    pub message: u32,
    /// The position of the part in that message.
    pub part: u32,
}

impl Origin {
    /// The position of a text outside the list of messages, such as a top-level system text.
    pub const OUTSIDE: Origin = Origin { message: u32::MAX, part: 0 };

    /// The first part of a message.
    pub fn message(message: usize) -> Origin {
        Origin { message: message as u32, part: 0 }
    }
}

/// A text, with the exact original where the text is only a part of it.
#[derive(Debug, Clone, Eq)]
pub struct Body {
    text: Arc<str>,
    raw: Option<Arc<str>>,
    tokens: Tokens,
}

impl PartialEq for Body {
    fn eq(&self, other: &Body) -> bool {
        // Compare pointers first: the texts are often shared.
        let is_same = |one: &Arc<str>, other: &Arc<str>| Arc::ptr_eq(one, other) || one == other;
        let is_same_raw = match (&self.raw, &other.raw) {
            (Some(one), Some(other)) => is_same(one, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        // The token count follows from the text.
        is_same_raw && is_same(&self.text, &other.text)
    }
}

impl Body {
    /// A body whose original is its text.
    pub fn text(text: impl Into<Arc<str>>) -> Body {
        Body { text: text.into(), raw: None, tokens: Tokens::ZERO }
    }

    /// A body whose original is more than the readable text: parts, media, unreadable characters.
    pub fn with_raw(text: impl Into<Arc<str>>, raw: impl Into<Arc<str>>) -> Body {
        Body { text: text.into(), raw: Some(raw.into()), tokens: Tokens::ZERO }
    }

    /// The readable text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The original, which a recall returns byte for byte.
    pub fn original(&self) -> &Arc<str> {
        self.raw.as_ref().unwrap_or(&self.text)
    }

    /// The tokens of the text, once the body is in a transcript.
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// Returns whether the text is the whole original.
    pub fn is_plain(&self) -> bool {
        self.raw.is_none()
    }

    /// Returns whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Rewrites the text, in a copy of a transcript that is not sent. Returns whether anything changed.
    pub(crate) fn change(&mut self, change: for<'a> fn(&'a str) -> Cow<'a, str>) -> bool {
        let mut is_changed = false;
        for text in [Some(&mut self.text), self.raw.as_mut()].into_iter().flatten() {
            let changed = match change(text) {
                Cow::Owned(changed) => changed.into(),
                Cow::Borrowed(_) => continue,
            };
            *text = changed;
            is_changed = true;
        }
        is_changed
    }

    fn count(&mut self, counter: &dyn Count) {
        if self.tokens == Tokens::ZERO && !self.text.is_empty() {
            self.tokens = counter.count(&self.text);
        }
    }
}

/// An image or a file inside a prompt or a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// The media type or a short name: `image/png`, `pdf`.
    pub label: String,
    /// The part verbatim, in the provider's format.
    pub raw: Arc<str>,
    /// The position of the part in the request.
    pub origin: Origin,
}

/// The author of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Speaker {
    /// The developer of the agent.
    System,
    /// A person.
    User,
    /// A program writing in the user's role: format complaints, echoes of commands, results without a call.
    Harness,
    /// The provider: an opaque item that must be returned verbatim, such as a compaction item.
    Provider,
}

/// One message from outside: a system, user or program message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The author.
    pub speaker: Speaker,
    /// The text.
    pub body: Body,
    /// Images and files in the message.
    pub media: Vec<Media>,
    /// The position in the request.
    pub origin: Origin,
}

/// One model reply with the results of every call it made.
///
/// A result lives inside its call, so a result without its call cannot be represented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The text of the reply.
    pub text: Body,
    /// The reasoning, where the provider shows it.
    pub reasoning: Body,
    /// The tool calls.
    pub calls: Vec<Call>,
    /// The position in the request.
    pub origin: Origin,
}

/// A tool call with its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The provider's id, which pairs the call with its result.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments verbatim, usually JSON.
    pub arguments: Body,
    /// The result, unless the call is still running.
    pub result: Option<Outcome>,
    /// The position in the request.
    pub origin: Origin,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The text of the result.
    pub body: Body,
    /// True if the client marked it as an error.
    pub is_error: bool,
    /// Images and files in it.
    pub media: Vec<Media>,
    /// The position in the request.
    pub origin: Origin,
}

/// The text sent as the result of a call that never got one.
pub const NO_RESULT: &str = "[no result was recorded]";

/// The text sent first if a conversation does not begin with a user message.
pub const OPENING: &str = "[continued]";

/// The position of an entry in its transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u32);

impl EntryId {
    /// The position as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<usize> for EntryId {
    fn from(index: usize) -> EntryId {
        EntryId(index as u32)
    }
}

/// A call, identified by its step and its position there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    /// The step that made the call.
    pub step: EntryId,
    /// Its position among the step's calls.
    pub call: u16,
}

/// A prompt or a step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "entries live in one vector and most of them are steps")]
pub enum Entry {
    /// A message to the model.
    Prompt(Prompt),
    /// A reply of the model.
    Step(Step),
}

impl Entry {
    /// The step, if it is one.
    pub fn step(&self) -> Option<&Step> {
        match self {
            Entry::Step(step) => Some(step),
            Entry::Prompt(_) => None,
        }
    }

    /// The prompt, if it is one.
    pub fn prompt(&self) -> Option<&Prompt> {
        match self {
            Entry::Prompt(prompt) => Some(prompt),
            Entry::Step(_) => None,
        }
    }

    /// Returns whether this is a user message.
    pub fn is_user(&self) -> bool {
        self.prompt().is_some_and(|prompt| prompt.speaker == Speaker::User)
    }

    /// Returns whether this is a system prompt.
    pub fn is_system(&self) -> bool {
        self.prompt().is_some_and(|prompt| prompt.speaker == Speaker::System)
    }

    /// Returns whether it contains images or files.
    pub(crate) fn has_media(&self) -> bool {
        match self {
            Entry::Prompt(prompt) => !prompt.media.is_empty(),
            Entry::Step(step) => step
                .calls
                .iter()
                .filter_map(|call| call.result.as_ref())
                .any(|outcome| !outcome.media.is_empty()),
        }
    }

    /// Counts every text of the entry that has not been counted yet.
    ///
    /// `Transcript::append` does this too; a caller with many entries may count them on several threads before.
    pub fn count(&mut self, counter: &dyn Count) {
        match self {
            Entry::Prompt(prompt) => prompt.body.count(counter),
            Entry::Step(step) => {
                step.text.count(counter);
                step.reasoning.count(counter);
                for call in &mut step.calls {
                    call.arguments.count(counter);
                    if let Some(outcome) = &mut call.result {
                        outcome.body.count(counter);
                    }
                }
            }
        }
    }

    /// The cost of a counted entry.
    fn tokens(&self, counter: &dyn Count) -> Tokens {
        let frame = counter.frame();
        match self {
            Entry::Prompt(prompt) => frame.message + prompt.body.tokens + media_tokens(&prompt.media, frame),
            Entry::Step(step) => {
                let calls: Tokens = step.calls.iter().map(|call| call.tokens(counter)).sum();
                frame.message + step.text.tokens + step.reasoning.tokens + calls
            }
        }
    }
}

impl Call {
    fn tokens(&self, counter: &dyn Count) -> Tokens {
        let frame = counter.frame();
        let call = frame.call + counter.count(&self.tool) + self.arguments.tokens;
        // A call without a result is sent with `NO_RESULT`.
        let result = match &self.result {
            Some(outcome) => outcome.tokens(frame),
            None => frame.message + counter.count(NO_RESULT),
        };
        call + result
    }
}

impl Outcome {
    /// Counts the text, if it has not been counted yet.
    pub fn count(&mut self, counter: &dyn Count) {
        self.body.count(counter);
    }

    fn tokens(&self, frame: FrameCosts) -> Tokens {
        frame.message + self.body.tokens + media_tokens(&self.media, frame)
    }

    /// The cost of a step after one of its running calls got this counted result.
    fn cost_of_step(&self, before: Tokens, counter: &dyn Count) -> Tokens {
        let none = counter.frame().message + counter.count(NO_RESULT);
        before + self.tokens(counter.frame()) - none
    }
}

fn media_tokens(media: &[Media], frame: FrameCosts) -> Tokens {
    Tokens(frame.media.0 * media.len() as u64)
}

/// A run of prompts and the steps answering it, as positions in the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The prompts.
    pub prompts: Range<usize>,
    /// The steps.
    pub steps: Range<usize>,
}

/// A conversation, verbatim and append-only.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    entries: Vec<Entry>,
    tokens: Vec<Tokens>,
    /// The steps in order: step `n` is at index `n - 1`.
    steps: Vec<EntryId>,
    /// For each entry, the number of steps up to and including it.
    n_steps_upto: Vec<u32>,
    tools: Tokens,
    opening: Tokens,
    total: Tokens,
}

impl Transcript {
    /// An empty transcript.
    pub fn new() -> Transcript {
        Transcript::default()
    }

    /// Sets the cost of the tool schemas, which are sent with every request.
    pub fn set_tools(&mut self, schemas: Tokens) {
        self.total = self.total - self.tools + schemas;
        self.tools = schemas;
    }

    /// The cost of the tool schemas.
    pub fn tools(&self) -> Tokens {
        self.tools
    }

    /// The cost of a view in addition to its items: the tool schemas, and an opening where one is needed.
    pub fn overhead(&self) -> Tokens {
        self.tools + self.opening
    }

    /// Appends an entry and counts those of its texts that are not counted yet.
    pub fn append(&mut self, mut entry: Entry, counter: &dyn Count) -> EntryId {
        entry.count(counter);
        let is_opened = !self.entries.iter().all(Entry::is_system) || entry.prompt().is_some();
        if !is_opened {
            self.opening = counter.frame().message + counter.count(OPENING);
            self.total += self.opening;
        }
        let tokens = entry.tokens(counter);
        self.total += tokens;
        self.tokens.push(tokens);
        let id = EntryId::from(self.entries.len());
        if entry.step().is_some() {
            self.steps.push(id);
        }
        self.n_steps_upto.push(self.steps.len() as u32);
        self.entries.push(entry);
        id
    }

    /// Sets the result of a running call. Returns false if there is no such call or it has a result.
    pub fn set_result(&mut self, call: CallId, mut outcome: Outcome, counter: &dyn Count) -> bool {
        let Some(Entry::Step(step)) = self.entries.get_mut(call.step.index()) else { return false };
        let Some(found) = step.calls.get_mut(usize::from(call.call)).filter(|call| call.result.is_none())
        else {
            return false;
        };
        outcome.body.count(counter);
        let cost = &mut self.tokens[call.step.index()];
        let before = std::mem::replace(cost, outcome.cost_of_step(*cost, counter));
        self.total = self.total + *cost - before;
        found.result = Some(outcome);
        true
    }

    /// Rewrites an entry without counting it again, in a copy that is not sent. Returns whether anything changed.
    pub(crate) fn change(&mut self, id: EntryId, change: impl FnOnce(&mut Entry) -> bool) -> bool {
        change(&mut self.entries[id.index()])
    }

    /// All entries in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// One entry.
    pub fn entry(&self, id: EntryId) -> &Entry {
        &self.entries[id.index()]
    }

    /// The number of a step, counted from 1; `None` for a prompt.
    pub fn step_number(&self, id: EntryId) -> Option<u32> {
        self.entries.get(id.index())?.step()?;
        Some(self.n_steps_upto[id.index()])
    }

    /// The step with a number.
    pub fn step_by_number(&self, number: u32) -> Option<EntryId> {
        self.steps.get(number.checked_sub(1)? as usize).copied()
    }

    /// The number of steps.
    pub fn n_steps(&self) -> usize {
        self.steps.len()
    }

    /// One call, with its result.
    pub fn call(&self, id: CallId) -> &Call {
        let step = self.entry(id.step).step().expect("a call is in a step");
        &step.calls[usize::from(id.call)]
    }

    /// The cost of an entry when it is sent whole.
    pub fn tokens(&self, id: EntryId) -> Tokens {
        self.tokens[id.index()]
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The cost of the whole transcript, including the tool schemas.
    pub fn total(&self) -> Tokens {
        self.total
    }

    /// The turns in order. The first may have no prompt, the last no step.
    pub fn turns(&self) -> Vec<Turn> {
        let mut turns: Vec<Turn> = Vec::new();
        for (i, entry) in self.entries.iter().enumerate() {
            let is_step = entry.step().is_some();
            let starts = match turns.last() {
                None => true,
                Some(turn) => !is_step && !turn.steps.is_empty(),
            };
            if starts {
                turns.push(Turn { prompts: i..i, steps: i..i });
            }
            let turn = turns.last_mut().expect("a turn was started");
            if is_step {
                turn.steps.end = i + 1;
            } else {
                turn.prompts.end = i + 1;
                turn.steps = i + 1..i + 1;
            }
        }
        turns
    }

    /// Returns whether a call of the entry may still get its result: it has none, and there is no later step.
    pub fn is_running(&self, id: EntryId) -> bool {
        let Some(step) = self.entry(id).step() else { return false };
        let has_open_call = step.calls.iter().any(|call| call.result.is_none());
        has_open_call && self.entries[id.index() + 1..].iter().all(|later| later.step().is_none())
    }

    /// The newest step.
    pub fn last_step(&self) -> Option<EntryId> {
        self.steps.last().copied()
    }

    /// The newest user message.
    pub fn last_user(&self) -> Option<EntryId> {
        self.entries.iter().rposition(Entry::is_user).map(EntryId::from)
    }

    /// The newest step with a text.
    pub(crate) fn last_text_step(&self) -> Option<EntryId> {
        let has_text = |entry: &Entry| entry.step().is_some_and(|step| !step.text.as_str().trim().is_empty());
        self.entries.iter().rposition(has_text).map(EntryId::from)
    }
}
