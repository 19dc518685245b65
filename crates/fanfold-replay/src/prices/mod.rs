//! The prices and cache rules of providers: a built-in table, and the user's rows.

mod cost; // charges requests

use std::collections::BTreeMap;

use fanfold_core::{CacheBoundary, PriceCliff, Tokens};
use serde::{Deserialize, Serialize};

pub use cost::{Bill, ChargedRequest, CostMeter, RequestCharge, RequestPiece};

/// The price of one model, or of all models whose names share a prefix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Price {
    /// A prefix of model names, or the name of a provider's price list.
    pub name: String,
    /// The provider, for display.
    pub provider: String,
    /// Dollars per million tokens of input.
    pub base: f64,
    /// Dollars per million tokens of output.
    pub output: f64,
    /// The price of writing to the cache, as a multiple of the base.
    pub write: f64,
    /// The price of reading from the cache, as a multiple of the base.
    pub read: f64,
    /// The lifetime of a cached prefix after its last use, in seconds.
    pub lifetime: Option<u64>,
    /// Where a cached prefix can end.
    #[serde(rename = "match")]
    pub matching: CacheMatch,
    /// The shortest prefix that is cached, in tokens.
    pub minimum: u64,
    /// Matches are rounded down to a multiple of this, in tokens.
    pub step: u64,
    /// Lengths above which the whole request costs more.
    pub cliffs: Vec<Cliff>,
    /// The origin of the figures.
    pub source: PriceSource,
    /// True for a provider's price list, which applies only when named.
    #[serde(skip)]
    pub is_general: bool,
}

/// The origin of the figures in a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriceSource {
    /// The provider published them.
    Published,
    /// The provider published the cache rules; the dollars have no noted source.
    Cache,
    /// Like `Cache`, but published lists differ.
    Disputed,
    /// The user's settings.
    Settings,
    /// No source is noted.
    #[default]
    None,
}

impl PriceSource {
    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            PriceSource::Published => "published",
            PriceSource::Cache => "cache",
            PriceSource::Disputed => "disputed",
            PriceSource::Settings => "settings",
            PriceSource::None => "none",
        }
    }
}

/// Where a cached prefix can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheMatch {
    /// After any message up to which two requests are equal.
    Prefix,
    /// Where an earlier request ended, or at a breakpoint after a fold.
    Marks,
    /// Only where an earlier request ended.
    Ends,
    /// Nothing is cached.
    None,
}

/// A length above which a request costs more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cliff {
    /// The length, in tokens of input.
    pub above: u64,
    /// Dollars per million tokens of input.
    pub base: f64,
    /// Dollars per million tokens of output.
    pub output: f64,
}

/// Changes to a price. Absent fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceChange {
    /// A prefix of model names.
    pub name: String,
    /// See [`Price`].
    pub base: Option<f64>,
    /// See [`Price`].
    pub output: Option<f64>,
    /// See [`Price`].
    pub write: Option<f64>,
    /// See [`Price`].
    pub read: Option<f64>,
    /// See [`Price`].
    pub lifetime: Option<u64>,
    /// See [`Price`].
    #[serde(rename = "match")]
    pub matching: Option<CacheMatch>,
    /// See [`Price`].
    pub minimum: Option<u64>,
    /// See [`Price`].
    pub step: Option<u64>,
    /// See [`Price`].
    pub cliffs: Option<Vec<Cliff>>,
    /// See [`Price`].
    pub source: Option<PriceSource>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceList {
    provider: String,
    #[serde(default)]
    source: PriceSource,
    base: f64,
    output: f64,
    write: f64,
    read: f64,
    lifetime: Option<u64>,
    #[serde(rename = "match")]
    matching: CacheMatch,
    #[serde(default)]
    minimum: u64,
    #[serde(default = "one")]
    step: u64,
    #[serde(default)]
    models: Vec<PriceChange>,
}

fn one() -> u64 {
    1
}

/// The table of prices. The user's rows take precedence over the built-in ones.
#[derive(Debug, Clone)]
pub struct PriceTable {
    own: Vec<Price>,
    built_in: Vec<Price>,
}

/// The row for a model, and how it was found.
#[derive(Debug, Clone, Copy)]
pub struct PriceLookup<'p> {
    /// The row.
    pub price: &'p Price,
    /// How the name matched.
    pub matched_by: PriceMatch,
}

