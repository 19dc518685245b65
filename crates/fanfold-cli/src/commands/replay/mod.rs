//! `fanfold replay`: recorded conversations through policies.

mod gather; //  finds and reads the conversations
mod paper; //   the tables
mod data; //    the figures as JSON
mod drawing; // the picture

use std::path::Path;

use fanfold_core::{Policy, thousands};
use fanfold_replay::{CommonKnowledge, DEFAULT_PRICE, Record, ReplayOptions, ReplayOutcome, replay, rows};
use fanfold_tokens::o200k;
use rayon::prelude::*;

use super::{Say, prices};
use crate::choose;
use crate::failure::Failure;
use crate::flags::ReplayArgs;
use crate::output;
use crate::progress::Progress;
use crate::settings::Options;
use crate::terminal::{self, paint, style};

/// The windows when none is named, in tokens.
const USUAL_WINDOWS: [u64; 1] = [16_000];
/// And for a person's own sessions.
const SESSION_WINDOWS: [u64; 4] = [32_000, 64_000, 128_000, 200_000];
/// How many times as long as the window a conversation must be, if nobody says otherwise.
const USUAL_RATIO: f64 = 1.5;

pub(crate) fn run(args: &ReplayArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    check_picture(args)?;
    let terms = terms(args, options)?;
    let gathered = gather::records(args, say)?;
    let mut records = gathered.records;
    // The longest go first, so that no core is left with one at the end.
    records.sort_by_cached_key(|record| std::cmp::Reverse(n_bytes(record)));
    let outcomes = replay_all(&records, &terms, &gathered.known, args, say)?;
    if outcomes.is_empty() {
        let message = format!("none of {} conversations is long enough", records.len());
        return Err(Failure::new(message, "lower --window or --min-ratio").into());
    }
    tell_left_out(&terms, &records, &outcomes, say);
    if let Some(path) = &args.picture {
        output::write_file(path, drawing::svg(&terms, &outcomes).as_bytes())?;
    }
    if args.json {
        return terminal::data(&data::all(&terms, &outcomes));
    }
    let all = rows(&outcomes, |_| true);
    let mut page = match gather::is_of_sessions(args) {
        true => paper::sessions(&terms, &records, &all),
        false => String::new(),
    };
    page.push_str(&paper::tables(&terms, &all));
    if args.by_source {
        let mut sources: Vec<&str> = outcomes.iter().map(|outcome| outcome.source.as_str()).collect();
        sources.sort_unstable();
        sources.dedup();
        for source in sources {
            let rows = rows(&outcomes, |outcome| outcome.source == source);
            page.push_str(&paper::of_source(source, &terms, &rows));
        }
    }
    if args.receipts {
        page.push_str(&paper::receipts(&terms, &outcomes));
    }
    terminal::page(&page)
}

/// Whether the picture has a name for what it is.
fn check_picture(args: &ReplayArgs) -> Result<(), Failure> {
    let Some(path) = &args.picture else { return Ok(()) };
    match path.extension().filter(|ending| !ending.eq_ignore_ascii_case("svg")) {
        None => Ok(()),
        Some(_) => {
            let named = path.with_extension("svg");
            let message = format!("the picture is drawn as SVG, and {} is named otherwise", path.display());
            Err(Failure::new(message, format!("name it {}; browsers show it", named.display())))
        }
    }
}

/// Tells what the tables do not show: windows for which nothing is long enough, and prices that were assumed.
fn tell_left_out(terms: &ReplayOptions, records: &[Record], outcomes: &[ReplayOutcome], say: Say) {
    let is_missing = |window: &&u64| !outcomes.iter().any(|outcome| outcome.window == **window);
    for window in terms.windows.iter().filter(is_missing) {
        let window = thousands(*window);
        say.note(&format!("{} no conversation is long enough at {window}\n", paint(style::DIM, "note:")));
    }
    let has_price =
        |record: &&Record| record.model.as_deref().is_some_and(|model| terms.prices.find(model).is_some());
    let n_assumed = records.len() - records.iter().filter(has_price).count();
    if terms.price.is_none() && n_assumed > 0 {
        let n_assumed = terminal::count(n_assumed, "conversation");
        say.note(&format!(
            "{} {n_assumed} without a model whose price is known, charged as `{DEFAULT_PRICE}`; --prices names another\n",
            paint(style::DIM, "note:")
        ));
    }
}

fn terms(args: &ReplayArgs, options: &Options) -> anyhow::Result<ReplayOptions> {
    let is_of_sessions = gather::is_of_sessions(args);
    let mut names: Vec<&str> = args.policy.iter().map(String::as_str).collect();
    let is_path = |name: &&&str| !Policy::NAMES.contains(*name) && Path::new(name).exists();
    if let Some(path) = names.iter().find(is_path) {
        let message = format!("`{path}` is no policy but a file: --policy takes all that follows");
        return Err(Failure::new(message, format!("name it first: fanfold replay {path} --policy …")).into());
    }
    if names.contains(&"all") {
        for name in names.iter().filter(|name| **name != "all") {
            choose::policy(&Options { policy: Some((*name).to_owned()), ..options.clone() })?;
        }
        names = Policy::NAMES.to_vec();
    }
    if names.is_empty() {
        names.push(options.policy.as_deref().unwrap_or(Policy::NAMES[0]));
    }
    let policy = |name: &str| -> anyhow::Result<Policy> {
        choose::policy(&Options { policy: Some(name.to_owned()), ..options.clone() })
    };
    let mut windows: Vec<u64> = args.window.iter().map(|window| window.0).collect();
    if windows.is_empty() {
        windows = if is_of_sessions { SESSION_WINDOWS.to_vec() } else { USUAL_WINDOWS.to_vec() };
    }
    let prices = choose::prices(options);
    let price = match &args.prices {
        Some(name) => Some(prices::find(&prices, name)?.price.clone()),
        None => None,
    };
    Ok(ReplayOptions {
        policies: names.into_iter().map(policy).collect::<Result<_, _>>()?,
        windows,
        reserve: options.reserve.map_or(0, |reserve| reserve.0),
        min_ratio: args.min_ratio.unwrap_or(if is_of_sessions { 0.0 } else { USUAL_RATIO }),
        prices,
        price,
        min_tokens: args.least.map_or(0, |least| least.0),
        has_receipts: args.receipts,
    })
}

fn n_bytes(record: &Record) -> usize {
    record.messages.iter().map(|message| message.get().len()).sum()
}

fn replay_all(
    records: &[Record],
    terms: &ReplayOptions,
    known: &CommonKnowledge,
    args: &ReplayArgs,
    say: Say,
) -> anyhow::Result<Vec<ReplayOutcome>> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.jobs.unwrap_or(0))
        .build()
        .map_err(|error| Failure::new(format!("no threads could be started: {error}"), "try --jobs 1"))?;
    let n_all: usize = records.iter().map(n_bytes).sum();
    let progress = Progress::new("replaying", n_all as u64, say);
    let mut outcomes: Vec<ReplayOutcome> = pool.install(|| {
        let one = |record: &Record| {
            let outcomes = replay(record, terms, known, o200k());
            progress.add(n_bytes(record) as u64);
            outcomes
        };
        records.par_iter().with_max_len(1).flat_map_iter(one).collect()
    });
    drop(progress);
    outcomes.sort_by(|a, b| (a.window, a.policy, &a.id).cmp(&(b.window, b.policy, &b.id)));
    Ok(outcomes)
}
