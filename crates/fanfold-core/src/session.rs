//! A transcript and its ledger, followed message by message.
//!
//! A session takes one `step` after each entry, in order, whether the entries come one by one or all at once. So the
//! view depends on what was said alone, and not on how it arrived.

use std::ops::Range;

use crate::fold::economy::{FoldEstimate, estimate_fold};
use crate::fold::ledger::Ledger;
use crate::fold::policy::Policy;
use crate::fold::receipt::{Notice, Overflow};
use crate::fold::step::{Pin, StepInput, StepOutcome, step, unfold};
use crate::model::budget::Budget;
use crate::model::event::Event;
use crate::model::handle::Handle;
use crate::model::parallel::{ParallelMap, Sequential};
use crate::model::prices::Prices;
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{CallId, Entry, EntryId, Outcome, Transcript};
use crate::model::usage::ProviderUsage;
use crate::model::view::{Item, View, Voice};
use crate::output::assemble::{assemble, grow};
use crate::output::check::{Fault, check, check_growth};
use crate::output::recall::{Extent, RecallError, recall, recall_within};
use crate::output::working_context::working_context;
use crate::select::analysis::Analysis;

/// Why there is no view.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// Nothing that may be folded makes it fit.
    #[error("{0}")]
    Overflow(#[from] Overflow),
    /// A view was made that breaks a promise; it must not be sent.
    #[error("the view broke a promise and was not used: {0}")]
    Fault(#[from] Fault),
}

/// A conversation being followed.
#[derive(Clone)]
pub struct Session<'c> {
    counter: &'c dyn Count,
    parallel: &'c dyn ParallelMap,
    prices: Option<Prices>,
    policy: Policy,
    budget: Budget,
    transcript: Transcript,
    ledger: Ledger,
    analysis: Analysis,
    events: Vec<(usize, Event)>,
    notices: Vec<Notice>,
    overflow: Option<Overflow>,
    view: View,
    viewed: usize,
    is_settled: bool,
    is_rebuilt: bool,
    usage: Option<ProviderUsage>,
    /// The ledger of the last view that was asked for while a call was running.
    provisional: Option<Ledger>,
}

impl<'c> Session<'c> {
    /// A session in which nothing has been said yet.
    pub fn new(policy: Policy, budget: Budget, counter: &'c dyn Count) -> Session<'c> {
        Session {
            counter,
            parallel: &Sequential,
            prices: None,
            policy,
            budget,
            transcript: Transcript::new(),
            ledger: Ledger::default(),
            analysis: Analysis::default(),
            events: Vec::new(),
            notices: Vec::new(),
            overflow: None,
            view: View::default(),
            viewed: 0,
            is_settled: true,
            is_rebuilt: true,
            usage: None,
            provisional: None,
        }
    }

    /// Scans long conversations in parallel. The views are the same.
    pub fn set_parallel(&mut self, parallel: &'c dyn ParallelMap) {
        self.parallel = parallel;
    }

    /// The same with what its provider charges, so that it folds when that pays.
    pub fn with_prices(mut self, prices: Prices) -> Session<'c> {
        self.prices = Some(prices);
        self
    }

    /// Frees the memory of everything that can be computed again. The views are the same; the next fold takes longer.
    pub fn drop_analysis(&mut self) {
        self.analysis = Analysis::default();
    }