/// How a name matches a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceMatch {
    /// The names are equal.
    Exact,
    /// The row has the longest name that is a prefix of the model's.
    Prefix,
}

impl PriceTable {
    /// The built-in table.
    pub fn built_in() -> PriceTable {
        let table: BTreeMap<String, PriceList> =
            toml::from_str(include_str!("table.toml")).expect("a test reads the embedded table");
        let mut built_in = Vec::new();
        for (name, provider) in table {
            let models = provider.models;
            let own = Price {
                name,
                provider: provider.provider,
                base: provider.base,
                output: provider.output,
                write: provider.write,
                read: provider.read,
                lifetime: provider.lifetime,
                matching: provider.matching,
                minimum: provider.minimum,
                step: provider.step,
                cliffs: Vec::new(),
                source: provider.source,
                is_general: true,
            };
            built_in.extend(models.iter().map(|model| own.changed(model)));
            built_in.push(own);
        }
        PriceTable { own: Vec::new(), built_in }
    }

    /// The table with one more row. Absent fields are copied from the row found for its name, or from a price without a
    /// cache.
    pub fn with(mut self, change: &PriceChange) -> PriceTable {
        let base = self.find(&change.name).or_else(|| self.find("none")).map(|found| found.price.clone());
        let mut price = base.expect("the table has a row `none`").changed(change);
        price.provider = "your settings".to_owned();
        price.source = PriceSource::Settings;
        self.own.retain(|own| own.name != price.name);
        self.own.push(price);
        self
    }

    /// The row for a model or with this name: the user's rows first, then the longest prefix.
    pub fn find(&self, name: &str) -> Option<PriceLookup<'_>> {
        let name = name.to_ascii_lowercase();
        let named = self.all().find(|price| price.name == name);
        if let Some(price) = named {
            return Some(PriceLookup { price, matched_by: PriceMatch::Exact });
        }
        let price = longest(&self.own, &name).or_else(|| longest(&self.built_in, &name))?;
        Some(PriceLookup { price, matched_by: PriceMatch::Prefix })
    }

    /// All rows, the user's first.
    pub fn all(&self) -> impl Iterator<Item = &Price> {
        self.own.iter().chain(&self.built_in)
    }
}

/// The row with the longest name that is a prefix of the model's name, ignoring provider prefixes before a slash or
/// dot.
fn longest<'p>(prices: &'p [Price], model: &str) -> Option<&'p Price> {
    let base = model.rfind('/').map_or(0, |slash| slash + 1);
    let starts = std::iter::once(base).chain(model[base..].match_indices('.').map(|(dot, _)| base + dot + 1));
    let best = |at: usize| {
        let begins = prices.iter().filter(|price| !price.is_general && model[at..].starts_with(&price.name));
        begins.max_by_key(|price| price.name.len())
    };
    starts.into_iter().find_map(best)
}

impl Price {
    fn changed(&self, change: &PriceChange) -> Price {
        let change = change.clone();
        Price {
            name: change.name.to_ascii_lowercase(),
            provider: self.provider.clone(),
            base: change.base.unwrap_or(self.base),
            output: change.output.unwrap_or(self.output),
            write: change.write.unwrap_or(self.write),
            read: change.read.unwrap_or(self.read),
            lifetime: change.lifetime.or(self.lifetime),
            matching: change.matching.unwrap_or(self.matching),
            minimum: change.minimum.unwrap_or(self.minimum),
            step: change.step.unwrap_or(self.step).max(1),
            cliffs: change.cliffs.unwrap_or_else(|| self.cliffs.clone()),
            source: change.source.unwrap_or(self.source),
            is_general: false,
        }
    }

    /// The ratios that a session uses.
    pub fn for_session(&self) -> fanfold_core::Prices {
        let has_cache = self.matching != CacheMatch::None;
        let cliff = |cliff: &Cliff| PriceCliff { above: Tokens(cliff.above), factor: cliff.base / self.base };
        fanfold_core::Prices {
            write: if has_cache { self.write } else { 1.0 },
            read: if has_cache { self.read } else { 1.0 },
            output: self.output / self.base,
            lifetime: self.lifetime,
            minimum: Tokens(if has_cache { self.minimum } else { 0 }),
            boundary: match self.matching {
                CacheMatch::Prefix | CacheMatch::None => CacheBoundary::AnyMessage,
                CacheMatch::Marks => CacheBoundary::Breakpoints,
                CacheMatch::Ends => CacheBoundary::RequestEnds,
            },
            cliffs: self.cliffs.iter().map(cliff).collect(),
        }
    }

