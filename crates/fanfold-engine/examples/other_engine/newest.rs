//! A complete engine on one page: it keeps the newest entries that fit and a note about those before them.
//!
//! It has no recall, and ignores prices and caches: it is a minimal engine.

use fanfold_core::{
    Budget, CallId, Contributor, Count, Engine, EngineFactory, EngineStatus, Entry, EntryId, Feedback,
    FoldAdvice, FoldReport, FoldRequest, Item, Ledger, Outcome, Overflow, Pressure, SessionTransition,
    Tokens, Transcript, View, ViewError, Voice,
};

/// The entry for a host's list of engines.
pub(crate) const NEWEST: EngineFactory =
    EngineFactory { name: "newest", start: |setup| Box::new(Newest::new(setup.budget, setup.counter)) };

/// Keeps system text and the newest entries.
#[derive(Clone)]
pub(crate) struct Newest {
    counter: &'static dyn Count,
    budget: Budget,
    transcript: Transcript,
    /// The first entry in the view after the system text. It only increases, so that views keep their beginning.
    first: usize,
    n_folds: usize,
    view: View,
    /// Always empty: this engine explains nothing and recalls nothing.
    ledger: Ledger,
}

impl Newest {
    /// An engine without entries.
    pub(crate) fn new(budget: Budget, counter: &'static dyn Count) -> Newest {
        let (transcript, view) = (Transcript::new(), View::default());
        Newest { counter, budget, transcript, first: 0, n_folds: 0, view, ledger: Ledger::default() }
    }

    /// The view without the entries before `first`.
    fn from(&self, first: usize) -> View {
        let is_sent = |i: usize| i >= first || self.transcript.entries()[i].is_system();
        let n_dropped = (0..first).filter(|i| !is_sent(*i)).count();
        let mut view = View::default();
        for i in 0..self.transcript.len() {
            if i == first && n_dropped > 0 {
                let text = format!("[{n_dropped} earlier entries are left out]");
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

    /// The first entry of a view that fills half of the room, or as nearly as possible; none if nothing would be
    /// saved.
    fn next_first(&self) -> Option<usize> {
        let goal = self.budget.room().permille(500);
        let now = self.from(self.first).tokens;
        let later = self.first + 1..self.transcript.len();
        let shorter = later.map(|first| (self.from(first).tokens, first)).filter(|(tokens, _)| *tokens < now);
        let shorter: Vec<(Tokens, usize)> = shorter.collect();
        let reached = shorter.iter().find(|(tokens, _)| *tokens <= goal);
        reached.or(shorter.iter().min()).map(|(_, first)| *first)
    }

    fn drop_entries(&mut self) {
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

    fn set_result(&mut self, call: CallId, outcome: Outcome) -> bool {
        self.transcript.set_result(call, outcome, self.counter)
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

    fn view(&mut self) -> Result<&View, ViewError> {
        let room = self.budget.room();
        if self.from(self.first).tokens > room {
            // Fold to half of the room, so that the next views only grow.
            self.drop_entries();
        }
        self.view = self.from(self.first);
        if self.view.tokens <= room {
            return Ok(&self.view);
        }
        let contributors =
            vec![Contributor { description: "the newest entry".to_owned(), tokens: self.view.tokens }];
        let remedy = "use a larger window".to_owned();
        Err(Overflow { smallest: self.view.tokens, room, is_folded: true, contributors, remedy }.into())
    }

    fn should_fold(&self, tokens: Option<Tokens>) -> FoldAdvice {
        let (tokens, room) = (tokens.unwrap_or_else(|| self.from(self.first).tokens), self.budget.room());
        FoldAdvice { is_due: tokens > room, reason: format!("{tokens} tokens for a room of {room}") }
    }

    fn fold(&mut self, request: &FoldRequest) -> Result<Feedback, ViewError> {
        let (before, n_before) = (self.from(self.first).tokens, self.n_folds);
        if request.force || self.should_fold(request.tokens).is_due {
            self.drop_entries();
        }
        let after = self.view()?.tokens;
        let why_nothing = Some("dropping more entries would save nothing".to_owned());
        let (room, n_folds) = (self.budget.room(), self.n_folds - n_before);
        Ok(Feedback::new(&FoldReport { before, after, room, n_folds, why_nothing, ..FoldReport::default() }))
    }

    fn has_something_to_fold(&self) -> bool {
        self.next_first().is_some()
    }

    fn budget(&self) -> Budget {
        self.budget
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn fork(&self) -> Box<dyn Engine> {
        Box::new(self.clone())
    }

    fn set_budget(&mut self, budget: Budget) {
        self.budget = budget;
    }

    fn change_session(&mut self, change: &SessionTransition) {
        if *change == SessionTransition::Reset {
            *self = Newest::new(self.budget, self.counter);
        }
    }

    fn status(&self) -> EngineStatus {
        let tokens = self.from(self.first).tokens;
        EngineStatus {
            tokens,
            transcript: self.transcript.total(),
            window: self.budget.window(),
            room: self.budget.room(),
            threshold: Some(self.budget.room()),
            pressure: Pressure::new(tokens, self.budget),
            n_folds: self.n_folds,
            usage: None,
        }
    }
}
