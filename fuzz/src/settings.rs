//! The settings of a run, from one byte: policy, counter, window, and whether a view is made after each message.

use fanfold_core::{Budget, Count, Policy, Tokens, Words};
use fanfold_tokens::o200k;

const WINDOWS: [u64; 8] = [0, 8, 24, 60, 120, 250, 500, 1_000];
/// Converts windows in words to tokens.
const TOKENS_PER_WORD: u64 = 6;

/// The settings of a run.
pub struct FuzzSettings {
    /// The policy.
    pub policy: Policy,
    /// The counter.
    pub counter: &'static dyn Count,
    /// A budget with a tiny window.
    pub budget: Budget,
    /// True if a view is made after each message.
    pub has_intermediate_views: bool,
}

/// The settings for a byte.
pub fn settings(byte: u8) -> FuzzSettings {
    let byte = usize::from(byte);
    let name = policy_name(byte);
    let (rest, n) = (byte / Policy::NAMES.len(), WINDOWS.len());
    let window = WINDOWS[rest % n];
    let is_in_words = (rest / n).is_multiple_of(2);
    let counter: &'static dyn Count = if is_in_words { &Words } else { o200k() };
    let window = if is_in_words { window } else { window * TOKENS_PER_WORD };
    FuzzSettings {
        policy: Policy::named(name).expect("a preset"),
        counter,
        budget: Budget::of_window(Tokens(window)),
        has_intermediate_views: (rest / n / 2).is_multiple_of(2),
    }
}

/// The name of the policy for a byte.
pub fn policy_name(byte: usize) -> &'static str {
    Policy::NAMES[byte % Policy::NAMES.len()]
}
