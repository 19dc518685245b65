//! The contract between a host and an engine, by which a third party can replace ours.
//!
//! A host appends entries, reports what happened, and requests views. `Session` is our engine;
//! `fanfold-engine/examples/other_engine/` is another one, selected by the same setting. Both pass
//! `fanfold_testkit::contracts::engine::check`.
//!
//! ```text
//! append, set_result --> preflight --> view --> the host sends it --> report_usage --> append, ...
//! ```

use std::fmt;
use std::ops::Range;

use crate::fold::economy::Weighed;
use crate::fold::ledger::Ledger;
use crate::fold::policy::Policy;
use crate::fold::receipt::Notice;
use crate::model::budget::{Budget, Pressure};
use crate::model::event::Event;
use crate::model::handle::Handle;
use crate::model::parallel::ParallelMap;
use crate::model::prices::Prices;
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{CallId, Entry, EntryId, Outcome, Transcript};
use crate::model::usage::ProviderUsage;
use crate::model::view::View;
use crate::output::feedback::{Asked, Feedback};
use crate::output::recall::{Extent, RecallError, recall, recall_within};
use crate::session::{Refusal, Session};
use crate::summary::{SummaryJob, SummaryOptions};

/// Whether a fold is due, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldAdvice {
    /// Whether it is due.
    pub is_due: bool,
    /// The reason, for a person.
    pub reason: String,
}

/// The parameters of a fold that a host requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoldRequest {
    /// The size of the next request, if the host knows it better than the engine.
    pub tokens: Option<Tokens>,
    /// A topic that is kept in more detail.
    pub focus: Option<String>,
    /// Fold even if no fold is due.
    pub force: bool,
}

/// A change of the session as a whole.
///
/// Only `Reset` discards entries. Some hosts report an end at each fold and continue afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChange {
    /// The session with this id begins or continues.
    Start(String),
    /// The session with this id may be over; its state should be saved.
    End(String),
    /// The session restarts without entries.
    Reset,
    /// The conversation continues under this id.
    Switch(String),
}

/// A tool that the engine offers to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOffer {
    /// The name of the tool.
    pub name: &'static str,
    /// What it does, for the model.
    pub description: &'static str,
    /// Its parameters, as a JSON Schema.
    pub parameters: &'static str,
}

/// The sizes and limits of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The size of the view.
    pub tokens: Tokens,
    /// The size of the whole transcript.
    pub transcript: Tokens,
    /// The model's window.
    pub window: Tokens,
    /// The part of the window that a request may use.
    pub room: Tokens,
    /// The view size above which the engine folds; none if it never does.
    pub threshold: Option<Tokens>,
    /// How full the room is.
    pub pressure: Pressure,
    /// The number of folds so far.
    pub n_folds: usize,
    /// The provider's last report.
    pub usage: Option<ProviderUsage>,
}

/// Everything that an engine is made from.
pub struct EngineSetup {
    /// What may be folded; an engine with rules of its own ignores it.
    pub policy: Policy,
    /// The window and the reserve.
    pub budget: Budget,
    /// The model's prices, if they are known and should decide when to fold.
    pub prices: Option<Prices>,
    /// The token counter.
    pub counter: &'static dyn Count,
    /// The host's parallel map.
    pub parallel: &'static dyn ParallelMap,
}

/// An engine that the setting `engine` selects by its name.
#[derive(Clone, Copy)]
pub struct EngineFactory {
    /// The name in settings.
    pub name: &'static str,
    /// Makes an engine without entries.
    pub start: fn(EngineSetup) -> Box<dyn Engine>,
}

impl EngineFactory {
    /// Our own engine, the default.
    pub const FANFOLD: EngineFactory = EngineFactory { name: "fanfold", start: start_fanfold };

