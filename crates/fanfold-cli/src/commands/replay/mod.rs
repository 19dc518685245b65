//! `fanfold replay`: recorded conversations through policies.

mod gather; // finds and reads the conversations
mod paper; //  the tables
mod data; //   the figures as JSON

use fanfold_core::Policy;
use fanfold_replay::{Outcome, Record, Terms, replay, rows};
use fanfold_tokens::o200k;
use rayon::prelude::*;

use super::Say;
use crate::choose;
use crate::failure::Failure;
use crate::flags::ReplayArgs;
use crate::settings::Options;
use crate::terminal;

/// The window when none is named, in tokens.
const USUAL_WINDOW: u64 = 16_000;

pub(crate) fn run(args: &ReplayArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    let terms = terms(args, options)?;
    let gathered = gather::records(args, say)?;
    let mut records = gathered.records;
    // The longest go first, so that no core is left with one at the end.
    records
        .sort_by_cached_key(|record| std::cmp::Reverse(record.tokens.unwrap_or_else(|| n_bytes(record) / 4)));
    let outcomes = replay_all(&records, &terms, &gathered.known, args.jobs)?;
    if args.json {
        return terminal::data(&data::all(&terms, &outcomes));
    }
    let mut page = paper::table(&terms, &rows(&outcomes, |_| true));
    if args.by_source {
        let mut sources: Vec<&str> = outcomes.iter().map(|outcome| outcome.source.as_str()).collect();
        sources.sort_unstable();
        sources.dedup();
        for source in sources {
            let rows = rows(&outcomes, |outcome| outcome.source == source);
            page.push_str(&format!("\n{source}\n{}", paper::table(&terms, &rows)));
        }
    }
    terminal::page(&page)
}

fn terms(args: &ReplayArgs, options: &Options) -> anyhow::Result<Terms> {
    let mut names: Vec<&str> = args.policy.iter().map(String::as_str).collect();
    if names.contains(&"all") {
        names = Policy::NAMES.to_vec();
    }
    if names.is_empty() {
        names.push(options.policy.as_deref().unwrap_or(Policy::NAMES[0]));
    }
    let policy = |name: &str| choose::policy(&Options { policy: Some(name.to_owned()), ..options.clone() });
    let windows: Vec<u64> = args.window.iter().map(|window| window.0).collect();
    Ok(Terms {
        policies: names.into_iter().map(policy).collect::<Result<_, _>>()?,
        windows: if windows.is_empty() { vec![USUAL_WINDOW] } else { windows },
        reserve: options.reserve.map_or(0, |reserve| reserve.0),
        min_ratio: args.min_ratio,
    })
}

fn n_bytes(record: &Record) -> u64 {
    record.messages.iter().map(|message| message.get().len() as u64).sum()
}

fn replay_all(
    records: &[Record],
    terms: &Terms,
    known: &fanfold_replay::Known,
    jobs: Option<usize>,
) -> anyhow::Result<Vec<Outcome>> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs.unwrap_or(0))
        .build()
        .map_err(|error| Failure::new(format!("no threads could be started: {error}"), "try --jobs 1"))?;
    let mut outcomes: Vec<Outcome> = pool.install(|| {
        let each = records.par_iter().with_max_len(1);
        each.flat_map_iter(|record| replay(record, terms, known, o200k())).collect()
    });
    outcomes.sort_by(|a, b| (a.window, a.policy, &a.id).cmp(&(b.window, b.policy, &b.id)));
    Ok(outcomes)
}
