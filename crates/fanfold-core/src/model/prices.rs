//! A provider's input prices and the rules of its prompt cache.

use crate::model::tokens::Tokens;

/// The size of the call that recalls content.
const RECALL_CALL: Tokens = Tokens(60);
/// The size of the excerpt that a recall returns.
const RECALL_EXCERPT: Tokens = Tokens(500);

/// A provider's prices, as multiples of its base price, and the rules of its prompt cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    /// The price of a token written to the cache.
    pub write: f64,
    /// The price of a token read from the cache.
    pub read: f64,
    /// The price of a token of output.
    pub output: f64,
    /// The lifetime of a cached prefix after its last use, in seconds; `None` if unlimited.
    pub lifetime: Option<u64>,
    /// The minimum size of a cached prefix.
    pub minimum: Tokens,
    /// Where a cached prefix can end.
    pub boundary: CacheBoundary,
    /// The sizes above which the whole request costs more.
    pub cliffs: Vec<PriceCliff>,
}

/// Where a cached prefix can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheBoundary {
    /// After any message up to which two requests are equal.
    AnyMessage,
    /// Where an earlier request ended or set a cache breakpoint.
    Breakpoints,
    /// Only where an earlier request ended.
    RequestEnds,
}

/// A request size above which the whole request costs more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriceCliff {
    /// The size in input tokens.
    pub above: Tokens,
    /// The price of the whole request as a multiple of the base price.
    pub factor: f64,
}

impl Prices {
    /// A provider without a cache.
    pub fn without_cache() -> Prices {
        Prices {
            write: 1.0,
            read: 1.0,
            output: 5.0,
            lifetime: None,
            minimum: Tokens::ZERO,
            boundary: CacheBoundary::AnyMessage,
            cliffs: Vec::new(),
        }
    }

    /// The cost of a request with `cached` of its tokens in the cache, in tokens at the base price.
    pub fn request_cost(&self, tokens: Tokens, cached: Tokens) -> f64 {
        self.cliff_factor(tokens) * self.base_cost(tokens, cached)
    }

    /// The cost of a request without regard to cliffs.
    pub(crate) fn base_cost(&self, tokens: Tokens, cached: Tokens) -> f64 {
        if tokens < self.minimum {
            return tokens.0 as f64;
        }
        let cached = if cached < self.minimum { Tokens::ZERO } else { cached };
        self.read * cached.0 as f64 + self.write * (tokens - cached).0 as f64
    }

    /// The cost of a recall from a view, in tokens at the base price: one more request that reads the view from the
    /// cache, the call as its output, and the excerpt that comes back.
    pub fn recall_cost(&self, view: Tokens) -> f64 {
        let input = self.base_cost(view + RECALL_EXCERPT, view);
        self.cliff_factor(view + RECALL_EXCERPT) * (input + self.output * RECALL_CALL.0 as f64)
    }

    /// The price difference between writing a token to the cache and reading it.
    pub(crate) fn write_surcharge(&self) -> f64 {
        (self.write - self.read).max(0.0)
    }

    /// The first cliff at or above a request size.
    pub(crate) fn cliff_above(&self, tokens: Tokens) -> Option<PriceCliff> {
        let ahead = self.cliffs.iter().filter(|cliff| cliff.above >= tokens);
        ahead.min_by_key(|cliff| cliff.above).copied()
    }

    /// The price factor of a request of this size.
    pub(crate) fn cliff_factor(&self, tokens: Tokens) -> f64 {
        let passed = self.cliffs.iter().filter(|cliff| tokens > cliff.above);
        passed.max_by_key(|cliff| cliff.above).map_or(1.0, |cliff| cliff.factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_cost_adds_reads_writes_and_the_cliff_factor() {
        let cliffs = vec![PriceCliff { above: Tokens(300), factor: 2.0 }];
        let prices =
            Prices { write: 1.25, read: 0.5, minimum: Tokens(50), cliffs, ..Prices::without_cache() };
        let costs = [(40, 0), (100, 40), (200, 100), (400, 300)]
            .map(|(tokens, cached)| prices.request_cost(Tokens(tokens), Tokens(cached)));
        assert_eq!(costs, [40.0, 125.0, 175.0, 550.0]);
    }
}
