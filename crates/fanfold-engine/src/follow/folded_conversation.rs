//! A conversation and the engine that folds it: changes in, a view out.
//!
//! The terms select the engine; this file works with any.

use fanfold_core::{Count, Engine, EngineSetup, Entry, EntryId, Event, Tokens, View, ViewError};
use fanfold_wire::{Change, Conversation, DecodeError, Format};
use serde_json::value::RawValue;

use crate::follow::parallel::Threads;
use crate::follow::session_budget::SessionBudget;
use crate::follow::terms::Terms;

/// Minimum text size in bytes for counting on several threads.
const MIN_PARALLEL_BYTES: usize = 256 * 1024;

/// A conversation and the engine that folds it.
pub struct FoldedConversation {
    /// The conversation in the client's format.
    pub conversation: Conversation,
    /// The engine.
    pub session: Box<dyn Engine>,
    /// The sizes of transcript and view after each entry, if they are recorded.
    pub size_history: Option<Vec<Sizes>>,
    /// The budget after refusals and reported token counts.
    pub(crate) session_budget: SessionBudget,
    /// The tool schemas that were counted last, as JSON.
    schemas: String,
    /// The tool that is added to each request.
    added_tool: Option<String>,
    /// Entries that must not be folded.
    pins: Vec<EntryId>,
}

/// The sizes of transcript and view at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The whole transcript.
    pub transcript: Tokens,
    /// The view.
    pub view: Tokens,
    /// The number of folds up to this moment.
    pub n_folds: usize,
}

/// Options for folding a conversation.
#[derive(Debug, Clone, Default)]
pub struct FoldOptions {
    /// Messages that must not be folded, numbered from 0.
    pub pins: Vec<u32>,
    /// Record the sizes after each entry.
    pub record_sizes: bool,
}

impl FoldedConversation {
    /// Folds all messages of a decoded body.
    pub fn from_body(
        conversation: Conversation,
        changes: Vec<Change>,
        terms: &Terms,
        options: &FoldOptions,
    ) -> FoldedConversation {
        FoldedConversation::from_body_with_progress(conversation, changes, terms, options, &mut || ())
    }

    /// The same, with a call after each change to report progress.
    pub fn from_body_with_progress(
        conversation: Conversation,
        changes: Vec<Change>,
        terms: &Terms,
        options: &FoldOptions,
        on_change: &mut dyn FnMut(),
    ) -> FoldedConversation {
        let mut folded = FoldedConversation::new(conversation, terms);
        let tools = folded.conversation.tools().map(str::to_owned);
        folded.set_tools(tools.as_deref());
        folded.pins = pinned_entries(&changes, &options.pins);
        folded.size_history = options.record_sizes.then(Vec::new);
        folded.apply_changes(changes, on_change);
        folded.end_entry();
        folded
    }

    /// A conversation without messages.
    pub fn empty(format: Format, terms: &Terms) -> FoldedConversation {
        FoldedConversation::new(Conversation::empty(format), terms)
    }

    /// A conversation with a new engine; none of its messages are applied yet.
    pub(crate) fn new(conversation: Conversation, terms: &Terms) -> FoldedConversation {
        let mut session = (terms.engine.start)(EngineSetup {
            policy: terms.policy.clone(),
            budget: terms.budget,
            prices: terms.prices.clone(),
            counter: terms.counter,
            parallel: &Threads,
        });
        if !terms.focus.is_empty() {
            session.apply(Event::Focused(terms.focus.clone()));
        }
        FoldedConversation {
            conversation,
            session,
            size_history: None,
            session_budget: SessionBudget::new(terms.budget),
            schemas: String::new(),
            added_tool: None,
            pins: Vec::new(),
        }
    }

    /// The view to send.
    pub fn view(&mut self) -> Result<View, ViewError> {
        self.session.view_with_context()
    }

    /// Adds a tool to every request, in addition to the client's own.
    pub(crate) fn add_tool(&mut self, tool: Option<&str>) {
        self.conversation.add_tool(tool);
        // Counted even if a body has no place for it, so that a replay from the log makes the same decisions.
        self.added_tool = tool.map(str::to_owned);
        self.count_tools();
    }

    fn count_tools(&mut self) {
        let counter = self.session.counter();
        let added = self.added_tool.as_deref().map_or(Tokens::ZERO, |tool| counter.count(tool));
        let schemas = counter.count(&self.schemas) + added;
        self.session.set_tools(schemas);
    }

    /// Sets the client's tool schemas, as JSON.
    pub fn set_tools(&mut self, schemas: Option<&str>) {
        let is_empty = |schemas: &&str| matches!(schemas.trim(), "[]" | "{}" | "null");
        let schemas = schemas.filter(|schemas| !is_empty(schemas)).unwrap_or_default();
        if schemas != self.schemas {
            schemas.clone_into(&mut self.schemas);
            self.count_tools();
        }
    }