    /// Finds an engine by its name.
    pub fn find(known: &[EngineFactory], name: &str) -> Result<EngineFactory, UnknownEngine> {
        let found = known.iter().find(|factory| factory.name == name).copied();
        found.ok_or_else(|| UnknownEngine {
            name: name.to_owned(),
            known: known.iter().map(|factory| factory.name).collect(),
        })
    }
}

impl Default for EngineFactory {
    fn default() -> EngineFactory {
        EngineFactory::FANFOLD
    }
}

impl fmt::Debug for EngineFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EngineFactory").field(&self.name).finish()
    }
}

/// No registered engine has the name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no engine `{name}`")]
pub struct UnknownEngine {
    /// The name that was looked up.
    pub name: String,
    /// The names of the registered engines.
    pub known: Vec<&'static str>,
}

fn start_fanfold(setup: EngineSetup) -> Box<dyn Engine> {
    let EngineSetup { policy, budget, prices, counter, parallel } = setup;
    let mut session = Session::new(policy, budget, counter);
    session.set_parallel(parallel);
    Box::new(match prices {
        Some(prices) => session.with_prices(prices),
        None => session,
    })
}

/// An engine that keeps a conversation inside its window.
///
/// Methods with a default body are optional.
pub trait Engine: Send {
    /// The name by which settings select it.
    fn name(&self) -> &str;

    /// Appends an entry.
    fn append(&mut self, entry: Entry) -> EntryId;

    /// Sets the result of a running call. Returns whether there is such a call.
    fn set_result(&mut self, call: CallId, outcome: Outcome) -> bool;

    /// Sets the size of the tool schemas that are sent with each request.
    fn set_tools(&mut self, schemas: Tokens);

    /// All entries; a view refers to them.
    fn transcript(&self) -> &Transcript;

    /// The token counter.
    fn counter(&self) -> &dyn Count;

    /// The current window and reserve.
    fn budget(&self) -> Budget;

    /// Changes the window and the reserve, effective at once. The provider's cache is assumed to be empty.
    fn set_budget(&mut self, budget: Budget);

    /// The view to send, folded first if a fold is due; or why there is none.
    fn view(&mut self) -> Result<&View, Refusal>;

    /// The view, with the agent's working context at its end if the policy has it and it fits.
    fn view_with_context(&mut self) -> Result<View, Refusal> {
        self.view().cloned()
    }

    /// Whether a fold is due, by the engine's own count or by the given size of the next request.
    fn should_fold(&self, tokens: Option<Tokens>) -> FoldAdvice;

    /// Folds if a fold is due or forced. Returns the outcome for a person.
    fn fold(&mut self, request: &FoldRequest) -> Result<Feedback, Refusal>;

    /// The current sizes and limits.
    fn status(&self) -> Status;

    /// Checks before a request whether there is a view to send.
    fn preflight(&mut self) -> Result<(), Refusal> {
        self.view().map(|_| ())
    }

    /// Whether a fold would save anything.
    fn has_something_to_fold(&self) -> bool {
        true
    }

    /// Reports the provider's token counts for the last view, before the reply is appended.
    fn report_usage(&mut self, _usage: ProviderUsage) {}

    /// Reports the beginning, end or change of a session.
    fn change_session(&mut self, change: &SessionChange);

    /// Applies a pin, a focus, a refusal, a summary and the like. Unsupported events are ignored.
    fn apply(&mut self, _event: Event) {}

