//! A conversation and the engine that folds it: changes in, a view out.
//!
//! The engine is the one that the terms name; nothing here depends on which it is.

use fanfold_core::{Count, Engine, EngineSetup, Entry, EntryId, Event, Tokens, View, ViewError};
use fanfold_wire::{Change, Conversation, DecodeError, Format};
use serde_json::value::RawValue;

use crate::follow::parallel::Threads;
use crate::follow::room::Room;
use crate::follow::terms::Terms;

/// Minimum text size in bytes for counting on several threads.
const MIN_PARALLEL_BYTES: usize = 256 * 1024;

/// A conversation and the engine that folds it.
pub struct Followed {
    /// The conversation in the client's format.
    pub conversation: Conversation,
    /// The engine.
    pub session: Box<dyn Engine>,
    /// The sizes of transcript and view after each entry, if they are recorded.
    pub course: Option<Vec<Sizes>>,
    /// The budget, corrected by what the provider reports.
    pub(crate) room: Room,
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
    /// The number of folds so far.
    pub n_folds: usize,
}

/// Options for following a conversation.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// Messages that must not be folded, by their numbers from 0.
    pub pins: Vec<u32>,
    /// Whether the sizes are recorded after each entry.
    pub has_course: bool,
}

impl Followed {
    /// Follows a decoded body from its first message to its last.
    pub fn body(
        conversation: Conversation,
        changes: Vec<Change>,
        terms: &Terms,
        wishes: &Wishes,
    ) -> Followed {
        Followed::body_watched(conversation, changes, terms, wishes, &mut || ())
    }

    /// The same, with a call after each change to report progress.
    pub fn body_watched(
        conversation: Conversation,
        changes: Vec<Change>,
        terms: &Terms,
        wishes: &Wishes,
        watch: &mut dyn FnMut(),
    ) -> Followed {
        let mut followed = Followed::start(conversation, terms);
        let tools = followed.conversation.tools().map(str::to_owned);
        followed.set_tools(tools.as_deref());
        followed.pins = pinned_entries(&changes, &wishes.pins);
        followed.course = wishes.has_course.then(Vec::new);
        followed.make(changes, watch);
        followed.end_entry();
        followed
    }

    /// A conversation without messages.
    pub fn empty(format: Format, terms: &Terms) -> Followed {
        Followed::start(Conversation::empty(format), terms)
    }

    /// A conversation with a new engine that has seen none of its messages.
    pub(crate) fn start(conversation: Conversation, terms: &Terms) -> Followed {
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
        Followed {
            conversation,
            session,
            course: None,
            room: Room::of(terms.budget),
            schemas: String::new(),
            added_tool: None,
            pins: Vec::new(),
        }
    }

    /// The view to send, or why there is none.
    pub fn view(&mut self) -> Result<View, ViewError> {
        self.session.view_with_context()
    }

    /// Adds a tool to every request, in addition to the client's own.
    pub(crate) fn add_tool(&mut self, tool: Option<&str>) {
        self.conversation.add_tool(tool);
        // Counted even where a body has no place for it, so that a replay from the log decides the same.
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
        self.make(changes, &mut || ());
    }

    fn make(&mut self, mut changes: Vec<Change>, watch: &mut dyn FnMut()) {
        count_changes(self.session.counter(), &mut changes);
        for change in changes {
            self.make_one(change);
            watch();
        }
    }

    /// Applies one change.
    pub(crate) fn make_one(&mut self, change: Change) {
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

    /// Repeats the effect of a recorded request on the engine: it folded then, with the tools of that time, and the
    /// handles in its view keep their names.
    pub(crate) fn look(&mut self) {
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
        let Some(course) = &mut self.course else { return };
        // After an overflow there is no view; the status has the smallest attempt.
        let view = self.session.view().ok().map(|view| view.tokens);
        let status = self.session.status();
        let (transcript, view) = (status.transcript, view.unwrap_or(status.tokens));
        course.push(Sizes { transcript, view, n_folds: status.n_folds });
    }

    /// A view in the client's own format.
    pub fn encode(&self, view: &View) -> String {
        self.conversation.encode(self.session.transcript(), view)
    }

    /// The numbers of the messages that an entry came from.
    pub fn messages_of(&self, entry: EntryId) -> Vec<u32> {
        messages_of(self.session.transcript().entry(entry))
    }
}

/// Counts many changes on several threads. A few are counted when they are applied.
pub fn count_changes(counter: &dyn Count, changes: &mut [Change]) {
    let n_bytes: usize = changes.iter().map(n_bytes).sum();
    if n_bytes >= MIN_PARALLEL_BYTES {
        Threads.count_all(changes, counter);
    }
}

/// Decodes a body, and gives back what it does to a transcript. A body that is given away is not copied.
pub fn decode(
    body: impl AsRef<str> + Into<String>,
    format: Option<Format>,
) -> Result<(Conversation, Vec<Change>), DecodeError> {
    Conversation::decode(body, format)
}

/// The numbers of the messages that an entry came from, each once.
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
    // What stands beside the list, such as a top-level system text, is no message of it.
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
