//! Counts for models whose vocabulary is not public.

use fanfold_core::{Count, Tokens};

use crate::exact::o200k;

/// A counter that multiplies the o200k count by a factor.
///
/// The vocabulary of another vendor differs from GPT-4o's by a factor that is much the same for all
/// kinds of text. The engine corrects the product further by the usage that the provider reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    name: String,
    permille: u64,
}

impl Estimate {
    /// An estimate for the model of this name: `permille` tokens per thousand tokens of o200k.
    pub fn new(model: &str, permille: u32) -> Estimate {
        Estimate { name: format!("{model} (estimate)"), permille: u64::from(permille) }
    }
}

impl Count for Estimate {
    fn count(&self, text: &str) -> Tokens {
        Tokens((o200k().count(text).0 * self.permille).div_ceil(1000))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn is_exact(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_rounded_up_and_marked_in_its_name() {
        let estimate = Estimate::new("claude", 1200);
        assert_eq!((estimate.name(), estimate.is_exact()), ("claude (estimate)", false));
        assert_eq!((estimate.count("").0, estimate.count("hello world").0), (0, 3));
    }
}