    /// Removes and returns the notices for people.
    fn take_notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }

    /// The folds and their receipts. An engine that keeps no ledger returns an empty one.
    fn ledger(&self) -> &Ledger;

    /// The fanfold policy in use; none for an engine with rules of its own.
    fn policy(&self) -> Option<&Policy> {
        None
    }

    /// The name of the policy, or of the engine if it has no policy.
    fn policy_name(&self) -> &str {
        self.policy().map_or(self.name(), |policy| policy.name)
    }

    /// The model's prices; none if they are unknown or not used.
    fn prices(&self) -> Option<&Prices> {
        None
    }

    /// Whether a fold pays for itself now; none if the engine does not fold by price.
    fn weighed(&self) -> Option<Weighed> {
        None
    }

    /// The original behind a handle, or a part of it.
    fn recall(&self, handle: Handle, extent: &Extent) -> Result<String, RecallError> {
        recall(self.transcript(), self.ledger(), handle, extent)
    }

    /// The full texts that contain the original behind a handle, each with the range of its part.
    fn recall_within(&self, handle: Handle) -> Result<Vec<(String, Range<usize>)>, RecallError> {
        recall_within(self.transcript(), self.ledger(), handle)
    }

    /// A summary job for a model; none if the engine takes no summaries or nothing is worth one.
    fn summary_job(&self, _options: &SummaryOptions) -> Option<SummaryJob<'static>> {
        None
    }

    /// An independent copy, for trial folds.
    fn fork(&self) -> Box<dyn Engine>;

    /// The tools it offers to the model.
    fn tools(&self) -> Vec<ToolOffer> {
        Vec::new()
    }

    /// Runs one of its tools; none if the tool is not one of them.
    fn call_tool(&mut self, _name: &str, _arguments: &str) -> Option<String> {
        None
    }
}

const RECALL: ToolOffer = ToolOffer {
    name: "recall",
    description: "Opens a fold: gives back the original behind a [handle], whole, some lines of it, or those that hold a text.",
    parameters: r#"{"type":"object","properties":{"handle":{"type":"string"},"from":{"type":"integer"},"to":{"type":"integer"},"search":{"type":"string"}},"required":["handle"]}"#,
};