    /// The price of a recall from a view of this length, in dollars.
    pub fn recall_dollars(&self, view: u64) -> f64 {
        self.for_session().recall_cost(Tokens(view)) * self.base / 1e6
    }

    /// Dollars per million tokens of input and of output, for a request of this length.
    pub fn at(&self, tokens: u64) -> (f64, f64) {
        let passed = self.cliffs.iter().filter(|cliff| tokens > cliff.above);
        let highest = passed.max_by_key(|cliff| cliff.above);
        highest.map_or((self.base, self.output), |cliff| (cliff.base, cliff.output))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(model: &str, row: &str) {
        let prices = PriceTable::built_in();
        let found = prices.find(model).map(|found| found.price.name.as_str());
        assert_eq!(found.unwrap_or("nothing"), row, "{model}");
    }

    #[test]
    fn the_longest_prefix_wins() {
        check("claude-opus-5-5-20261001", "claude-opus-5-5");
        check("claude-opus-4-20250514", "claude-opus-4");
        check("us.anthropic.claude-sonnet-4-5-v1:0", "claude-sonnet-4");
        check("openrouter/openai/gpt-5.6-luna", "gpt-5.6-luna");
        check("gpt-5.1-codex", "gpt-5");
        check("gemini-3-pro-preview", "gemini-3-pro");
        check("anthropic-1h", "anthropic-1h");
        check("my-own-model", "nothing");
    }

    #[test]
    fn the_table_has_the_ratios_of_the_providers() {
        let prices = PriceTable::built_in();
        let ratios = |name: &str| {
            let price = prices.find(name).expect("in the table").price;
            (price.write, price.read)
        };
        assert_eq!(ratios("claude-sonnet-4-5"), (1.25, 0.10));
        assert_eq!(ratios("claude-opus-5-5"), (1.25, 0.05));
        assert_eq!(ratios("claude-fable-5-1"), (1.25, 0.025));
        assert_eq!(ratios("anthropic-1h"), (2.0, 0.10));
        assert_eq!(ratios("gpt-5"), (1.0, 0.10));
        assert_eq!(ratios("gpt-5.6"), (1.25, 0.10));
        assert_eq!(ratios("gpt-4.1"), (1.0, 0.25));
        assert_eq!(ratios("gpt-4o"), (1.0, 0.50));
        assert_eq!(ratios("none"), (1.0, 1.0));
    }

    #[test]
    fn rows_have_their_source() {
        let prices = PriceTable::built_in();
        let source = |name: &str| prices.find(name).expect("in the table").price.source;
        assert_eq!(source("claude-sonnet-5"), PriceSource::Published);
        assert_eq!(source("gpt-5.6"), PriceSource::Cache);
        assert_eq!(source("claude-sonnet-5-5"), PriceSource::Disputed);
        assert_eq!(source("claude-3-opus"), PriceSource::None);
    }

    #[test]
    fn a_row_of_the_user_comes_first_and_inherits_absent_fields() {
        let change = PriceChange { name: "gpt-5".to_owned(), base: Some(1.0), ..PriceChange::default() };
        let prices = PriceTable::built_in().with(&change);
        let found = prices.find("gpt-5.1").expect("in the table").price;
        assert_eq!((found.base, found.output, found.read), (1.0, 10.0, 0.10));
        let change = PriceChange { name: "mine".to_owned(), base: Some(0.5), ..PriceChange::default() };
        let prices = prices.with(&change);
        let found = prices.find("mine-7b").expect("added above").price;
        assert_eq!((found.base, found.matching), (0.5, CacheMatch::None));
    }

    #[test]
    fn a_cliff_raises_the_price_of_the_whole_request() {
        let prices = PriceTable::built_in();
        let price = prices.find("gpt-5.6").expect("in the table").price;
        assert_eq!(price.at(272_000), (4.0, 20.0));
        assert_eq!(price.at(272_001), (8.0, 30.0));
    }
}
