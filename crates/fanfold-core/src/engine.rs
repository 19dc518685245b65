//! The interface between a host and an engine, so that a third party can replace ours.
//!
//! A host appends entries, reports what happened, and requests views. `Session` is our engine;
//! `fanfold-engine/examples/other_engine/` contains another one, selected by the same setting. Both pass
//! `fanfold_testkit::contracts::engine::check`.
//!
//! ```text
//! append, set_result --> preflight --> view --> the host sends it --> report_usage --> append, ...
//! ```

use std::fmt;
use std::ops::Range;

use crate::fold::economy::FoldEstimate;
use crate::fold::ledger::Ledger;
use crate::fold::policy::Policy;
use crate::fold::receipt::Notice;
use crate::model::budget::{Budget, Pressure};
use crate::model::event::Event;
use crate::model::handle::{Handle, HandleError};
use crate::model::parallel::ParallelMap;
use crate::model::prices::Prices;
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{CallId, Entry, EntryId, Outcome, Transcript};
use crate::model::usage::ProviderUsage;
use crate::model::view::View;
use crate::output::feedback::{Feedback, FoldReport};
use crate::output::recall::{Extent, RecallError, find_by_content, recall, recall_in_context};
use crate::output::search::search_folded;
use crate::session::{Session, ViewError};
use crate::summary::{SummaryJob, SummaryOptions};

/// Advice on whether to fold now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldAdvice {
    /// True if a fold is due.
    pub is_due: bool,
    /// The reason, for the user.
    pub reason: String,
}

/// The parameters of a fold that a host requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoldRequest {
    /// The size of the next request, if the host knows it better than the engine.
    pub tokens: Option<Tokens>,
    /// A topic to keep in more detail.
    pub focus: Option<String>,
    /// Fold even if no fold is due.
    pub force: bool,
}

/// A change of the session as a whole.
///
/// Only `Reset` discards entries. Some hosts report an end at each fold and continue afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionTransition {
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
    /// The description for the model.
    pub description: &'static str,
    /// The parameters as a JSON Schema.
    pub parameters: &'static str,
}

/// The sizes and limits of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineStatus {
    /// The size of the view.
    pub tokens: Tokens,
    /// The size of the whole transcript.
    pub transcript: Tokens,
    /// The model's window.
    pub window: Tokens,
    /// The part of the window that a request may use.
    pub room: Tokens,
    /// The view size above which the engine folds; `None` if it never does.
    pub threshold: Option<Tokens>,
    /// How full the room is.
    pub pressure: Pressure,
    /// The number of folds.
    pub n_folds: usize,
    /// The provider's last report.
    pub usage: Option<ProviderUsage>,
}

/// The parameters of a new engine.
pub struct EngineSetup {
    /// The policy. An engine with rules of its own ignores it.
    pub policy: Policy,
    /// The window and the reserve.
    pub budget: Budget,
    /// The model's prices, if known and used to decide when to fold.
    pub prices: Option<Prices>,
    /// The token counter.
    pub counter: &'static dyn Count,
    /// The host's parallel map.
    pub parallel: &'static dyn ParallelMap,
}

/// An engine that can be selected by name with the setting `engine`.
#[derive(Clone, Copy)]
pub struct EngineFactory {
    /// The name in settings.
    pub name: &'static str,
    /// Creates an engine without entries.
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
    /// The name in settings.
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

    /// Folds if a fold is due, and returns the view to send.
    fn view(&mut self) -> Result<&View, ViewError>;

    /// Returns the view with the agent's working context appended, if the policy enables that and it fits.
    fn view_with_context(&mut self) -> Result<View, ViewError> {
        self.view().cloned()
    }

    /// Advises whether to fold, given the size of the next request if the host knows it.
    fn should_fold(&self, tokens: Option<Tokens>) -> FoldAdvice;

    /// Folds if a fold is due or forced. Returns feedback for the user.
    fn fold(&mut self, request: &FoldRequest) -> Result<Feedback, ViewError>;

    /// The current sizes and limits.
    fn status(&self) -> EngineStatus;

    /// Checks before a request whether there is a view to send.
    fn preflight(&mut self) -> Result<(), ViewError> {
        self.view().map(|_| ())
    }

    /// Returns whether a fold would save anything.
    fn has_something_to_fold(&self) -> bool {
        true
    }

