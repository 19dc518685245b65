//! How each request is folded: by the settings of the pipe, and by what the request itself says.

use std::collections::BTreeMap;

use fanfold_core::{Budget, Count, Policy, Tokens};
use fanfold_engine::Terms;
use fanfold_replay::PriceTable;
use fanfold_tokens::Models;

use super::wanted::Wanted;

use crate::choose::{self, Asked};
use crate::failure::Failure;
use crate::settings::Options;

/// So many models get a counter of their own; those after them are counted as the pipe's own model is.
const MOST_COUNTERS: usize = 256;

/// The settings of the pipe, read once.
pub(crate) struct Offer {
    base: Terms,
    window: Option<Tokens>,
    /// Whether nobody has said the window, unless a request does.
    is_assumed: bool,
    /// The smallest window of the models that may take over.
    smallest: Option<Tokens>,
    reserve: Tokens,
    has_tokenizer: bool,
    /// How models are folded whose prices are known.
    priced: Policy,
    models: Models,
    prices: PriceTable,
    counters: BTreeMap<String, &'static dyn Count>,
}

impl Offer {
    pub(crate) fn new(options: &Options) -> anyhow::Result<Offer> {
        let models = choose::models(options);
        let known = options.model.as_deref().and_then(|model| models.find(model));
        Ok(Offer {
            is_assumed: options.window.is_none() && known.is_none(),
            base: choose::terms(options, Asked::default())?,
            window: options.window.map(|window| Tokens(window.0)),
            smallest: choose::smallest(options, &models),
            // The caller has taken its answer off the window already, unless somebody says otherwise.
            reserve: options.reserve.map_or(Tokens::ZERO, |reserve| Tokens(reserve.0)),
            has_tokenizer: options.tokenizer.is_some(),
            priced: choose::policy(&choose::with_cadence(options, true))?,
            models,
            prices: choose::prices(options),
            counters: BTreeMap::new(),
        })
    }

    /// What a session is folded by.
    pub(crate) fn terms(&mut self, wanted: &Wanted) -> Result<Terms, Failure> {
        let mut terms = self.base.clone();
        if let Some(name) = &wanted.format {
            let format = name.parse().map_err(|error| {
                Failure::new(format!("{error}"), "leave `format` out to have it recognised")
            })?;
            terms.format = Some(format);
        }
        if let Some(topic) = &wanted.focus {
            terms.focus.clone_from(topic);
        }
        let model = wanted.model.as_deref();
        let known = model.and_then(|model| self.models.find(model)).map(|model| model.window);
        let said = wanted.window.map(Tokens).or(self.window).or(known);
        let window = said.unwrap_or(terms.budget.window());
        let is_assumed = said.is_none() && self.is_assumed;
        terms.assumed = is_assumed.then(|| choose::assumed_window(model, "`window`")).into_iter().collect();
        let window = self.smallest.map_or(window, |smallest| smallest.min(window));
        let reserve = wanted.reserve.map_or(self.reserve, Tokens);
        terms.budget = Budget::with_reserve(window, reserve);
        if let Some(prices) = model.and_then(|model| choose::session_prices(&self.prices, model)) {
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
        if self.counters.len() >= MOST_COUNTERS {
            return self.base.counter;
        }
        let counter = choose::counter_of(model, &self.models);
        self.counters.insert(model.to_owned(), counter);
        counter
    }
}
