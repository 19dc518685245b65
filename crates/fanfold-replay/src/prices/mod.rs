//! What providers charge, as data: a table of ours, and what the user says before it.

mod cost; // what a sequence of requests costs

use std::collections::BTreeMap;

use fanfold_core::{CacheEnds, PriceCliff, Tokens};
use serde::{Deserialize, Serialize};

pub use cost::{Bill, Charge, Meter, Piece, Request, cost};

/// What one model, or all whose names begin alike, are charged at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Price {
    /// What the models' names begin with, or the name of a provider's way of charging.
    pub name: String,
    /// Whose prices these are.
    pub provider: String,
    /// Dollars per million tokens of input.
    pub base: f64,
    /// Dollars per million tokens of output.
    pub output: f64,
    /// What writing to the cache costs, as a multiple of the base.
    pub write: f64,
    /// What reading from the cache costs, as a multiple of the base.
    pub read: f64,
    /// How long a cached prefix lives after it was last used, in seconds.
    pub lifetime: Option<u64>,
    /// Where a cached prefix can end.
    #[serde(rename = "match")]
    pub matching: Match,
    /// Shorter prefixes are not cached, in tokens.
    pub minimum: u64,
    /// Matches are cut to a multiple of this, in tokens.
    pub step: u64,
    /// Lengths from which on the whole request costs more.
    pub cliffs: Vec<Cliff>,
    /// Where the figures come from.
    pub source: Source,
    /// Whether it is a provider's way of charging, which holds for no model unless it is named.
    #[serde(skip)]
    pub is_general: bool,
}

/// Where the figures of a row come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The provider published them.
    Published,
    /// The provider published how its cache charges; nobody is noted for the dollars.
    Cache,
    /// The same, but lists differ.
    Disputed,
    /// The user's settings.
    Settings,
    /// Nobody is noted.
    #[default]
    None,
}

impl Source {
    /// The word for it in tables and data.
    pub fn name(self) -> &'static str {
        match self {
            Source::Published => "published",
            Source::Cache => "cache",
            Source::Disputed => "disputed",
            Source::Settings => "settings",
            Source::None => "none",
        }
    }
}

/// Where a cached prefix can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// At any message up to which two requests are equal.
    Prefix,
    /// Where an earlier request ended, or where a breakpoint was set behind a fold.
    Marks,
    /// Only where an earlier request ended.
    Ends,
    /// Nothing is cached.
    None,
}

/// A length from which on a request costs more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cliff {
    /// In tokens of input.
    pub above: u64,
    /// Dollars per million tokens of input.
    pub base: f64,
    /// Dollars per million tokens of output.
    pub output: f64,
}

/// What is said of a price; what is left out is as it was.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceChange {
    /// What the models' names begin with.
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
    pub matching: Option<Match>,
    /// See [`Price`].
    pub minimum: Option<u64>,
    /// See [`Price`].
    pub step: Option<u64>,
    /// See [`Price`].
    pub cliffs: Option<Vec<Cliff>>,
    /// See [`Price`].
    pub source: Option<Source>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Provider {
    provider: String,
    #[serde(default)]
    source: Source,
    base: f64,
    output: f64,
    write: f64,
    read: f64,
    lifetime: Option<u64>,
    #[serde(rename = "match")]
    matching: Match,
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

/// The table of prices, the user's rows before the built-in ones.
#[derive(Debug, Clone)]
pub struct PriceTable {
    own: Vec<Price>,
    built_in: Vec<Price>,
}

/// Which row holds for a model, and why.
#[derive(Debug, Clone, Copy)]
pub struct Found<'p> {
    /// The row.
    pub price: &'p Price,
    /// Why it is this one.
    pub why: Why,
}

/// Why a row holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It has this very name.
    Named,
    /// The model's name begins with the row's, and with no longer one.
    Begins,
}

