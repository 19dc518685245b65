//! The terms of each session: from the settings of the pipe and the requests of the session.

use std::collections::BTreeMap;

use fanfold_core::{Budget, Count, Policy, Tokens};
use fanfold_engine::Terms;
use fanfold_replay::PriceTable;
use fanfold_tokens::Models;

use super::session_terms::SessionTerms;
use crate::failure::{Failure, Result};
use crate::settings::Options;
use crate::setup::terms;

/// Maximum number of models with a counter of their own; further models use the counter of the settings.
const MAX_COUNTERS: usize = 256;

/// Makes the terms of sessions.
pub(super) struct TermsFactory {
    base: Terms,
    window: Option<Tokens>,
    /// True if the window is assumed, unless a request sets it.
    is_assumed: bool,
    /// The smallest window of the fallback models.
    smallest: Option<Tokens>,
    reserve: Tokens,
    has_tokenizer: bool,
    /// The policy for models whose prices are known.
    priced: Policy,
    models: Models,
    prices: PriceTable,
    counters: BTreeMap<String, &'static dyn Count>,
}

impl TermsFactory {
    pub(super) fn new(options: &Options) -> Result<TermsFactory> {
        let models = terms::models(options);
        let known = options.model.as_deref().and_then(|model| models.find(model));
        Ok(TermsFactory {
            is_assumed: options.window.is_none() && known.is_none(),
            base: terms::choose(options, None)?,
            window: options.window.map(|window| Tokens(window.0)),
            smallest: terms::smallest_window(options, &models),
            // `window` is the size for messages and tools, so nothing is reserved by default.
            reserve: options.reserve.map_or(Tokens::ZERO, |reserve| Tokens(reserve.0)),
            has_tokenizer: options.tokenizer.is_some(),
            priced: terms::policy(&terms::with_cadence(options, true))?,
            models,
            prices: terms::prices(options),
            counters: BTreeMap::new(),
        })
    }

    /// The terms of a session.
    pub(super) fn terms(&mut self, session: &SessionTerms) -> Result<Terms> {
        let mut terms = self.base.clone();
        if let Some(name) = &session.format {
            let format = name
                .parse()
                .map_err(|error| Failure::new(format!("{error}"), "leave out `format` to detect it"))?;
            terms.format = Some(format);
        }
        if let Some(topic) = &session.focus {
            terms.focus.clone_from(topic);
        }
        let model = session.model.as_deref();
        let known = model.and_then(|model| self.models.find(model)).map(|model| model.window);
        let given = session.window.map(Tokens).or(self.window).or(known);
        let window = given.unwrap_or(terms.budget.window());
        let is_assumed = given.is_none() && self.is_assumed;
        terms.assumed =
            is_assumed.then(|| terms::describe_assumed_window(model, "`window`")).into_iter().collect();
        let window = self.smallest.map_or(window, |smallest| smallest.min(window));
        let reserve = session.reserve.map_or(self.reserve, Tokens);
        terms.budget = Budget::with_reserve(window, reserve);
        if let Some(prices) = model.and_then(|model| terms::session_prices(&self.prices, model)) {
            terms.policy = self.priced.clone();
            terms.prices = Some(prices);
        }
        if let Some(model) = model.filter(|_| !self.has_tokenizer) {
            terms.counter = self.counter(model);
        }
        Ok(terms)
    }

    fn counter(&mut self, model: &str) -> &'static dyn Count {
        if let Some(counter) = self.counters.get(model) {
            return *counter;
        }
        if self.counters.len() >= MAX_COUNTERS {
            return self.base.counter;
        }
        let counter = terms::leaked_counter(model, &self.models);
        self.counters.insert(model.to_owned(), counter);
        counter
    }
}
