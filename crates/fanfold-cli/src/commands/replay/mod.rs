//! `fanfold replay`: replays recorded conversations under policies.

mod sources; //      finds and reads recorded conversations
mod tables; //       the results as tables
mod results_json; // the results as JSON
mod scatter_plot; // the results as an SVG

use std::path::{Path, PathBuf};

use clap::Args;
use fanfold_core::{Cadence, Policy, Quality, thousands};
use fanfold_replay::{CommonKnowledge, DEFAULT_PRICE, Record, ReplayOptions, ReplayOutcome, replay, rows};
use fanfold_tokens::o200k;
use rayon::prelude::*;

use super::prices;
use crate::failure::{Failure, Result};
use crate::files::output;
use crate::settings::{Options, Size};
use crate::setup::terms;
use crate::terminal::progress::Progress;
use crate::terminal::{self, Reporter, Text};

const HELP: &str = "\
No model is called: before each recorded reply, the policy makes the view that
would have been sent, and the reply shows which parts of it were needed.

Files are recognised by their content: a record {\"id\", \"source\", \"messages\",
\"tools\"} per line, a request body or list of messages in any format, a session of
Claude Code or of Codex. Files may be gzipped; directories are searched.
Files come first, because --policy and --window take several values.

Examples:
  fanfold replay                                your own sessions, with their cost
  fanfold replay runs.jsonl.gz --policy all --window 16k 32k
  fanfold replay runs/ --without-aside --by-source --picture runs.svg";

/// Replay recorded conversations under policies, and compare recall and cost
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ReplayArgs {
    /// Files or directories of recorded conversations [default: your own sessions]
    paths: Vec<PathBuf>,
    /// Also replay your own sessions of Claude Code and Codex
    #[arg(long)]
    sessions: bool,
    /// Policies, or `all` [default: fanfold]
    #[arg(short, long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    policy: Vec<String>,
    /// Windows in tokens [default: 16k; for sessions 32k 64k 128k 200k]
    #[arg(short, long, value_name = "TOKENS", num_args = 1.., value_delimiter = ',')]
    window: Vec<Size>,
    /// When to fold: cost (when it saves money), window (only when the conversation no longer fits)
    #[arg(long, value_name = "NAME", value_parser = Cadence::NAMES, hide_possible_values = true)]
    cadence: Option<String>,
    /// Weight of content that leaves the view: economy (none), balanced (its price), faithful (fold only when full)
    #[arg(long, value_name = "NAME", value_parser = Quality::NAMES, hide_possible_values = true)]
    quality: Option<String>,
    /// Skip conversations shorter than this multiple of the window [default: 1.5; for sessions 0]
    #[arg(long, value_name = "RATIO")]
    min_ratio: Option<f64>,
    /// Skip conversations shorter than this many tokens
    #[arg(long, value_name = "TOKENS")]
    least: Option<Size>,
    /// Maximum number of conversations per file, sampled by a hash of their ids
    #[arg(long, value_name = "N")]
    max: Option<usize>,
    /// Replay only the fifth of the conversations that was not used for tuning
    #[arg(long)]
    only_aside: bool,
    /// Leave out the fifth of the conversations that was not used for tuning
    #[arg(long, conflicts_with = "only_aside")]
    without_aside: bool,
    /// File with texts that models know anyway, one per line
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Prices for all conversations: a row of `fanfold prices` [default: by the model of each]
    #[arg(long, value_name = "NAME")]
    prices: Option<String>,
    /// Number of threads [default: one per core]
    #[arg(short, long, value_name = "N")]
    jobs: Option<usize>,
    /// Also print tables per source
    #[arg(long)]
    by_source: bool,
    /// Print each fold with its savings and its cost
    #[arg(long)]
    receipts: bool,
    /// Print all results as JSON
    #[arg(long)]
    json: bool,
    /// Plot recall against tokens and cost, with a panel per source
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<PathBuf>,
}

impl ReplayArgs {
    /// True if the user's own sessions are replayed.
    fn has_own_sessions(&self) -> bool {
        self.sessions || self.paths.is_empty()
    }
}

/// The default windows, in tokens.
const DEFAULT_WINDOWS: [u64; 1] = [16_000];
/// The default windows for the user's own sessions.
const SESSION_WINDOWS: [u64; 4] = [32_000, 64_000, 128_000, 200_000];
/// The default of `--min-ratio`.
const DEFAULT_MIN_RATIO: f64 = 1.5;

pub(crate) fn run(args: &ReplayArgs, options: &Options, reporter: Reporter) -> Result<()> {
    check_picture(args)?;
    let terms = replay_terms(args, options)?;
    let (mut records, known) = sources::read(args, reporter)?;
    // Start with the longest, so that the threads end at about the same time.
    records.sort_by_cached_key(|record| std::cmp::Reverse(n_bytes(record)));
    let outcomes = replay_all(&records, &terms, &known, args, reporter)?;
    if outcomes.is_empty() {
        let message = format!("none of {} conversations is long enough", records.len());
        return Err(Failure::new(message, "lower --window or --min-ratio"));
    }
    report_omissions(&terms, &records, &outcomes, reporter);
    if let Some(path) = &args.picture {
        output::write_file(path, scatter_plot::svg(&terms, &outcomes).as_bytes())?;
    }
    if args.json {
        return terminal::print_own_json(results_json::all(&terms, &outcomes));
    }
    let all = rows(&outcomes, |_| true);
    let mut page = match args.has_own_sessions() {
        true => tables::sessions(&terms, &records, &all),
        false => Text::default(),
    };
    page.push(tables::tables(&terms, &all));
    if args.by_source {
        let mut sources: Vec<&str> = outcomes.iter().map(|outcome| outcome.source.as_str()).collect();
        sources.sort_unstable();
        sources.dedup();
        for source in sources {
            let rows = rows(&outcomes, |outcome| outcome.source == source);
            page.push(tables::source(source, &terms, &rows));
        }
    }
    if args.receipts {
        page.push(tables::receipts(&terms, &outcomes));
    }
    terminal::print_page(page)
}

/// Refuses a plot file that is not named as SVG.
fn check_picture(args: &ReplayArgs) -> Result<()> {
    let Some(path) = &args.picture else { return Ok(()) };
    match path.extension().filter(|ending| !ending.eq_ignore_ascii_case("svg")) {
        None => Ok(()),
        Some(_) => {
            let named = path.with_extension("svg");
            let message = format!("the plot is an SVG file, but is to be named {}", path.display());
            Err(Failure::new(message, format!("name it {}", named.display())))
        }
    }
}

/// Reports what the tables do not show: windows without long enough conversations, and assumed prices.
fn report_omissions(
    terms: &ReplayOptions,
    records: &[Record],
    outcomes: &[ReplayOutcome],
    reporter: Reporter,
) {
    let is_missing = |window: &&u64| !outcomes.iter().any(|outcome| outcome.window == **window);
    for window in terms.windows.iter().filter(is_missing) {
        let window = thousands(*window);
        reporter.note(&format!("no conversation is long enough at {window}"));
    }
    let has_price =
        |record: &&Record| record.model.as_deref().is_some_and(|model| terms.prices.find(model).is_some());
    let n_assumed = records.len() - records.iter().filter(has_price).count();
    if terms.price.is_none() && n_assumed > 0 {
        let n_assumed = terminal::count(n_assumed, "conversation");
        reporter.note(&format!(
            "{n_assumed} without a known price, charged as `{DEFAULT_PRICE}`; --prices selects another"
        ));
    }
}

/// The terms of the replay, from the flags and the settings.
fn replay_terms(args: &ReplayArgs, options: &Options) -> Result<ReplayOptions> {
    let options = &Options {
        cadence: args.cadence.clone().or_else(|| options.cadence.clone()),
        quality: args.quality.clone().or_else(|| options.quality.clone()),
        ..options.clone()
    };
    let mut windows: Vec<u64> = args.window.iter().map(|window| window.0).collect();
    if windows.is_empty() {
        windows = if args.has_own_sessions() { SESSION_WINDOWS.to_vec() } else { DEFAULT_WINDOWS.to_vec() };
    }
    let prices = terms::prices(options);
    let price = match &args.prices {
        Some(name) => Some(prices::find(&prices, name)?.price.clone()),
        None => None,
    };
    let default_min_ratio = if args.has_own_sessions() { 0.0 } else { DEFAULT_MIN_RATIO };
    Ok(ReplayOptions {
        policies: policies(args, options)?,
        windows,
        reserve: options.reserve.map_or(0, |reserve| reserve.0),
        min_ratio: args.min_ratio.unwrap_or(default_min_ratio),
        prices,
        price,
        min_tokens: args.least.map_or(0, |least| least.0),
        has_receipts: args.receipts,
    })
}

fn policies(args: &ReplayArgs, options: &Options) -> Result<Vec<Policy>> {
    let mut names: Vec<&str> = args.policy.iter().map(String::as_str).collect();
    let is_path = |name: &&&str| !Policy::NAMES.contains(*name) && Path::new(name).exists();
    if let Some(path) = names.iter().find(is_path) {
        let message = format!("`{path}` is a file, not a policy: --policy takes all values that follow");
        return Err(Failure::new(message, format!("name it first: fanfold replay {path} --policy …")));
    }
    if names.contains(&"all") {
        for name in names.iter().filter(|name| **name != "all") {
            terms::policy(&Options { policy: Some((*name).to_owned()), ..options.clone() })?;
        }
        names = Policy::NAMES.to_vec();
    }
    if names.is_empty() {
        names.push(options.policy.as_deref().unwrap_or(Policy::NAMES[0]));
    }
    let policy = |name: &str| -> Result<Policy> {
        terms::policy(&Options { policy: Some(name.to_owned()), ..options.clone() })
    };
    names.into_iter().map(policy).collect()
}

fn n_bytes(record: &Record) -> usize {
    record.messages.iter().map(|message| message.get().len()).sum()
}

fn replay_all(
    records: &[Record],
    terms: &ReplayOptions,
    known: &CommonKnowledge,
    args: &ReplayArgs,
    reporter: Reporter,
) -> Result<Vec<ReplayOutcome>> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.jobs.unwrap_or(0))
        .build()
        .map_err(|error| Failure::new(format!("cannot start threads: {error}"), "try --jobs 1"))?;
    let n_all: usize = records.iter().map(n_bytes).sum();
    let progress = Progress::new("replaying", n_all as u64, reporter);
    let mut outcomes: Vec<ReplayOutcome> = pool.install(|| {
        let replay_one = |record: &Record| {
            let outcomes = replay(record, terms, known, o200k());
            progress.add(n_bytes(record) as u64);
            outcomes
        };
        records.par_iter().with_max_len(1).flat_map_iter(replay_one).collect()
    });
    drop(progress);
    outcomes.sort_by(|a, b| (a.window, a.policy, &a.id).cmp(&(b.window, b.policy, &b.id)));
    Ok(outcomes)
}
