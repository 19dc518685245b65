//! The contract by which a host uses an engine, and by which a third party can replace ours.
//!
//! A host tells what is said and what happens, and asks for a view; it never looks inside. `Session` is our engine, and
//! `fanfold-engine/examples/other_engine/` another one, which a host of ours runs in its place. The suite that both
//! pass is `fanfold_testkit::engines::check`.
//!
//! ```text
//! append, answer --> preflight --> view --> the host sends it --> on_usage --> append, answer, ...
//! ```

use crate::fold::receipt::Notice;
use crate::model::budget::{Budget, Pressure};
use crate::model::event::Event;
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{CallId, Entry, EntryId, Outcome, Transcript};
use crate::model::view::View;
use crate::output::feedback::{Asked, Feedback};
use crate::output::recall::Extent;
use crate::session::{Refusal, Session};

/// What a provider reported for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Everything that was sent; nothing where the provider did not say.
    pub prompt: Tokens,
    /// Of it, what was read from the cache.
    pub cached: Tokens,
    /// Everything that came back.
    pub completion: Tokens,
}

/// Whether a fold is due, and why or why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Should {
    /// Whether it is.
    pub fold: bool,
    /// The reason, for a person.
    pub reason: String,
}

/// A fold that a host asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ask {
    /// What the host knows the request to cost, if it knows better.
    pub tokens: Option<Tokens>,
    /// A topic of which more should be kept.
    pub focus: Option<String>,
    /// Whether to fold even if nothing demands it.
    pub force: bool,
}

/// What happens to a session as a whole. None of it but a reset takes anything away: some hosts tell an end at each fold
/// and go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChange {
    /// It begins, or goes on after a pause, under this id.
    Start(String),
    /// What is known of it should be made safe. It may go on afterwards.
    End(String),
    /// It begins anew, with nothing said.
    Reset,
    /// The same conversation goes on under another id.
    Switch(String),
}

/// A tool that the engine offers to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOffer {
    /// Its name.
    pub name: &'static str,
    /// What it does, for the model.
    pub description: &'static str,
    /// Its parameters, as a JSON Schema.
    pub parameters: &'static str,
}

/// How an engine stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What the view costs.
    pub tokens: Tokens,
    /// What all that was said costs.
    pub transcript: Tokens,
    /// The model's window.
    pub window: Tokens,
    /// What of it a request may cost.
    pub room: Tokens,
    /// From when on it folds, if it does.
    pub threshold: Option<Tokens>,
    /// How full the room is.
    pub pressure: Pressure,
    /// How many folds were made.
    pub n_folds: usize,
    /// What the provider reported last.
    pub usage: Option<Usage>,
}

/// An engine that keeps a conversation inside its window.
///
/// What has a body here may be left as it is.
pub trait Engine {
    /// Its name, as settings give it.
    fn name(&self) -> &str;

    /// Takes an entry at the end of the conversation.
    fn append(&mut self, entry: Entry) -> EntryId;

    /// Gives a running call its result. Says whether there was such a call.
    fn answer(&mut self, call: CallId, outcome: Outcome) -> bool;

    /// Tells what the tool schemas cost.
    fn set_tools(&mut self, schemas: Tokens);

    /// All that was said; a view names entries of it.
    fn transcript(&self) -> &Transcript;

    /// What it counts with.
    fn counter(&self) -> &dyn Count;

    /// The view to send, within the room, or why there is none. It is folded first if that is due.
    fn view(&mut self) -> Result<&View, Refusal>;

    /// Whether a fold is due, by its own count or by what the host knows the request to cost.
    fn should_fold(&self, tokens: Option<Tokens>) -> Should;

    /// Folds if that is due or forced, and tells a person what came of it.
    fn fold(&mut self, ask: &Ask) -> Result<Feedback, Refusal>;

    /// Takes note of another model with another window: everything follows from it at once.
    fn on_model(&mut self, budget: Budget);

    /// How it stands.
    fn status(&self) -> Status;

    /// Whether the conversation as it stands can be sent: asked before each request.
    fn preflight(&mut self) -> Result<(), Refusal> {
        self.view().map(|_| ())
    }

    /// Whether there is anything that a fold could win.
    fn has_something_to_fold(&self) -> bool {
        true
    }

    /// Takes note of what the provider reported for the last view. Told before the reply is appended.
    fn on_usage(&mut self, _usage: Usage) {}

    /// Takes note of the beginning, end or change of a session. Only a reset changes what there is to send.
    fn on_session(&mut self, change: &SessionChange);

    /// Takes note of something that a person wished: a pin, a focus, a fold undone. What it has no use for it leaves.
    fn on(&mut self, _event: Event) {}

    /// What a person should hear of, since the last time this was asked.
    fn take_notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }

    /// The tools it offers to the model.
    fn tools(&self) -> Vec<ToolOffer> {
        Vec::new()
    }

    /// Answers a call of one of its tools; none if the tool is not its own.
    fn call_tool(&mut self, _name: &str, _arguments: &str) -> Option<String> {
        None
    }
}

const RECALL: ToolOffer = ToolOffer {
    name: "recall",
    description: "Opens a fold: gives back the original behind a [handle], whole, some lines of it, or those that hold a text.",
    parameters: r#"{"type":"object","properties":{"handle":{"type":"string"},"from":{"type":"integer"},"to":{"type":"integer"},"search":{"type":"string"}},"required":["handle"]}"#,
};

impl Engine for Session<'_> {
    fn name(&self) -> &str {
        "fanfold"
    }

    fn append(&mut self, entry: Entry) -> EntryId {
        Session::append(self, entry)
    }

    fn answer(&mut self, call: CallId, outcome: Outcome) -> bool {
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

    fn should_fold(&self, tokens: Option<Tokens>) -> Should {
        let (yes, no) = (|reason| Should { fold: true, reason }, |reason| Should { fold: false, reason });
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

    fn fold(&mut self, ask: &Ask) -> Result<Feedback, Refusal> {
        let (before, n_before) = (self.ledger().total(self.transcript()), self.ledger().receipts().len());
        let n_told = self.notices().len();
        if let Some(topic) = &ask.focus {
            Session::on(self, Event::Focused(topic.clone()));
        }
        if let Some(tokens) = ask.tokens {
            Session::on(self, Event::Used { counted: before, reported: tokens });
        }
        if ask.force {
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

    fn on_model(&mut self, budget: Budget) {
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

    fn on_usage(&mut self, usage: Usage) {
        self.note_usage(usage);
    }

    fn on_session(&mut self, change: &SessionChange) {
        match change {
            SessionChange::Reset => self.reset(),
            // Nothing is held that could be lost, and a session is told from another by its host.
            SessionChange::Start(_) | SessionChange::End(_) | SessionChange::Switch(_) => {}
        }
    }

    fn on(&mut self, event: Event) {
        Session::on(self, event);
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        Session::take_notices(self)
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
mod tests; // what our own engine does by it
