//! `fanfold prices`: what providers charge, and how their caches match.

use clap::Args;
use fanfold_replay::{CacheMatch, Price, PriceLookup, PriceMatch, PriceSource, PriceTable};
use serde_json::json;

use crate::failure::{Failure, Result};
use crate::settings::{Options, nearest};
use crate::setup::terms;
use crate::terminal::{self, Reporter, Text, paint, style, text};

/// Show what providers charge, and how their caches match
#[derive(Debug, Args)]
#[command(after_help = "Example: fanfold prices claude-opus-5-5")]
pub(crate) struct PricesArgs {
    /// Model to look up
    model: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &PricesArgs, options: &Options, _: Reporter) -> Result<()> {
    let prices = terms::prices(options);
    if let Some(model) = &args.model {
        let found = find(&prices, model)?;
        return if args.json {
            let why = why(found, model);
            terminal::print_json(&json!({ "model": model, "why": why, "price": found.price }))
        } else {
            terminal::print_page(price_page(found, model))
        };
    }
    if args.json {
        let all: Vec<&Price> = prices.all().collect();
        return terminal::print_json(&json!(all));
    }
    terminal::print_page(table(&prices))
}

/// The row of a model, or the row of this name.
pub(crate) fn find<'p>(prices: &'p PriceTable, name: &str) -> Result<PriceLookup<'p>> {
    prices.find(name).ok_or_else(|| {
        let hint = match nearest(name, prices.all().map(|price| price.name.as_str())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                "add it to your settings under [[prices]]; `fanfold prices` lists the known models".to_owned()
            }
        };
        Failure::new(format!("no price is known for `{name}`"), hint)
    })
}

fn table(prices: &PriceTable) -> Text {
    let head = format!(
        "{:<24} {:>7} {:>7} {:>6} {:>6} {:>8} {:>7} {:>7}  {:<9}  {}\n",
        "model", "input", "output", "write", "read", "lifetime", "match", "minimum", "source", "cliffs"
    );
    let mut page = text![paint(style::BOLD, head.trim_end()), "\n"];
    let mut provider = "";
    for price in prices.all() {
        if price.provider != provider {
            provider = &price.provider;
            page.push_line(paint(style::DIM, provider));
        }
        page.push(format!(
            "{:<24} {:>7} {:>7} {:>6} {:>6} {:>8} {:>7} {:>7}  {:<9}  {}\n",
            price.name,
            dollars(price.base),
            dollars(price.output),
            times(price.write),
            times(price.read),
            lifetime(price),
            matching(price),
            price.minimum,
            price.source.name(),
            cliffs(price),
        ));
    }
    page.push(
        "\nDollars per million tokens; cache writes and reads as multiples of the input price. Sources: published by the\n\
         provider; cache: only the terms of the cache are published; disputed: published lists differ; settings: yours;\n\
         none: unknown.\n",
    );
    page
}

fn price_page(found: PriceLookup<'_>, model: &str) -> String {
    let price = found.price;
    let lines = [
        ("model", model.to_owned()),
        ("row", format!("{}: {}", price.name, why(found, model))),
        ("provider", price.provider.clone()),
        ("input", format!("{} a million tokens", dollars(price.base))),
        ("output", format!("{} a million tokens", dollars(price.output))),
        ("cache", format!("written at {}, read at {}", times(price.write), times(price.read))),
        ("lifetime", lifetime(price)),
        ("match", matching(price).to_owned()),
        ("minimum", format!("{} tokens", price.minimum)),
        ("cliffs", cliffs(price)),
        ("source", source(price).to_owned()),
    ];
    lines.iter().map(|(name, value)| format!("{name:<9} {value}\n")).collect()
}

fn why(found: PriceLookup<'_>, model: &str) -> String {
    match found.matched_by {
        PriceMatch::Exact => format!("it is named `{model}`"),
        PriceMatch::Prefix => "it is the longest prefix of the model's name".to_owned(),
    }
}

fn source(price: &Price) -> &'static str {
    match price.source {
        PriceSource::Published => "published by the provider",
        PriceSource::Cache => {
            "the terms of the cache are published by the provider, the dollars have no known source"
        }
        PriceSource::Disputed => "published, but lists differ",
        PriceSource::Settings => "your settings",
        PriceSource::None => "unknown",
    }
}

fn dollars(price: f64) -> String {
    format!("${price}")
}

fn times(multiple: f64) -> String {
    format!("{multiple}×")
}

fn lifetime(price: &Price) -> String {
    match price.lifetime {
        Some(seconds) if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        Some(seconds) => format!("{} min", seconds / 60),
        None if price.matching == CacheMatch::None => "-".to_owned(),
        None => "long".to_owned(),
    }
}

fn matching(price: &Price) -> &'static str {
    match price.matching {
        CacheMatch::Prefix => "prefix",
        CacheMatch::Marks => "marks",
        CacheMatch::Ends => "ends",
        CacheMatch::None => "none",
    }
}

fn cliffs(price: &Price) -> String {
    let cliff = |cliff: &fanfold_replay::Cliff| {
        format!("{} and {} above {}k", dollars(cliff.base), dollars(cliff.output), cliff.above / 1000)
    };
    let all: Vec<String> = price.cliffs.iter().map(cliff).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}