    /// Reports the provider's token counts for the last view, before the reply is appended.
    fn report_usage(&mut self, _usage: ProviderUsage) {}

    /// Reports the beginning, end or change of a session.
    fn change_session(&mut self, change: &SessionTransition);

    /// Applies a pin, a focus, a refusal, a summary and the like. Unsupported events are ignored.
    fn apply(&mut self, _event: Event) {}

    /// Removes and returns the notices for the user.
    fn take_notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }

    /// The folds and their receipts. An engine that keeps no ledger returns an empty one.
    fn ledger(&self) -> &Ledger;

    /// The fanfold policy in use; `None` for an engine with rules of its own.
    fn policy(&self) -> Option<&Policy> {
        None
    }

    /// The name of the policy, or of the engine if it has no policy.
    fn policy_name(&self) -> &str {
        self.policy().map_or(self.name(), |policy| policy.name)
    }

    /// The model's prices; `None` if unknown or not used.
    fn prices(&self) -> Option<&Prices> {
        None
    }

    /// Weighs the cost of a fold against its savings; `None` if the engine does not fold by price.
    fn weighed(&self) -> Option<FoldEstimate> {
        None
    }

    /// Returns the original behind a handle, or a part of it.
    fn recall(&self, handle: Handle, extent: &Extent) -> Result<String, RecallError> {
        recall(self.transcript(), self.ledger(), handle, extent)
    }

    /// Returns the original behind a handle, or a part of it. An original without a fold is found by its content.
    fn recall_or_find(&self, handle: Handle, extent: &Extent) -> Result<String, RecallError> {
        match self.recall(handle, extent) {
            Err(RecallError::Unknown(_)) => {
                let found = find_by_content(self.transcript(), handle).ok_or(RecallError::Unknown(handle))?;
                extent.extract(found.to_string(), handle)
            }
            answer => answer,
        }
    }

    /// Finds the folded lines that contain a text, compared without regard to case: the handle, the line number and the
    /// line. Returns an empty text if no line contains it.
    fn search_folded(&self, text: &str) -> String {
        search_folded(self.transcript(), self.ledger(), text)
    }

    /// Returns the full texts that contain the original behind a handle, each with the byte range of the original in
    /// it.
    fn recall_in_context(&self, handle: Handle) -> Result<Vec<(String, Range<usize>)>, RecallError> {
        recall_in_context(self.transcript(), self.ledger(), handle)
    }

    /// Plans a summary job for a model; `None` if the engine takes no summaries or no entries to summarise.
    fn summary_job(&self, _options: &SummaryOptions) -> Option<SummaryJob<'static>> {
        None
    }

    /// An independent copy, for trial folds.
    fn fork(&self) -> Box<dyn Engine>;

    /// The tools that the engine offers to the model.
    fn tools(&self) -> Vec<ToolOffer> {
        Vec::new()
    }

    /// Runs a tool of the engine; `None` if it has no tool with this name.
    fn call_tool(&mut self, _name: &str, _arguments: &str) -> Option<String> {
        None
    }
}

const RECALL: ToolOffer = ToolOffer {
    name: "recall",
    description: "Opens a fold: gives back the original of step N by its handle #N, whole, some lines of it, or those that hold a text. Without a handle it searches everything folded.",
    parameters: r##"{"type":"object","properties":{"handle":{"type":"string","description":"#12, #7-11, #12.2"},"from":{"type":"integer"},"to":{"type":"integer"},"search":{"type":"string"}}}"##,
};