    /// A copy that goes its own way from here.
    pub fn fork(&self) -> Session<'c> {
        self.clone()
    }

    /// Forgets all that was said.
    pub fn reset(&mut self) {
        let (parallel, prices) = (self.parallel, self.prices.take());
        *self = Session { parallel, prices, ..Session::new(self.policy.clone(), self.budget, self.counter) };
    }

    /// Takes note of what the provider reported for the last view.
    ///
    /// Where our count is an estimate, what was proven to fit is not folded for it: only what came since is estimated.
    pub fn note_usage(&mut self, usage: ProviderUsage) {
        self.usage = Some(usage);
        let (counted, reported) = (self.view.tokens, usage.input);
        let tells = counted > Tokens::ZERO && reported > Tokens::ZERO && !self.counter.is_exact();
        if tells {
            self.on(Event::Used { counted, reported });
        }
    }

    /// What the provider reported last.
    pub fn usage(&self) -> Option<ProviderUsage> {
        self.usage
    }

    /// Tells what the tool schemas cost.
    pub fn set_tools(&mut self, schemas: Tokens) {
        if self.transcript.tools() != schemas {
            self.transcript.set_tools(schemas);
            self.is_settled = false;
        }
    }

    /// Adds an entry at the end.
    pub fn append(&mut self, entry: Entry) -> EntryId {
        self.provisional = None;
        self.settle();
        self.is_settled = false;
        self.transcript.append(entry, self.counter)
    }

    /// Gives a running call its result. Says whether there was such a call.
    ///
    /// A result that comes so late that its step is folded already brings the step back.
    pub fn answer(&mut self, call: CallId, outcome: Outcome) -> bool {
        self.provisional = None;
        // A result for the newest step completes it. One for an older step is news of its own: what came before it is
        // settled first, so that it does not matter whether somebody looked in between.
        let is_late = self.transcript.last_step() != Some(call.step);
        if is_late {
            self.settle();
        }
        self.is_settled = false;
        if call.step.index() < self.transcript.len() && !self.ledger.is_whole(call.step) {
            self.is_rebuilt |= unfold(&mut self.ledger, &self.transcript, &[call.step], Pin::No);
        }
        if is_late {
            self.ledger.account.invalidate();
        }
        self.ledger.freeze_originals(&self.transcript, call.step);
        self.analysis.invalidate(call.step);
        self.transcript.answer(call, outcome, self.counter)
    }

    /// Takes note of something that happened beside the conversation.
    pub fn on(&mut self, event: Event) {
        self.provisional = None;
        let is_running = self.transcript.last_step().is_some_and(|step| self.transcript.is_running(step));
        // A summary waits for the next fold, and so takes no step that would not be taken without it.
        let takes_no_step = is_running && matches!(event, Event::Summarised(_));
        if !takes_no_step {
            self.settle();
        }
        match &event {
            Event::Budget(budget) => self.budget = *budget,
            Event::Refused { limit } => {
                // A refusal without a number is taken as a tenth less than what was thought.
                let window = limit.unwrap_or(self.budget.window().permille(900));
                self.budget = self.budget.narrowed(window);
            }
            _ => {}
        }
        let is_settled = self.is_settled;
        self.take_step(Some(&event));
        self.is_settled = is_settled || !takes_no_step;
        self.events.push((self.transcript.len(), event));
    }

    /// The view to send, or why there is none.
    ///
    /// While a call is still running the view is provisional: the step is taken for good when its results are there,
    /// so that it does not matter how often somebody looked.
    pub fn view(&mut self) -> Result<&View, Refusal> {
        let is_running = self.transcript.last_step().is_some_and(|step| self.transcript.is_running(step));
        if is_running && !self.is_settled {
            let mut ahead = self.fork();
            ahead.settle();
            let view = ahead.settled_view().cloned();
            self.notices.extend(ahead.notices.drain(self.notices.len()..));
            self.ledger.reported_pressure = ahead.ledger.reported_pressure;
            self.ledger.is_rest_reported = ahead.ledger.is_rest_reported;
            // The view may be sent, so what it names must open for as long as the session lives.
            self.ledger.import_handles(&ahead.ledger);
            self.provisional = Some(ahead.ledger);
            self.view = view?;
            self.is_rebuilt = true;
            return Ok(&self.view);
        }
        self.settle();
        self.provisional = None;
        self.settled_view()
    }

    fn settled_view(&mut self) -> Result<&View, Refusal> {
        if let Some(overflow) = &self.overflow {
            return Err(overflow.clone().into());
        }
        if self.is_rebuilt {
            self.view = assemble(&self.transcript, &self.ledger);
            check(&self.transcript, &self.ledger, &self.view, self.budget)?;
            self.is_rebuilt = false;
        } else {
            grow(&mut self.view, &self.transcript, &self.ledger, self.viewed);
            check_growth(&self.view, self.budget)?;
        }
        self.viewed = self.transcript.len();
        Ok(&self.view)
    }

    /// The view with the working context at its very end, where that fits.
    ///
    /// It changes with each request, so it is never part of what the next view begins with.
    pub fn view_with_context(&mut self) -> Result<View, Refusal> {
        let room = self.budget.room();
        let mut view = self.view()?.clone();
        let context = working_context(&self.transcript, self.ledger(), &self.policy).to_string();
        let text = format!("<fanfold>\nWorking context (not the user's words):\n{context}</fanfold>");
        let tokens = self.counter.count(&text) + self.counter.frame().message;
        if !context.is_empty() && view.tokens + tokens <= room {
            view.tokens += tokens;
            view.items.push(Item::Note { text: text.into(), voice: Voice::Fanfold });
        }
        Ok(view)
    }

    /// The original behind a handle, or the wanted part of it.
    pub fn recall(&self, handle: Handle, extent: &Extent) -> Result<String, RecallError> {
        recall(&self.transcript, self.ledger(), handle, extent)
    }

    /// The whole texts that the original behind a handle is cut out of, each with the part that belongs to it.
    pub fn recall_within(&self, handle: Handle) -> Result<Vec<(String, Range<usize>)>, RecallError> {
        recall_within(&self.transcript, self.ledger(), handle)
    }

    /// All that was said.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The folds of the last view.
    pub fn ledger(&self) -> &Ledger {
        self.provisional.as_ref().unwrap_or(&self.ledger)
    }

    /// What is known of the transcript.
    pub(crate) fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// The policy it is folded by.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// What its provider charges, if that is known.
    pub fn prices(&self) -> Option<&Prices> {
        self.prices.as_ref()
    }

    /// Whether a fold for economy pays now; none where nothing is folded for that.
    pub fn weighed(&self) -> Option<FoldEstimate> {
        let (prices, economy) = (self.prices.as_ref()?, self.policy.economy?);
        Some(estimate_fold(&self.ledger().account, &economy.limited_to(self.budget.room()), prices))
    }

    /// The budget as it is now.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// The counter it is counted with.
    pub fn counter(&self) -> &'c dyn Count {
        self.counter
    }

    /// Runs its parallel tasks.
    pub(crate) fn parallel(&self) -> &'c dyn ParallelMap {
        self.parallel
    }

    /// What happened beside the conversation, each with the number of entries there were.
    pub fn events(&self) -> &[(usize, Event)] {
        &self.events
    }

    /// What a person should hear of and nobody has asked for yet.
    pub(crate) fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// What a person should hear of, since the last time this was asked.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Takes the step for the newest entry, once.
    fn settle(&mut self) {
        if !self.is_settled {
            self.take_step(None);
        }
    }

    fn take_step(&mut self, event: Option<&Event>) {
        let now = StepInput {
            transcript: &self.transcript,
            policy: &self.policy,
            budget: self.budget,
            counter: self.counter,
            parallel: self.parallel,
            prices: self.prices.as_ref(),
            event,
        };
        let (ledger, outlook) = step(std::mem::take(&mut self.ledger), &mut self.analysis, &now);
        let StepOutcome { is_changed, notices, overflow, .. } = outlook;
        self.ledger = ledger;
        self.is_rebuilt |= is_changed || self.overflow.is_some();
        self.notices.extend(notices);
        self.overflow = overflow;
        self.is_settled = true;
    }
}
