//! Pauses of summary models, recorded so that every process observes them.

use fanfold_store::Millis;
use serde::{Deserialize, Serialize};

/// A pause after a failure. Until it is over, background jobs skip the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// The end of the pause, in milliseconds since 1970.
    pub until: i64,
    /// The number of consecutive timeouts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_timeouts: u32,
    /// True if a credential or an account is the cause. Then no other model is called instead.
    #[serde(default, rename = "is_access", skip_serializing_if = "std::ops::Not::not")]
    pub is_access_error: bool,
    /// The message of the failure.
    pub why: String,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Backoff {
    pub(crate) fn is_over(&self, now: Millis) -> bool {
        now.0 >= self.until
    }
}
