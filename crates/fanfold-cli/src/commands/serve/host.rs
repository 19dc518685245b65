//! Stores and terms for the proxy.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fanfold_core::Tokens;
use fanfold_engine::{Engine, MachineClock, Terms, Ways};
use fanfold_proxy::Host;
use fanfold_store::{OpenMode, StoreError, open, store_file};
use fanfold_tokens::Models;
use fanfold_wire::Format;

use crate::choose::{self, Asked};
use crate::failure::Failure;
use crate::settings::Options;
use crate::summaries;

/// So many models get terms of their own; those after them are folded as one that nobody named.
const MOST_MODELS: usize = 256;

/// No model has a smaller window.
const SMALLEST: Tokens = Tokens(1024);

/// What the settings offer to a proxy.
pub(crate) struct Offered {
    options: Options,
    address: String,
    models: Models,
    /// Guards the terms that were made; whole values go in and out.
    made: Mutex<BTreeMap<(Option<String>, Format), Terms>>,
    /// Who writes summaries, once that was needed.
    ways: OnceLock<Ways>,
}

impl Offered {
    /// What is wrong with the settings is told now, not at each request.
    pub(crate) fn new(options: &Options, address: &str) -> anyhow::Result<Offered> {
        let window = choose::terms(options, Asked::default())?.budget;
        if window.room() == Tokens::ZERO {
            let message = format!("a window of {} tokens has no room for anything", window.window());
            return Err(Failure::new(message, "set --window to what the model takes: 128k, or more").into());
        }
        summaries::check(options)?;
        let (options, address) = (options.clone(), address.to_owned());
        let (made, ways) = (Mutex::default(), OnceLock::new());
        Ok(Offered { models: choose::models(&options), options, address, made, ways })
    }

    /// A window that is set and can't be meant: no model has one as small.
    pub(crate) fn doubt(&self) -> Option<String> {
        let window =
            self.options.window.map(|window| Tokens(window.0)).filter(|window| *window < SMALLEST)?;
        Some(format!(
            "a window of {window} tokens is smaller than any model's: most requests will not fit it"
        ))
    }

    /// The address of the store.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Host for Offered {
    fn open(&self) -> Result<Engine, StoreError> {
        let store = open(&self.address, OpenMode::Write)?;
        Ok(Engine::new(Arc::from(store), Arc::new(MachineClock)))
    }

    fn file(&self) -> Option<PathBuf> {
        store_file(&self.address)
    }

    fn terms(&self, model: Option<&str>, format: Format) -> Result<Terms, String> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = (model.map(str::to_owned), format);
        if made.len() >= MOST_MODELS && !made.contains_key(&key) {
            key.0 = None;
        }
        if let Some(terms) = made.get(&key) {
            return Ok(terms.clone());
        }
        let options = Options { format: Some(format.to_string()), ..self.options.clone() };
        let terms = choose::terms(&options, Asked { model: key.0.as_deref() })
            .map_err(|error| format!("{error:#}"))?;
        for assumed in &terms.assumed {
            tracing::warn!("{assumed}");
        }
        made.insert(key, terms.clone());
        Ok(terms)
    }

    fn knows_window(&self, model: &str) -> bool {
        let model = choose::model_of(&self.options, Asked { model: Some(model) }).unwrap_or(model);
        self.options.window.is_some() || self.models.find(model).is_some()
    }

    fn wants_summaries(&self) -> bool {
        summaries::are_wanted(&self.options)
    }

    fn ways(&self) -> Ways {
        let make = || {
            summaries::ways(&self.options).unwrap_or_else(|error| {
                tracing::warn!(%error, "no summaries are written");
                Ways::default()
            })
        };
        self.ways.get_or_init(make).clone()
    }
}
