//! A whole other engine in a page: the newest entries that fit, and a line for what is left out before them.
//!
//! It keeps nothing for a recall and minds neither prices nor caches. It shows what an engine has to do, and no more.

use fanfold_core::{
    Ask, Asked, Budget, CallId, Contributor, Count, Engine, Entry, EntryId, Feedback, Item, Outcome,
    Overflow, Pressure, Refusal, SessionChange, Should, Status, Tokens, Transcript, View, Voice,
};

/// Keeps system text and the newest entries.
pub(crate) struct Newest {
    counter: &'static dyn Count,
    budget: Budget,
    transcript: Transcript,
    /// The first entry that is sent, beside system text. It only ever moves on, so that a view stays as it was.
    first: usize,
    n_folds: usize,
    view: View,
}

impl Newest {
    /// An engine for a budget.
    pub(crate) fn new(budget: Budget, counter: &'static dyn Count) -> Newest {
        let (transcript, view) = (Transcript::new(), View::default());
        Newest { counter, budget, transcript, first: 0, n_folds: 0, view }
    }

    /// What is sent if the entries before one are left out.
    fn from(&self, first: usize) -> View {
        let is_sent = |i: usize| i >= first || self.transcript.entries()[i].is_system();
        let n_gone = (0..first).filter(|i| !is_sent(*i)).count();
        let mut view = View::default();
        for i in 0..self.transcript.len() {
            if i == first && n_gone > 0 {
                let text = format!("[{n_gone} earlier entries are left out]");
                view.tokens += self.counter.frame().message + self.counter.count(&text);
                view.items.push(Item::Note { text: text.into(), voice: Voice::Fanfold });
            }
            if is_sent(i) {
                view.tokens += self.transcript.tokens(EntryId::from(i));
                view.items.push(Item::Whole(EntryId::from(i)));
            }
        }
        view.tokens += self.transcript.overhead();
        view
    }

    /// Where to begin to get to half of the room, or as near to it as that goes; none if nothing would be won.
    fn next_first(&self) -> Option<usize> {
        let goal = self.budget.room().permille(500);
        let now = self.from(self.first).tokens;
        let later = self.first + 1..self.transcript.len();
        let shorter = later.map(|first| (self.from(first).tokens, first)).filter(|(tokens, _)| *tokens < now);
        let shorter: Vec<(Tokens, usize)> = shorter.collect();
        let reached = shorter.iter().find(|(tokens, _)| *tokens <= goal);
        reached.or(shorter.iter().min()).map(|(_, first)| *first)
    }

    fn leave_out(&mut self) {
        if let Some(first) = self.next_first() {
            self.n_folds += 1;
            self.first = first;
        }
    }
}

impl Engine for Newest {
    fn name(&self) -> &str {
        "newest"
    }

    fn append(&mut self, entry: Entry) -> EntryId {
        self.transcript.append(entry, self.counter)
    }

    fn answer(&mut self, call: CallId, outcome: Outcome) -> bool {
        self.transcript.answer(call, outcome, self.counter)
    }

    fn set_tools(&mut self, schemas: Tokens) {
        self.transcript.set_tools(schemas);
    }

    fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    fn counter(&self) -> &dyn Count {
        self.counter
    }

    fn view(&mut self) -> Result<&View, Refusal> {
        let room = self.budget.room();
        if self.from(self.first).tokens > room {
            // Half of the room, so that the next few views only grow.
            self.leave_out();
        }
        self.view = self.from(self.first);
        if self.view.tokens <= room {
            return Ok(&self.view);
        }
        let contributors =
            vec![Contributor { what: "the newest entry".to_owned(), tokens: self.view.tokens }];
        let remedy = "use a larger window".to_owned();
        Err(Overflow { smallest: self.view.tokens, room, is_folded: true, contributors, remedy }.into())
    }

    fn should_fold(&self, tokens: Option<Tokens>) -> Should {
        let (tokens, room) = (tokens.unwrap_or_else(|| self.from(self.first).tokens), self.budget.room());
        let fold = tokens > room;
        Should { fold, reason: format!("{tokens} tokens for a room of {room}") }
    }

    fn fold(&mut self, ask: &Ask) -> Result<Feedback, Refusal> {
        let (before, n_before) = (self.from(self.first).tokens, self.n_folds);
        if ask.force || self.should_fold(ask.tokens).fold {
            self.leave_out();
        }
        let after = self.view()?.tokens;
        let why_nothing = Some("leaving out more would win nothing".to_owned());
        let (room, n_folds) = (self.budget.room(), self.n_folds - n_before);
        Ok(Feedback::of(&Asked { before, after, room, n_folds, why_nothing, ..Asked::default() }))
    }

    fn has_something_to_fold(&self) -> bool {
        self.next_first().is_some()
    }

    fn on_model(&mut self, budget: Budget) {
        self.budget = budget;
    }

    fn on_session(&mut self, change: &SessionChange) {
        if *change == SessionChange::Reset {
            *self = Newest::new(self.budget, self.counter);
        }
    }

    fn status(&self) -> Status {
        let tokens = self.from(self.first).tokens;
        Status {
            tokens,
            transcript: self.transcript.total(),
            window: self.budget.window(),
            room: self.budget.room(),
            threshold: Some(self.budget.room()),
            pressure: Pressure::of(tokens, self.budget),
            n_folds: self.n_folds,
            usage: None,
        }
    }
}