impl Engine for Session<'static> {
    fn name(&self) -> &str {
        "fanfold"
    }

    fn append(&mut self, entry: Entry) -> EntryId {
        Session::append(self, entry)
    }

    fn set_result(&mut self, call: CallId, outcome: Outcome) -> bool {
        Session::answer(self, call, outcome)
    }

    fn set_tools(&mut self, schemas: Tokens) {
        Session::set_tools(self, schemas);
    }

    fn transcript(&self) -> &Transcript {
        Session::transcript(self)
    }

    fn counter(&self) -> &dyn Count {
        Session::counter(self)
    }

    fn view(&mut self) -> Result<&View, Refusal> {
        Session::view(self)
    }

    fn should_fold(&self, tokens: Option<Tokens>) -> FoldAdvice {
        let yes = |reason| FoldAdvice { is_due: true, reason };
        let no = |reason| FoldAdvice { is_due: false, reason };
        let counted = self.ledger().bare_total(self.transcript());
        let Some(trigger) = self.policy().strategy.trigger(self.budget()) else {
            return no("the strategy is off".to_owned());
        };
        let room = self.budget().room();
        if counted > room {
            return yes(format!("{counted} tokens are over the room of {room}"));
        }
        let likely = tokens.unwrap_or_else(|| self.ledger().likely(self.transcript()));
        if self.ledger().is_resting(self.policy()) {
            return no("folding rests: the last two folds won less than a tenth".to_owned());
        }
        if likely > trigger {
            return yes(format!("{likely} tokens are over the threshold of {trigger}"));
        }
        if counted > trigger {
            return no(format!(
                "the provider counted less than the {counted} tokens that were estimated: {likely} are within the \
                 threshold of {trigger}"
            ));
        }
        no(match self.weighed() {
            Some(weighed) => weighed.to_string(),
            None => format!("{likely} tokens are within the threshold of {trigger}"),
        })
    }

    fn fold(&mut self, request: &FoldRequest) -> Result<Feedback, Refusal> {
        let (before, n_before) = (self.ledger().total(self.transcript()), self.ledger().receipts().len());
        let n_told = self.notices().len();
        if let Some(topic) = &request.focus {
            Session::on(self, Event::Focused(topic.clone()));
        }
        if let Some(tokens) = request.tokens {
            Session::on(self, Event::Used { counted: before, reported: tokens });
        }
        if request.force {
            Session::on(self, Event::FoldAsked { range: None });
        }
        self.preflight()?;
        let said = self.notices().iter().skip(n_told).rev().find_map(|notice| match notice {
            Notice::NothingToFold(why) => Some(why.clone()),
            Notice::Pressure(_) | Notice::Resting { .. } => None,
        });
        let why_nothing = said.or_else(|| Some(self.should_fold(None).reason));
        Ok(Feedback::of(&Asked {
            before,
            after: self.ledger().total(self.transcript()),
            room: self.budget().room(),
            n_folds: self.ledger().receipts().len().saturating_sub(n_before),
            why_nothing,
            ..Asked::default()
        }))
    }

    fn budget(&self) -> Budget {
        Session::budget(self)
    }

    fn set_budget(&mut self, budget: Budget) {
        Session::on(self, Event::Budget(budget));
        Session::on(self, Event::Cooled);
    }

    fn status(&self) -> Status {
        let tokens = self.ledger().total(self.transcript());
        Status {
            tokens,
            transcript: self.transcript().total(),
            window: self.budget().window(),
            room: self.budget().room(),
            threshold: self.policy().strategy.trigger(self.budget()),
            pressure: Pressure::of(tokens, self.budget()),
            n_folds: self.ledger().receipts().len(),
            usage: self.usage(),
        }
    }

    fn has_something_to_fold(&self) -> bool {
        let mut trial = self.fork();
        trial.on(Event::FoldAsked { range: None });
        trial.ledger().receipts().len() > self.ledger().receipts().len()
    }

    fn report_usage(&mut self, usage: ProviderUsage) {
        self.note_usage(usage);
    }

    fn change_session(&mut self, change: &SessionChange) {
        match change {
            SessionChange::Reset => self.reset(),
            // A session keeps no state outside itself, and its host owns its id.
            SessionChange::Start(_) | SessionChange::End(_) | SessionChange::Switch(_) => {}
        }
    }

    fn apply(&mut self, event: Event) {
        Session::on(self, event);
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        Session::take_notices(self)
    }

    fn view_with_context(&mut self) -> Result<View, Refusal> {
        if Session::policy(self).working_context {
            Session::view_with_context(self)
        } else {
            Session::view(self).cloned()
        }
    }

    fn ledger(&self) -> &Ledger {
        Session::ledger(self)
    }

    fn policy(&self) -> Option<&Policy> {
        Some(Session::policy(self))
    }

    fn prices(&self) -> Option<&Prices> {
        Session::prices(self)
    }

    fn weighed(&self) -> Option<Weighed> {
        Session::weighed(self)
    }

    fn summary_job(&self, options: &SummaryOptions) -> Option<SummaryJob<'static>> {
        SummaryJob::plan(self, options)
    }

    fn fork(&self) -> Box<dyn Engine> {
        Box::new(Session::fork(self))
    }

    fn tools(&self) -> Vec<ToolOffer> {
        vec![RECALL]
    }

    fn call_tool(&mut self, name: &str, arguments: &str) -> Option<String> {
        if name != RECALL.name {
            return None;
        }
        let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
        let handle = arguments["handle"].as_str().unwrap_or_default();
        let line = |key: &str| arguments[key].as_u64().map(|line| line as usize);
        let extent = match (arguments["search"].as_str(), line("from")) {
            (Some(text), _) => Extent::Search { text: text.to_owned(), around: 2 },
            (None, Some(from)) => Extent::Lines(from, line("to").unwrap_or(from)),
            (None, None) => Extent::Whole,
        };
        let answer = match handle.parse() {
            Ok(handle) => self.recall(handle, &extent).map_err(|error| error.to_string()),
            Err(error) => Err(crate::model::handle::HandleError::to_string(&error)),
        };
        Some(answer.unwrap_or_else(|error| format!("error: {error}")))
    }
}

#[cfg(test)]
mod tests;
