//! The usage of one request as reported by the provider.

use crate::model::tokens::Tokens;

/// The token counts that a provider reported for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProviderUsage {
    /// The whole prompt, cache reads and writes included; zero if the provider reported none.
    pub input: Tokens,
    /// The part of the prompt that was read from the cache.
    pub cached: Tokens,
    /// The part of the prompt that was written to the cache.
    pub written: Tokens,
    /// The completion, thoughts included.
    pub output: Tokens,
}
