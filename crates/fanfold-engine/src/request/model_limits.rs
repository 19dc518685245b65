//! What a provider was found to take of a model at most, when it refused something. It outlives the program that heard it,
//! so that the next one begins with it.

use fanfold_core::Tokens;
use fanfold_store::{Batch, Op, StoreError};

use crate::engine::Engine;

/// For so long it is believed. Providers widen windows and names move to other models; then it is found out again, by one
/// refusal that the client does not see.
const LIFETIME_MS: i64 = 14 * 24 * 60 * 60 * 1000;
/// A smaller one was no window.
const LEAST: Tokens = Tokens(1024);
/// A longer name is not kept: names come from clients.
const LONGEST: usize = 400;

impl Engine {
    /// What an upstream takes of a model at most, if it said so not too long ago.
    pub fn limit(&self, upstream: &str, model: &str) -> Result<Option<Tokens>, StoreError> {
        let Some([limit, at]) = names(upstream, model) else { return Ok(None) };
        let Some(tokens) = self.store.named_value(&limit)? else { return Ok(None) };
        let heard = self.store.named_value(&at)?.unwrap_or_default();
        let is_fresh = self.clock.now().0.saturating_sub(heard) <= LIFETIME_MS;
        Ok(u64::try_from(tokens).ok().map(Tokens).filter(|_| is_fresh))
    }

    /// Takes note of what an upstream takes of a model at most. The newest word holds. Says whether it was kept.
    pub fn learn_limit(&self, upstream: &str, model: &str, window: Tokens) -> Result<bool, StoreError> {
        let (Some([limit, at]), Ok(tokens)) = (names(upstream, model), i64::try_from(window.0)) else {
            return Ok(false);
        };
        if window < LEAST {
            return Ok(false);
        }
        let now = self.clock.now();
        let ops = vec![Op::SetNamedValue(limit, tokens), Op::SetNamedValue(at, now.0)];
        self.store.commit(&Batch { at: now, expected_tips: Vec::new(), ops })?;
        Ok(true)
    }
}

/// The names of the two marks: the limit, and when it was heard.
fn names(upstream: &str, model: &str) -> Option<[String; 2]> {
    // No name of a model has a line break, and an address neither: the two never run into one another.
    let is_name = |name: &str| !name.contains(['\n', '\0']) && name.len() <= LONGEST;
    let names = ["limit", "limit heard"].map(|what| format!("{what}\n{upstream}\n{model}"));
    (is_name(upstream) && is_name(model)).then_some(names)
}
