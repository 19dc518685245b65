//! Context windows of models that providers reported in refusals. They are stored, so that other processes begin with
//! them.

use fanfold_core::Tokens;
use fanfold_store::{Batch, Op, StoreError};

use crate::engine::SessionEngine;

/// Lifetime of a stored limit. Providers extend windows and give names to other models, so an expired limit is found
/// again by one refusal, which the client does not see.
const LIFETIME_MS: i64 = 14 * 24 * 60 * 60 * 1000;
/// A smaller limit is not a context window.
const MIN_LIMIT: Tokens = Tokens(1024);
/// Maximum length of a stored name. Names come from clients.
const MAX_NAME_BYTES: usize = 400;

impl SessionEngine {
    /// The stored limit of a model at an upstream, unless it has expired.
    pub fn model_limit(&self, upstream: &str, model: &str) -> Result<Option<Tokens>, StoreError> {
        let Some([limit, at]) = value_names(upstream, model) else { return Ok(None) };
        let Some(tokens) = self.store.named_value(&limit)? else { return Ok(None) };
        let recorded_at = self.store.named_value(&at)?.unwrap_or_default();
        let is_fresh = self.clock.now().0.saturating_sub(recorded_at) <= LIFETIME_MS;
        Ok(u64::try_from(tokens).ok().map(Tokens).filter(|_| is_fresh))
    }

    /// Stores the limit of a model at an upstream in place of an earlier one. Returns true if it was stored.
    pub fn record_model_limit(
        &self,
        upstream: &str,
        model: &str,
        window: Tokens,
    ) -> Result<bool, StoreError> {
        let (Some([limit, at]), Ok(tokens)) = (value_names(upstream, model), i64::try_from(window.0)) else {
            return Ok(false);
        };
        if window < MIN_LIMIT {
            return Ok(false);
        }
        let now = self.clock.now();
        let ops = vec![Op::SetNamedValue(limit, tokens), Op::SetNamedValue(at, now.0)];
        self.store.commit(&Batch { at: now, expected_tips: Vec::new(), ops })?;
        Ok(true)
    }
}

/// The names of two stored values: the limit, and the time of the record.
fn value_names(upstream: &str, model: &str) -> Option<[String; 2]> {
    // Neither part has a line break, so different pairs have different names.
    let is_valid = |name: &str| !name.contains(['\n', '\0']) && name.len() <= MAX_NAME_BYTES;
    let names = ["limit", "limit heard"].map(|value| format!("{value}\n{upstream}\n{model}"));
    (is_valid(upstream) && is_valid(model)).then_some(names)
}