impl Engine for Session<'static> {
    fn name(&self) -> &str {
        "fanfold"
    }

    fn append(&mut self, entry: Entry) -> EntryId {
        Session::append(self, entry)
    }

    fn set_result(&mut self, call: CallId, outcome: Outcome) -> bool {
        Session::set_result(self, call, outcome)
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

    fn view(&mut self) -> Result<&View, ViewError> {
        Session::view(self)
    }

    fn should_fold(&self, tokens: Option<Tokens>) -> FoldAdvice {
        let yes = |reason| FoldAdvice { is_due: true, reason };
        let no = |reason| FoldAdvice { is_due: false, reason };
        let counted = self.ledger().total_without_summary(self.transcript());
        let Some(trigger) = self.policy().strategy.trigger(self.budget()) else {
            return no("the strategy is off".to_owned());
        };
        let room = self.budget().room();
        if counted > room {
            return yes(format!("{counted} tokens are over the room of {room}"));
        }
        let likely = tokens.unwrap_or_else(|| self.ledger().estimated_total(self.transcript()));
        if self.ledger().is_resting(self.policy()) {
            return no("folding is paused: the last two folds saved less than a tenth".to_owned());
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

    fn fold(&mut self, request: &FoldRequest) -> Result<Feedback, ViewError> {
        let (before, n_before) = (self.ledger().total(self.transcript()), self.ledger().receipts().len());
        let n_notices = self.notices().len();
        if let Some(topic) = &request.focus {
            Session::apply(self, Event::Focused(topic.clone()));
        }
        if let Some(tokens) = request.tokens {
            Session::apply(self, Event::UsageReported { counted: before, reported: tokens });
        }
        if request.force {
            Session::apply(self, Event::FoldRequested { range: None });
        }
        self.preflight()?;
        let notice = self.notices().iter().skip(n_notices).rev().find_map(|notice| match notice {
            Notice::NothingToFold(why) => Some(why.clone()),
            Notice::Pressure(_) | Notice::Resting { .. } => None,
        });
        let why_nothing = notice.or_else(|| Some(self.should_fold(None).reason));
        Ok(Feedback::new(&FoldReport {
            before,
            after: self.ledger().total(self.transcript()),
            room: self.budget().room(),
            n_folds: self.ledger().receipts().len().saturating_sub(n_before),
            why_nothing,
            ..FoldReport::default()
        }))
    }

    fn budget(&self) -> Budget {
        Session::budget(self)
    }

    fn set_budget(&mut self, budget: Budget) {
        Session::apply(self, Event::Budget(budget));
        Session::apply(self, Event::CacheExpired);
    }

    fn status(&self) -> EngineStatus {
        let tokens = self.ledger().total(self.transcript());
        EngineStatus {
            tokens,
            transcript: self.transcript().total(),
            window: self.budget().window(),
            room: self.budget().room(),
            threshold: self.policy().strategy.trigger(self.budget()),
            pressure: Pressure::new(tokens, self.budget()),
            n_folds: self.ledger().receipts().len(),
            usage: self.usage(),
        }
    }

    fn has_something_to_fold(&self) -> bool {
        let mut trial = self.fork();
        trial.apply(Event::FoldRequested { range: None });
        trial.ledger().receipts().len() > self.ledger().receipts().len()
    }

    fn report_usage(&mut self, usage: ProviderUsage) {
        Session::report_usage(self, usage);
    }

    fn change_session(&mut self, change: &SessionTransition) {
        match change {
            SessionTransition::Reset => self.reset(),
            // A session keeps no state outside itself, and its host owns its id.
            SessionTransition::Start(_) | SessionTransition::End(_) | SessionTransition::Switch(_) => {}
        }
    }

    fn apply(&mut self, event: Event) {
        Session::apply(self, event);
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        Session::take_notices(self)
    }

    fn view_with_context(&mut self) -> Result<View, ViewError> {
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

    fn weighed(&self) -> Option<FoldEstimate> {
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
        let handle = match &arguments["handle"] {
            serde_json::Value::Null => String::new(),
            serde_json::Value::String(handle) => handle.clone(),
            other => other.to_string(),
        };
        let line = |key: &str| arguments[key].as_u64().map(|line| line as usize);
        let extent = match (arguments["search"].as_str(), line("from")) {
            (Some(text), _) => Extent::Search { text: text.to_owned(), around: 2 },
            (None, Some(from)) => Extent::Lines(from, line("to").unwrap_or(from)),
            (None, None) => Extent::Whole,
        };
        let answer = match (handle.parse(), extent) {
            (Ok(handle), extent) => match self.recall(handle, &extent) {
                Ok(empty) if empty.is_empty() => Ok(format!("{handle} is empty")),
                recalled => recalled.map_err(|error| error.to_string()),
            },
            (Err(_), Extent::Search { text, .. }) if handle.is_empty() && !text.is_empty() => {
                let found = Engine::search_folded(&*self, &text);
                Ok(if found.is_empty() { format!("no folded line contains `{text}`") } else { found })
            }
            (Err(error), _) => Err(HandleError::to_string(&error)),
        };
        Some(answer.unwrap_or_else(|error| format!("error: {error}")))
    }
}

#[cfg(test)]
mod tests;
