//! A conversation and its session, followed together: bytes in, a view out.
//!
//! What follows it may be any engine that keeps to the contract; ours is `Session`.

use fanfold_core::{Budget, Count, Engine, Entry, EntryId, Event, Refusal, Session, Tokens, View};
use fanfold_wire::{Change, Conversation, DecodeError, Format};
use serde_json::value::RawValue;

use crate::follow::parallel::Threads;
use crate::follow::room::Room;
use crate::follow::terms::Terms;

/// From this many bytes of text on, counting on several threads pays for their memory.
const MANY_BYTES: usize = 256 * 1024;

/// A conversation being followed, by our engine or another one.
pub struct Followed<E = Session<'static>> {
    /// As its client writes it.
    pub conversation: Conversation,
    /// As it is folded.
    pub session: E,
    /// The sizes of transcript and view after each entry, if they are wanted.
    pub course: Option<Vec<Sizes>>,
    /// How much room there is, as its provider counts.
    pub(crate) room: Room,
    /// The tool schemas as they were counted last.
    schemas: String,
    /// A tool that leaves with every request.
    added: Option<String>,
    /// Entries that must stay as they are.
    pins: Vec<EntryId>,
}

/// What transcript and view cost at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// All that was said.
    pub transcript: Tokens,
    /// What is sent.
    pub view: Tokens,
    /// How many folds there were.
    pub n_folds: usize,
}

/// What to do beside folding.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// Messages that must stay as they are, by their numbers from 0.
    pub pins: Vec<u32>,
    /// Whether the sizes are noted after each entry.
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

    /// The same, with a call after each change for somebody who waits.
    pub fn body_watched(
        conversation: Conversation,
        changes: Vec<Change>,
        terms: &Terms,
        wishes: &Wishes,
        watch: &mut dyn FnMut(),
    ) -> Followed {
        Followed::start(conversation, terms).through(changes, wishes, watch)
    }

    /// A conversation without messages yet.
    pub fn empty(format: Format, terms: &Terms) -> Followed {
        Followed::start(Conversation::of_messages(format), terms)
    }

    /// A conversation of which nothing has been followed yet.
    pub(crate) fn start(conversation: Conversation, terms: &Terms) -> Followed {
        let mut session = Session::new(terms.policy.clone(), terms.budget, terms.counter);
        session.set_parallel(&Threads);
        if let Some(prices) = &terms.prices {
            session = session.with_prices(prices.clone());
        }
        if !terms.focus.is_empty() {
            session.on(Event::Focused(terms.focus.clone()));
        }
        Followed { room: Room::of(terms.budget), ..Followed::by(session, conversation) }
    }

    /// The view to send, or why there is none.
    pub fn view(&mut self) -> Result<View, Refusal> {
        if self.session.policy().working_context {
            return self.session.view_with_context();
        }
        self.session.view().cloned()
    }
}

impl<E: Engine> Followed<E> {
    /// A conversation that another engine follows, from its first message to its last.
    ///
    /// `session` is the engine as it is before anything was said.
    pub fn body_by(
        session: E,
        conversation: Conversation,
        changes: Vec<Change>,
        wishes: &Wishes,
    ) -> Followed<E> {
        Followed::by(session, conversation).through(changes, wishes, &mut || ())
    }

    /// A conversation of which an engine has followed nothing yet.
    fn by(session: E, conversation: Conversation) -> Followed<E> {
        let status = session.status();
        let budget = Budget::with_reserve(status.window, status.window - status.room);
        Followed {
            conversation,
            session,
            course: None,
            room: Room::of(budget),
            schemas: String::new(),
            added: None,
            pins: Vec::new(),
        }
    }

    /// Follows it to its last message.
    fn through(mut self, changes: Vec<Change>, wishes: &Wishes, watch: &mut dyn FnMut()) -> Followed<E> {
        let tools = self.conversation.tools().map(str::to_owned);
        self.set_tools(tools.as_deref());
        self.pins = pinned_entries(&changes, &wishes.pins);
        self.course = wishes.has_course.then(Vec::new);
        self.make(changes, watch);
        self.end_entry();
        self
    }

    /// The view to send as the engine makes it, or why there is none.
    pub fn plain_view(&mut self) -> Result<&View, Refusal> {
        self.session.view()
    }

    /// Has a tool leave with every request, beside those of the client.
    pub(crate) fn add_tool(&mut self, tool: Option<&str>) {
        self.conversation.add_tool(tool);
        // It is counted whether a body has a place for it or not, so that what was decided follows from what was noted.
        self.added = tool.map(str::to_owned);
        self.count_tools();
    }

    fn count_tools(&mut self) {
        let counter = self.session.counter();
        let added = self.added.as_deref().map_or(Tokens::ZERO, |tool| counter.count(tool));
        let schemas = counter.count(&self.schemas) + added;
        self.session.set_tools(schemas);
    }

    /// Tells what the tool schemas are, as JSON.
    pub fn set_tools(&mut self, schemas: Option<&str>) {
        let is_there = |schemas: &&str| !matches!(schemas.trim(), "[]" | "{}" | "null");
        let schemas = schemas.filter(is_there).unwrap_or_default();
        if schemas != self.schemas {
            schemas.clone_into(&mut self.schemas);
            self.count_tools();
        }
    }

    /// Takes messages that came after those held.
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

    /// Makes one change.
    pub(crate) fn make_one(&mut self, change: Change) {
        match change {
            Change::Append(entry) => {
                self.end_entry();
                self.session.append(entry);
            }
            Change::Answer(call, outcome) => {
                self.session.answer(call, outcome);
            }
        }
    }

    /// Does what a request that left did beside leaving: the step for the newest entry was taken then, with the tools
    /// of then, and what its view named while a call was running stays named.
    pub(crate) fn look(&mut self) {
        // That nothing fitted was told when it was asked for, and so was what people should hear of.
        let _ = self.session.view();
        let _ = self.session.take_notices();
    }

    /// Does what is due when the last entry is complete: the step for it is taken now in any case.
    fn end_entry(&mut self) {
        let n_entries = self.session.transcript().len();
        if n_entries == 0 {
            return;
        }
        let last = EntryId::from(n_entries - 1);
        if self.pins.contains(&last) {
            self.session.on(Event::Pinned(last));
        }
        self.note_sizes();
    }

    fn note_sizes(&mut self) {
        let Some(course) = &mut self.course else { return };
        // An overflow has no view; its smallest try is noted instead.
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

/// Counts many changes on several threads; few are counted as they are made.
pub fn count_changes(counter: &dyn Count, changes: &mut [Change]) {
    let n_bytes: usize = changes.iter().map(n_bytes).sum();
    if n_bytes >= MANY_BYTES {
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
