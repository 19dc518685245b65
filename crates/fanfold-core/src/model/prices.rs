//! What a provider charges for input and how its cache matches, as a session needs to know it.

use crate::model::tokens::Tokens;

/// What a provider charges for input, as multiples of its base price.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    /// Writing to the cache.
    pub write: f64,
    /// Reading from it.
    pub read: f64,
    /// How long a cached beginning lives after it was last used, in seconds; none is for long.
    pub lifetime: Option<u64>,
    /// Shorter beginnings are not cached.
    pub minimum: Tokens,
    /// Where a cached beginning can end.
    pub ends: CacheEnds,
    /// Lengths above which the whole request costs more.
    pub cliffs: Vec<PriceCliff>,
}

/// Where a cached beginning can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheEnds {
    /// At any message up to which two requests are equal.
    Anywhere,
    /// Where an earlier request ended, or where a breakpoint was set behind a fold.
    Marks,
    /// Only where an earlier request ended.
    Requests,
}

/// A length above which the whole request costs more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriceCliff {
    /// In tokens of input.
    pub above: Tokens,
    /// How many times the base price.
    pub times: f64,
}

impl Prices {
    /// A provider without a cache.
    pub fn without_cache() -> Prices {
        Prices {
            write: 1.0,
            read: 1.0,
            lifetime: None,
            minimum: Tokens::ZERO,
            ends: CacheEnds::Anywhere,
            cliffs: Vec::new(),
        }
    }

    /// What a request costs of which so many tokens are in the cache, in tokens at the base price.
    pub fn request(&self, tokens: Tokens, cached: Tokens) -> f64 {
        self.times(tokens) * self.on_the_flat(tokens, cached)
    }

    /// The same below all cliffs.
    pub(crate) fn on_the_flat(&self, tokens: Tokens, cached: Tokens) -> f64 {
        if tokens < self.minimum {
            return tokens.0 as f64;
        }
        let cached = if cached < self.minimum { Tokens::ZERO } else { cached };
        self.read * cached.0 as f64 + self.write * (tokens - cached).0 as f64
    }

    /// What writing a token costs more than reading it.
    pub fn rewriting(&self) -> f64 {
        (self.write - self.read).max(0.0)
    }

    /// The first cliff above a length.
    pub(crate) fn cliff_above(&self, tokens: Tokens) -> Option<PriceCliff> {
        let ahead = self.cliffs.iter().filter(|cliff| cliff.above >= tokens);
        ahead.min_by_key(|cliff| cliff.above).copied()
    }

    /// How many times the base price a request of this length costs.
    pub(crate) fn times(&self, tokens: Tokens) -> f64 {
        let passed = self.cliffs.iter().filter(|cliff| tokens > cliff.above);
        passed.max_by_key(|cliff| cliff.above).map_or(1.0, |cliff| cliff.times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_written_and_lifted_by_a_cliff() {
        let cliffs = vec![PriceCliff { above: Tokens(300), times: 2.0 }];
        let prices =
            Prices { write: 1.25, read: 0.5, minimum: Tokens(50), cliffs, ..Prices::without_cache() };
        let costs = [(40, 0), (100, 40), (200, 100), (400, 300)]
            .map(|(tokens, cached)| prices.request(Tokens(tokens), Tokens(cached)));
        assert_eq!(costs, [40.0, 125.0, 175.0, 550.0]);
    }
}
