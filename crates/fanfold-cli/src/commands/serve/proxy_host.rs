//! Stores and terms for the proxy.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fanfold_core::Tokens;
use fanfold_engine::{MachineClock, SessionEngine, SummaryModels, Terms};
use fanfold_proxy::Host;
use fanfold_store::{OpenMode, StoreError, open, store_file};
use fanfold_tokens::Models;
use fanfold_wire::Format;

use crate::failure::{Failure, Result};
use crate::settings::Options;
use crate::setup::summary_models;
use crate::setup::terms;

/// Maximum number of models with terms of their own; further models get the terms of an unnamed one.
const MAX_MODELS: usize = 256;

/// The smallest window of any model.
const SMALLEST_WINDOW: Tokens = Tokens(1024);

/// The store, terms and summary models for the proxy.
pub(super) struct ProxyHost {
    options: Options,
    address: String,
    models: Models,
    /// Guards the terms by model and format. Values are inserted and cloned whole.
    terms: Mutex<BTreeMap<(Option<String>, Format), Terms>>,
    /// The models that write summaries, created on first use.
    ways: OnceLock<SummaryModels>,
}

impl ProxyHost {
    /// Checks the settings, so that errors are reported at the start and not for each request.
    pub(super) fn new(options: &Options, address: &str) -> Result<ProxyHost> {
        let budget = terms::choose(options, None)?.budget;
        if budget.room() == Tokens::ZERO {
            let message = format!("a window of {} tokens has no room for a request", budget.window());
            return Err(Failure::new(message, "set --window to the window of the model, such as 128k"));
        }
        summary_models::check(options)?;
        let (options, address) = (options.clone(), address.to_owned());
        let models = terms::models(&options);
        Ok(ProxyHost { models, options, address, terms: Mutex::default(), ways: OnceLock::new() })
    }

    /// A warning if the window in the settings is smaller than that of any model.
    pub(super) fn window_warning(&self) -> Option<String> {
        let window = self.options.window.map(|window| Tokens(window.0));
        let window = window.filter(|window| *window < SMALLEST_WINDOW)?;
        Some(format!("a window of {window} tokens is smaller than any model's: most requests will not fit"))
    }

    /// The address of the store.
    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

impl Host for ProxyHost {
    fn open(&self) -> Result<SessionEngine, StoreError> {
        let store = open(&self.address, OpenMode::WritePromptly)?;
        Ok(SessionEngine::new(Arc::from(store), Arc::new(MachineClock)))
    }

    fn file(&self) -> Option<PathBuf> {
        store_file(&self.address)
    }

    fn terms(&self, model: Option<&str>, format: Format) -> Result<Terms, String> {
        let mut known = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = (model.map(str::to_owned), format);
        if known.len() >= MAX_MODELS && !known.contains_key(&key) {
            key.0 = None;
        }
        if let Some(terms) = known.get(&key) {
            return Ok(terms.clone());
        }
        let options = Options { format: Some(format.to_string()), ..self.options.clone() };
        let terms = terms::choose(&options, key.0.as_deref()).map_err(|error| error.to_string())?;
        for assumed in &terms.assumed {
            tracing::warn!("{assumed}");
        }
        known.insert(key, terms.clone());
        Ok(terms)
    }

    fn knows_window(&self, model: &str) -> bool {
        let model = terms::model(&self.options, Some(model)).unwrap_or(model);
        self.options.window.is_some() || self.models.find(model).is_some()
    }

    fn wants_summaries(&self) -> bool {
        summary_models::are_enabled(&self.options)
    }

    fn ways(&self) -> SummaryModels {
        let create = || {
            summary_models::ways(&self.options).unwrap_or_else(|error| {
                tracing::warn!(%error, "summaries are disabled");
                SummaryModels::default()
            })
        };
        self.ways.get_or_init(create).clone()
    }
}
