//! A session: a transcript and its ledger, updated entry by entry.
//!
//! A session runs one fold `step` after each entry, in order, whether entries arrive one at a time or all at once. A
//! view therefore depends only on the entries and events, and not on how they were delivered.

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
use crate::output::check::{ViewFault, check, check_growth};
use crate::output::recall::{Extent, RecallError, recall, recall_in_context};
use crate::output::working_context::working_context;
use crate::select::analysis::Analysis;

/// A session has no view to send.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ViewError {
    /// The view does not fit, even with everything folded that may be folded.
    #[error("{0}")]
    Overflow(#[from] Overflow),
    /// The view violates an invariant and must not be sent.
    #[error("the view violates an invariant and was not used: {0}")]
    Fault(#[from] ViewFault),
}

/// A conversation with the folds that keep it within its budget.
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
    /// The number of entries in the view.
    n_viewed: usize,
    /// True if the fold step for the newest entry was run.
    is_settled: bool,
    /// True if the next view has to be assembled from the start, rather than extended.
    needs_assembly: bool,
    usage: Option<ProviderUsage>,
    /// The ledger of the last view that was requested while a call was running.
    provisional_ledger: Option<Ledger>,
}

impl<'c> Session<'c> {
    /// A session without entries.
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
            n_viewed: 0,
            is_settled: true,
            needs_assembly: true,
            usage: None,
            provisional_ledger: None,
        }
    }

    /// Sets how long conversations are scanned in parallel. The views are the same.
    pub fn set_parallel(&mut self, parallel: &'c dyn ParallelMap) {
        self.parallel = parallel;
    }

    /// Sets the provider's prices, so that the session also folds when that lowers the cost.
    pub fn with_prices(mut self, prices: Prices) -> Session<'c> {
        self.prices = Some(prices);
        self
    }

    /// Frees the memory of everything that can be recomputed. The views are the same; the next fold takes longer.
    pub fn drop_analysis(&mut self) {
        self.analysis = Analysis::default();
    }

    /// An independent copy.
    pub fn fork(&self) -> Session<'c> {
        self.clone()
    }

    /// Discards all entries and folds.
    pub(crate) fn reset(&mut self) {
        let (parallel, prices) = (self.parallel, self.prices.take());
        *self = Session { parallel, prices, ..Session::new(self.policy.clone(), self.budget, self.counter) };
    }

    /// Records the provider's report for the last view.
    ///
    /// If our count is an estimate, the report replaces it, so that a view that is known to fit is not folded because
    /// of an overestimate.
    pub(crate) fn report_usage(&mut self, usage: ProviderUsage) {
        self.usage = Some(usage);
        let (counted, reported) = (self.view.tokens, usage.input);
        let is_correction = counted > Tokens::ZERO && reported > Tokens::ZERO && !self.counter.is_exact();
        if is_correction {
            self.apply(Event::UsageReported { counted, reported });
        }
    }

    /// The provider's last report.
    pub(crate) fn usage(&self) -> Option<ProviderUsage> {
        self.usage
    }

    /// Sets the size of the tool schemas.
    pub fn set_tools(&mut self, schemas: Tokens) {
        if self.transcript.tools() != schemas {
            self.transcript.set_tools(schemas);
            self.is_settled = false;
        }
    }

    /// Appends an entry.
    pub fn append(&mut self, entry: Entry) -> EntryId {
        self.provisional_ledger = None;
        self.settle();
        self.is_settled = false;
        self.transcript.append(entry, self.counter)
    }

    /// Sets the result of a running call. Returns whether there is such a call.
    ///
    /// If the step of the call is already folded, it is unfolded.
    pub fn set_result(&mut self, call: CallId, outcome: Outcome) -> bool {
        self.provisional_ledger = None;
        // A result for the newest step completes it. A result for an older step counts as new content, so the entries
        // before it are settled first. Otherwise the folds would depend on whether a view was requested in between.
        let is_late = self.transcript.last_step() != Some(call.step);
        if is_late {
            self.settle();
        }
        self.is_settled = false;
        if call.step.index() < self.transcript.len() && !self.ledger.is_whole(call.step) {
            self.needs_assembly |= unfold(&mut self.ledger, &self.transcript, &[call.step], Pin::No);
        }
        if is_late {
            self.ledger.account.invalidate();
        }
        self.ledger.freeze_originals(&self.transcript, call.step);
        self.analysis.invalidate(call.step);
        self.transcript.set_result(call, outcome, self.counter)
    }

    /// Applies and records an event.
    pub fn apply(&mut self, event: Event) {
        self.provisional_ledger = None;
        let is_running = self.transcript.last_step().is_some_and(|step| self.transcript.is_running(step));
        // A summary only takes effect at the next fold. While a call is running, it must not settle the step early.
        let stays_unsettled = is_running && matches!(event, Event::SummaryWritten(_));
        if !stays_unsettled {
            self.settle();
        }
        match &event {
            Event::Budget(budget) => self.budget = *budget,
            Event::Refused { limit } => {
                // Without a reported limit, assume a window that is a tenth smaller.
                let window = limit.unwrap_or(self.budget.window().permille(900));
                self.budget = self.budget.narrowed(window);
            }
            _ => {}
        }
        let is_settled = self.is_settled;
        self.run_step(Some(&event));
        self.is_settled = is_settled || !stays_unsettled;
        self.events.push((self.transcript.len(), event));
    }

    /// Returns the view to send.
    ///
    /// While a call is running, the view is provisional: the fold step is only committed when the results are there, so
    /// that the number of requested views has no effect on later folds.
    pub fn view(&mut self) -> Result<&View, ViewError> {
        let is_running = self.transcript.last_step().is_some_and(|step| self.transcript.is_running(step));
        if is_running && !self.is_settled {
            let mut trial = self.fork();
            trial.settle();
            let view = trial.settled_view().cloned();
            self.notices.extend(trial.notices.drain(self.notices.len()..));
            self.ledger.reported_pressure = trial.ledger.reported_pressure;
            self.ledger.is_rest_reported = trial.ledger.is_rest_reported;
            // The view may be sent, so its handles must recall their originals for as long as the session lives.
            self.ledger.import_handles(&trial.ledger);
            self.provisional_ledger = Some(trial.ledger);
            self.view = view?;
            self.needs_assembly = true;
            return Ok(&self.view);
        }
        self.settle();
        self.provisional_ledger = None;
        self.settled_view()
    }

    fn settled_view(&mut self) -> Result<&View, ViewError> {
        if let Some(overflow) = &self.overflow {
            return Err(overflow.clone().into());
        }
        if self.needs_assembly {
            self.view = assemble(&self.transcript, &self.ledger);
            check(&self.transcript, &self.ledger, &self.view, self.budget)?;
            self.needs_assembly = false;
        } else {
            grow(&mut self.view, &self.transcript, &self.ledger, self.n_viewed);
            check_growth(&self.view, self.budget)?;
        }
        self.n_viewed = self.transcript.len();
        Ok(&self.view)
    }

    /// Returns the view with the working context appended, if it fits.
    ///
    /// The working context changes with each request, so it is not part of the prefix of the next view.
    pub fn view_with_context(&mut self) -> Result<View, ViewError> {
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

    /// Returns the original behind a handle, or a part of it.
    pub fn recall(&self, handle: Handle, extent: &Extent) -> Result<String, RecallError> {
        recall(&self.transcript, self.ledger(), handle, extent)
    }

    /// Returns the full texts that contain the original behind a handle, each with the byte range of the original in
    /// it.
    pub fn recall_in_context(&self, handle: Handle) -> Result<Vec<(String, Range<usize>)>, RecallError> {
        recall_in_context(&self.transcript, self.ledger(), handle)
    }

    /// The transcript.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The ledger of the last view.
    pub fn ledger(&self) -> &Ledger {
        self.provisional_ledger.as_ref().unwrap_or(&self.ledger)
    }

    /// The cached analysis of the transcript.
    pub(crate) fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The provider's prices, if known.
    pub fn prices(&self) -> Option<&Prices> {
        self.prices.as_ref()
    }

    /// Weighs the cost of a fold against its savings; `None` if the session does not fold by price.
    pub(crate) fn weighed(&self) -> Option<FoldEstimate> {
        let (prices, economy) = (self.prices.as_ref()?, self.policy.economy?);
        Some(estimate_fold(&self.ledger().account, &economy.limited_to(self.budget.room()), prices))
    }

    /// The current budget.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// The token counter.
    pub fn counter(&self) -> &'c dyn Count {
        self.counter
    }

    /// The parallel map for scans.
    pub(crate) fn parallel(&self) -> &'c dyn ParallelMap {
        self.parallel
    }

    /// The events in order, each with the number of entries at its time.
    pub fn events(&self) -> &[(usize, Event)] {
        &self.events
    }

    /// The notices for the user that were not taken yet.
    pub(crate) fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Removes and returns the notices for the user.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Runs the fold step for the newest entry, unless it was run already.
    fn settle(&mut self) {
        if !self.is_settled {
            self.run_step(None);
        }
    }

    fn run_step(&mut self, event: Option<&Event>) {
        let now = StepInput {
            transcript: &self.transcript,
            policy: &self.policy,
            budget: self.budget,
            counter: self.counter,
            parallel: self.parallel,
            prices: self.prices.as_ref(),
            event,
        };
        let (ledger, outcome) = step(std::mem::take(&mut self.ledger), &mut self.analysis, &now);
        let StepOutcome { is_changed, notices, overflow, .. } = outcome;
        self.ledger = ledger;
        self.needs_assembly |= is_changed || self.overflow.is_some();
        self.notices.extend(notices);
        self.overflow = overflow;
        self.is_settled = true;
    }
}
