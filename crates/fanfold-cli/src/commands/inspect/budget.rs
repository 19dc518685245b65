//! The numbers of a budget, and how full the room is.

use fanfold_core::{Cadence, Engine, Policy, Pressure, Tokens};
use fanfold_engine::FoldedConversation;
use serde_json::{Value, json};

use crate::terminal::{Text, count, number_rows, text};

pub(super) struct BudgetNumbers<'a> {
    followed: &'a FoldedConversation,
    transcript: Tokens,
    view: Tokens,
    trigger: Option<Tokens>,
}

impl BudgetNumbers<'_> {
    pub(super) fn new(followed: &FoldedConversation) -> BudgetNumbers<'_> {
        let session = &*followed.session;
        BudgetNumbers {
            followed,
            transcript: session.transcript().total(),
            view: session.status().tokens,
            trigger: session.status().threshold,
        }
    }

    pub(super) fn page(&self) -> Text {
        let session = &*self.followed.session;
        let (budget, policy, counter) = (session.budget(), session.policy(), session.counter());
        // An estimating counter says so in its name.
        let exact = if counter.is_exact() { " (exact)" } else { "" };
        let room = budget.room();
        let percent = |tokens: Tokens| format!("{:.1} %", tokens.0 as f64 * 100.0 / room.0.max(1) as f64);
        let state = if self.view > room { " — it does not fit" } else { "" };
        let folds = count(session.status().n_folds, "fold");
        let entries = session.transcript().len();
        let rows = [
            ("window", budget.window().to_string(), String::new()),
            ("reserve", budget.reserve().to_string(), "reserved for the reply".to_owned()),
            ("room", room.to_string(), "available for a request".to_owned()),
            (
                "trigger",
                self.trigger.map_or_else(|| "never".to_owned(), |at| at.to_string()),
                match policy {
                    Some(policy) => {
                        format!("folding starts here: {} (policy {})", policy.strategy, policy.name)
                    }
                    None => format!("folding starts here (engine {})", session.name()),
                },
            ),
            ("cadence", cadence(session), session.weighed().map_or_else(String::new, |w| w.to_string())),
            (
                "low mark",
                policy.map_or_else(|| "-".to_owned(), |policy| room.permille(policy.low_mark).to_string()),
                "target of a fold when the window is full".to_owned(),
            ),
            (
                "transcript",
                self.transcript.to_string(),
                format!("{} of the room, {entries} entries", percent(self.transcript)),
            ),
            (
                "tools",
                session.transcript().tools().to_string(),
                "schemas of tools, part of transcript and view".to_owned(),
            ),
            (
                "view",
                self.view.to_string(),
                format!("{} of the room after {folds}{state}", percent(self.view)),
            ),
            ("pressure", Pressure::new(self.view, budget).to_string(), String::new()),
        ];
        text![number_rows(rows), format!("counter     {}{exact}\n", counter.name())]
    }

    pub(super) fn json(&self) -> Value {
        let session = &*self.followed.session;
        let (budget, policy, counter) = (session.budget(), session.policy(), session.counter());
        json!({
            "format": self.followed.conversation.format().to_string(),
            "policy": session.policy_name(),
            "strategy": policy.map(|policy| policy.strategy.to_string()),
            "counter": counter.name(),
            "exact": counter.is_exact(),
            "window": budget.window().0,
            "reserve": budget.reserve().0,
            "room": budget.room().0,
            "cadence": cadence(session),
            "weighed": session.weighed().map(|weighed| weighed.to_string()),
            "trigger": self.trigger.map(|at| at.0),
            "low_mark": policy.map(|policy| budget.room().permille(policy.low_mark).0),
            "transcript": self.transcript.0,
            "tools": session.transcript().tools().0,
            "view": self.view.0,
            "fits": self.view <= budget.room(),
            "pressure": Pressure::new(self.view, budget).to_string(),
            "entries": session.transcript().len(),
            "folds": session.status().n_folds,
        })
    }
}

/// The cadence in effect; only the policy `fanfold` has one.
fn cadence(session: &dyn Engine) -> String {
    match session.weighed() {
        Some(_) => Cadence::Cost.to_string(),
        None if session.policy_name() == Policy::NAMES[0] => Cadence::Window.to_string(),
        None => "-".to_owned(),
    }
}
