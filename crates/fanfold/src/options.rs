//! The options of a fold, and the terms derived from them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use fanfold_core::{Budget, Count, EngineFactory, Policy, Tokens};
use fanfold_engine::Terms;
use fanfold_tokens::{Models, counter_for, o200k};

use crate::Error;

/// The window of an unknown model.
const DEFAULT_WINDOW: Tokens = Tokens(128_000);

/// How conversations are folded. By default, everything is derived from the model named in the body.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The model, which determines the window and the token counter. Default: the one named in the body.
    pub model: Option<String>,
    /// The context window in tokens. Default: the model's, or 128,000 if it is unknown.
    pub window: Option<u64>,
    /// The part of the window reserved for the reply, in tokens. Default: a quarter, at most 8,192.
    pub reserve: Option<u64>,
    /// The name of the folding policy. Default: `fanfold`.
    pub policy: Option<String>,
    /// The engine. Default: fanfold's own.
    pub engine: EngineFactory,
}

impl Options {
    /// The terms for a conversation with the model named in its body.
    pub(crate) fn terms(&self, model_in_body: Option<&str>) -> Result<Terms, Error> {
        let models = Models::built_in();
        let model = self.model.as_deref().or(model_in_body);
        let known_window = model.and_then(|name| models.find(name)).map(|model| model.window);
        let window = self.window.map(Tokens).or(known_window).unwrap_or(DEFAULT_WINDOW);
        let policy = self.policy.as_deref().unwrap_or(Policy::NAMES[0]);
        let engine = self.engine;
        Ok(Terms {
            engine,
            policy: Policy::named(policy).ok_or_else(|| Error::UnknownPolicy(policy.to_owned()))?,
            budget: match self.reserve {
                Some(reserve) => Budget::with_reserve(window, Tokens(reserve)),
                None => Budget::of_window(window),
            },
            prices: None,
            counter: model.map_or(o200k(), |model| counter(model, &models)),
            format: None,
            focus: String::new(),
            assumed: Vec::new(),
            described: format!("{} {policy} {}", engine.name, model.unwrap_or("-")),
        })
    }
}

/// The counter of a model. Counters are never freed, so each is created once.
fn counter(model: &str, models: &Models) -> &'static dyn Count {
    // Guards the map of counters by model name.
    static COUNTERS: Mutex<BTreeMap<String, &'static dyn Count>> = Mutex::new(BTreeMap::new());
    let mut counters = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    *counters.entry(model.to_owned()).or_insert_with(|| Box::leak(Box::new(counter_for(model, models))))
}