impl PriceTable {
    /// The table as it comes with this crate.
    pub fn built_in() -> PriceTable {
        let table: BTreeMap<String, Provider> =
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

    /// The table with one more row. What it leaves out is as the row that held for its name, or a cache-less price.
    pub fn with(mut self, change: &PriceChange) -> PriceTable {
        let known = self.find(&change.name).or_else(|| self.find("none")).map(|found| found.price.clone());
        let mut price = known.expect("the table has a row `none`").changed(change);
        price.provider = "your settings".to_owned();
        price.source = Source::Settings;
        self.own.retain(|own| own.name != price.name);
        self.own.push(price);
        self
    }

    /// The row that holds for a model or is named by hand: the user's before ours, the longest beginning first.
    pub fn find(&self, name: &str) -> Option<Found<'_>> {
        let name = name.to_ascii_lowercase();
        let named = self.all().find(|price| price.name == name);
        if let Some(price) = named {
            return Some(Found { price, why: Why::Named });
        }
        let price = longest(&self.own, &name).or_else(|| longest(&self.built_in, &name))?;
        Some(Found { price, why: Why::Begins })
    }

    /// Every row, the user's first.
    pub fn all(&self) -> impl Iterator<Item = &Price> {
        self.own.iter().chain(&self.built_in)
    }
}

/// The row with the longest name that a model's name begins with, whatever stands before a slash or a dot.
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

    /// What a session needs to know of it.
    pub fn for_session(&self) -> fanfold_core::Prices {
        let has_cache = self.matching != Match::None;
        let cliff = |cliff: &Cliff| PriceCliff { above: Tokens(cliff.above), times: cliff.base / self.base };
        fanfold_core::Prices {
            write: if has_cache { self.write } else { 1.0 },
            read: if has_cache { self.read } else { 1.0 },
            lifetime: self.lifetime,
            minimum: Tokens(if has_cache { self.minimum } else { 0 }),
            ends: match self.matching {
                Match::Prefix | Match::None => CacheEnds::Anywhere,
                Match::Marks => CacheEnds::Marks,
                Match::Ends => CacheEnds::Requests,
            },
            cliffs: self.cliffs.iter().map(cliff).collect(),
        }
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
    fn the_longest_beginning_counts() {
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
    fn the_ratios_are_those_of_the_providers() {
        let prices = PriceTable::built_in();
        let ratios = |name: &str| {
            let price = prices.find(name).expect("it is in the table").price;
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
    fn rows_tell_where_they_come_from() {
        let prices = PriceTable::built_in();
        let source = |name: &str| prices.find(name).expect("it is in the table").price.source;
        assert_eq!(source("claude-sonnet-5"), Source::Published);
        assert_eq!(source("gpt-5.6"), Source::Cache);
        assert_eq!(source("claude-sonnet-5-5"), Source::Disputed);
        assert_eq!(source("claude-3-opus"), Source::None);
    }

    #[test]
    fn a_row_of_ones_own_comes_first_and_keeps_what_it_leaves_out() {
        let change = PriceChange { name: "gpt-5".to_owned(), base: Some(1.0), ..PriceChange::default() };
        let prices = PriceTable::built_in().with(&change);
        let found = prices.find("gpt-5.1").expect("it is in the table").price;
        assert_eq!((found.base, found.output, found.read), (1.0, 10.0, 0.10));
        let change = PriceChange { name: "mine".to_owned(), base: Some(0.5), ..PriceChange::default() };
        let prices = prices.with(&change);
        let found = prices.find("mine-7b").expect("it was added").price;
        assert_eq!((found.base, found.matching), (0.5, Match::None));
    }

    #[test]
    fn a_cliff_lifts_the_whole_request() {
        let prices = PriceTable::built_in();
        let price = prices.find("gpt-5.6").expect("it is in the table").price;
        assert_eq!(price.at(272_000), (4.0, 20.0));
        assert_eq!(price.at(272_001), (8.0, 30.0));
    }
}
