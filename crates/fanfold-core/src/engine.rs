//! The contract by which a host uses an engine, and by which a third party can replace ours.
//!
//! A host tells what happens and asks for a view; it never looks inside. `Session` is our engine.

use crate::budget::{Budget, Pressure};
use crate::event::Event;
use crate::recall::Extent;
use crate::session::{Refusal, Session};
use crate::tokens::Tokens;
use crate::view::View;

/// What a provider reported for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Everything that was sent.
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
    /// What the host believes the request costs, if it knows better.
    pub tokens: Option<Tokens>,
    /// A topic of which more should be kept.
    pub focus: Option<String>,
    /// Whether to fold even if nothing demands it.
    pub force: bool,
}

/// What happens to a session as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChange {
    /// It begins, or goes on after a pause.
    Start(String),
    /// What is known of it should be made safe. It may go on afterwards.
    End(String),
    /// It begins anew, with nothing said.
    Reset,
    /// The host goes over to another one.
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
    /// The model's window.
    pub window: Tokens,
    /// From when on it folds, if it does.
    pub threshold: Option<Tokens>,
    /// How full the room is.
    pub pressure: Pressure,
    /// How many folds were made.
    pub n_folds: usize,
}

/// An engine that keeps a conversation inside its window.
pub trait Engine {
    /// Its name, as settings give it.
    fn name(&self) -> &str;

    /// Takes note of what the provider reported.
    fn on_usage(&mut self, usage: Usage);

    /// Whether a fold is due.
    fn should_fold(&self) -> Should;

    /// Whether the conversation as it stands can be sent: asked before each request.
    fn preflight(&mut self) -> Result<(), Refusal>;

    /// Whether there is anything that a fold could win.
    fn has_something_to_fold(&self) -> bool;

    /// Folds if that is due or forced, and gives the view.
    fn fold(&mut self, ask: &Ask) -> Result<&View, Refusal>;

    /// Takes note of the beginning, end or change of a session.
    fn on_session(&mut self, change: &SessionChange);

    /// The tools it offers to the model.
    fn tools(&self) -> Vec<ToolOffer>;

    /// Answers a call of one of its tools; none if the tool is not its own.
    fn call_tool(&mut self, name: &str, arguments: &str) -> Option<String>;

    /// Takes note of another model with another window.
    fn on_model(&mut self, budget: Budget);

    /// How it stands.
    fn status(&self) -> Status;
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

    fn on_usage(&mut self, usage: Usage) {
        self.note_usage(usage);
    }

    fn should_fold(&self) -> Should {
        let tokens = self.ledger().bare_total(self.transcript());
        match self.policy().strategy.trigger(self.budget()) {
            None => Should { fold: false, reason: "the strategy is off".to_owned() },
            Some(trigger) if tokens > trigger => {
                Should { fold: true, reason: format!("{tokens} tokens are over the threshold of {trigger}") }
            }
            Some(trigger) => Should {
                fold: false,
                reason: match self.weighed() {
                    Some(weighed) => weighed.to_string(),
                    None => format!("{tokens} tokens are within the threshold of {trigger}"),
                },
            },
        }
    }

    fn preflight(&mut self) -> Result<(), Refusal> {
        self.view().map(|_| ())
    }

    fn has_something_to_fold(&self) -> bool {
        let mut trial = self.fork();
        trial.on(Event::FoldAsked { range: None });
        trial.ledger().receipts().len() > self.ledger().receipts().len()
    }

    fn fold(&mut self, ask: &Ask) -> Result<&View, Refusal> {
        if let Some(topic) = &ask.focus {
            self.on(Event::Focused(topic.clone()));
        }
        if ask.force {
            self.on(Event::FoldAsked { range: None });
        }
        self.view()
    }

    fn on_session(&mut self, change: &SessionChange) {
        match change {
            SessionChange::Reset => self.reset(),
            // Nothing is held that could be lost, and a session is told from another by its host.
            SessionChange::Start(_) | SessionChange::End(_) | SessionChange::Switch(_) => {}
        }
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
            Err(error) => Err(crate::handle::HandleError::to_string(&error)),
        };
        Some(answer.unwrap_or_else(|error| format!("error: {error}")))
    }

    fn on_model(&mut self, budget: Budget) {
        self.on(Event::Budget(budget));
        self.on(Event::Cooled);
    }

    fn status(&self) -> Status {
        let tokens = self.ledger().total(self.transcript());
        Status {
            tokens,
            window: self.budget().window(),
            threshold: self.policy().strategy.trigger(self.budget()),
            pressure: Pressure::of(tokens, self.budget()),
            n_folds: self.ledger().receipts().len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::parse;
    use crate::policy::Policy;
    use crate::tokens::Words;

    fn session(n: usize) -> Session<'static> {
        let budget = Budget::with_reserve(Tokens(120), Tokens::ZERO);
        let mut session = Session::new(Policy::fanfold(), budget, &Words);
        for i in 0..n {
            let words = "some words of a result that is long enough to be worth folding ".repeat(2);
            let text =
                format!("user    ask {i}\ncall    read file_{i}.rs\nresult  {words}{i}\nsay     done {i}");
            for entry in parse(&text).expect("the notation is right") {
                session.append(entry);
            }
        }
        session
    }

    #[test]
    fn a_host_can_use_it_without_knowing_it() {
        let mut engine = session(3);
        let engine: &mut dyn Engine = &mut engine;
        assert!(!engine.should_fold().fold);
        assert!(engine.has_something_to_fold());
        engine.fold(&Ask { force: true, ..Ask::default() }).expect("it fits");
        assert_eq!(engine.status().n_folds, 1);
        engine.on_model(Budget::with_reserve(Tokens(30), Tokens::ZERO));
        assert!(engine.status().tokens <= Tokens(30) || engine.preflight().is_err());
        engine.on_session(&SessionChange::Reset);
        assert_eq!(engine.status().tokens, Tokens::ZERO);
    }

    #[test]
    fn the_model_can_open_a_fold() {
        let mut session = session(6);
        let handle = session.view().expect("it fits").handles[0].to_string();
        let answer = session.call_tool("recall", &format!(r#"{{"handle":"{handle}","search":"worth"}}"#));
        assert!(answer.expect("its own tool").contains("worth folding"));
        assert!(session.call_tool("other", "{}").is_none());
        assert!(session.call_tool("recall", "null").expect("its own tool").starts_with("error: "));
    }
}