    /// Appends messages.
    pub fn append(&mut self, messages: &[&RawValue]) {
        let changes = self.conversation.append(messages);
        self.apply_changes(changes, &mut || ());
    }

    fn apply_changes(&mut self, mut changes: Vec<Change>, on_change: &mut dyn FnMut()) {
        count_changes(self.session.counter(), &mut changes);
        for change in changes {
            self.apply_change(change);
            on_change();
        }
    }

    /// Applies one change.
    pub(crate) fn apply_change(&mut self, change: Change) {
        match change {
            Change::Append(entry) => {
                self.end_entry();
                self.session.append(entry);
            }
            Change::Answer(call, outcome) => {
                self.session.set_result(call, outcome);
            }
        }
    }

    /// Builds the view of a recorded request again, because building a view folds and names the handles in it.
    pub(crate) fn replay_request(&mut self) {
        // Overflows and notices were reported when the request was made.
        let _ = self.session.view();
        let _ = self.session.take_notices();
    }

    /// Pins the last entry if it should be, and records the sizes now that the entry is complete.
    fn end_entry(&mut self) {
        let n_entries = self.session.transcript().len();
        if n_entries == 0 {
            return;
        }
        let last = EntryId::from(n_entries - 1);
        if self.pins.contains(&last) {
            self.session.apply(Event::Pinned(last));
        }
        self.record_sizes();
    }

    fn record_sizes(&mut self) {
        let Some(history) = &mut self.size_history else { return };
        // After an overflow there is no view; the status has the size of the smallest attempt.
        let view = self.session.view().ok().map(|view| view.tokens);
        let status = self.session.status();
        let (transcript, view) = (status.transcript, view.unwrap_or(status.tokens));
        history.push(Sizes { transcript, view, n_folds: status.n_folds });
    }

    /// A view in the client's own format.
    pub fn encode(&self, view: &View) -> String {
        self.conversation.encode(self.session.transcript(), view)
    }

    /// The numbers of the messages of an entry.
    pub fn messages_of(&self, entry: EntryId) -> Vec<u32> {
        messages_of(self.session.transcript().entry(entry))
    }
}

/// Counts large changes on several threads. Small ones are counted when they are applied.
pub fn count_changes(counter: &dyn Count, changes: &mut [Change]) {
    let n_bytes: usize = changes.iter().map(n_bytes).sum();
    if n_bytes >= MIN_PARALLEL_BYTES {
        Threads.count_all(changes, counter);
    }
}

/// Decodes a body into a conversation and its transcript changes. An owned body is not copied.
pub fn decode(
    body: impl AsRef<str> + Into<String>,
    format: Option<Format>,
) -> Result<(Conversation, Vec<Change>), DecodeError> {
    Conversation::decode(body, format)
}

/// The numbers of the messages of an entry, each once.
pub fn messages_of(entry: &Entry) -> Vec<u32> {
    let mut messages = match entry {
        Entry::Prompt(prompt) => vec![prompt.origin.message],
        Entry::Step(step) => {
            let calls = step.calls.iter().map(|call| call.origin.message);
            let results = step.calls.iter().filter_map(|call| call.result.as_ref());
            std::iter::once(step.origin.message)
                .chain(calls)
                .chain(results.map(|outcome| outcome.origin.message))
                .collect()
        }
    };
    // A system text outside the message list has no number.
    messages.retain(|message| *message != u32::MAX);
    messages.sort_unstable();
    messages.dedup();
    messages
}

fn pinned_entries(changes: &[Change], pins: &[u32]) -> Vec<EntryId> {
    let mut pinned = Vec::new();
    let mut n_entries = 0;
    for change in changes {
        match change {
            Change::Append(entry) => {
                if messages_of(entry).iter().any(|message| pins.contains(message)) {
                    pinned.push(EntryId::from(n_entries));
                }
                n_entries += 1;
            }
            Change::Answer(call, outcome) => {
                if pins.contains(&outcome.origin.message) {
                    pinned.push(call.step);
                }
            }
        }
    }
    pinned
}

fn n_bytes(change: &Change) -> usize {
    match change {
        Change::Append(Entry::Prompt(prompt)) => prompt.body.as_str().len(),
        Change::Append(Entry::Step(step)) => {
            let calls = step.calls.iter().map(|call| call.arguments.as_str().len());
            step.text.as_str().len() + step.reasoning.as_str().len() + calls.sum::<usize>()
        }
        Change::Answer(_, outcome) => outcome.body.as_str().len(),
    }
}
