//! Stores and terms for the proxy.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use fanfold_engine::{Engine, MachineClock, Terms};
use fanfold_proxy::Host;
use fanfold_store::{Purpose, StoreError, open, store_file};
use fanfold_tokens::Models;
use fanfold_wire::Format;

use crate::choose::{self, Asked};
use crate::settings::Options;

/// So many models get terms of their own; those after them are folded as one that nobody named.
const MOST_MODELS: usize = 256;

/// What the settings offer to a proxy.
pub(crate) struct Offered {
    options: Options,
    address: String,
    models: Models,
    /// Guards the terms that were made; whole values go in and out.
    made: Mutex<BTreeMap<(Option<String>, Format), Terms>>,
}

impl Offered {
    /// What is wrong with the settings is told now, not at each request.
    pub(crate) fn new(options: &Options, address: &str) -> anyhow::Result<Offered> {
        choose::terms(options, Asked::default())?;
        let (options, address) = (options.clone(), address.to_owned());
        Ok(Offered { models: choose::models(&options), options, address, made: Mutex::default() })
    }

    /// The address of the store.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Host for Offered {
    fn open(&self) -> Result<Engine, StoreError> {
        let store = open(&self.address, Purpose::Write)?;
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
        let model = self.options.model.as_deref().unwrap_or(model);
        self.options.window.is_some() || self.models.find(model).is_some()
    }
}
