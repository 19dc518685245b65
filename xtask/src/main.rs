//! Chores of this repository, run as `cargo xtask <chore>`.

mod tidy; //   checks that a compiler does not make
mod fuzz; //   the fuzzer's manifest
mod guide; //  the guide's pages on passes and condensers
mod compare; // views and receipts of two builds
mod bench; //  fanfold and Hermes on the same conversations
mod large; //  a file of 10 MB
mod store; //  their stores
mod proxy; //  the proxy beside a direct call, and beside others' proxies
mod summary; // what a summariser is shown, beside Hermes'
mod condensers; // what condensing saves and keeps
mod weights; // makes the scorer's weights again
mod replayed; // runs of `fanfold replay`
mod along; //  whether one measure moves along with another
mod yardstick; // and how long they take, beside the yardstick
mod tables; // what they hold and cost, in docs/benchmarks.md
mod ablation; // what each mechanism adds
mod page; //   tables in pages that people write

use anyhow::bail;

const USAGE: &str = "\
usage: cargo xtask <chore>

  tidy                      check crate edges, purity, passes and docs (a test does this, too)
  guide                     write the guide's pages on passes and condensers from their headers
  compare BEFORE AFTER      compare views and receipts of two programs on the recorded conversations (needs ../shared)
  bench [--write]           time fanfold beside Hermes in one run (needs python3 and ../shared);
                            --write puts the table into docs/benchmarks.md
  bench file [--write]      time how long `fanfold fold` takes to begin its answer to a file of 10 MB (needs python3 and ../shared)
  bench store [--python FILE] [--million] [--write]
                            time a store of ours beside Hermes' own; --million: ours with a million messages
  bench proxy [--short] [--alone] [--write]
                            time what the proxy adds to a call, beside a direct one and beside LiteLLM's and headroom's
                            proxies (needs pip; --alone: without them); many streams, memory; --short: a try of it all
  bench summary [--write]   what a summariser is shown of errors, paths and values, beside Hermes' own prompt
  bench replay [--write]    time `fanfold replay` beside the yardstick in ../shared (needs python3 and pip)
  tables [--write]          replay recorded conversations and tell what views hold and cost (needs ../shared);
                            --write puts the tables into docs/benchmarks.md
  condensers [--write]      measure what condensing saves and keeps (needs ../shared/trajectories);
                            --write puts the table into the guide
  ablation [--write]        replay without one mechanism of the policy at a time (needs ../shared);
                            --write makes docs/ablation.md of it
  weights [--write]         fit the scorer's weights to recorded conversations (needs ../shared);
                            --write puts them into crates/fanfold-core/src/value/weights.rs";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((chore, _)) if chore == "tidy" => tidy::run(),
        Some((chore, _)) if chore == "guide" => guide::run(),
        Some((chore, rest)) if chore == "compare" => compare::run(rest),
        Some((chore, rest)) if chore == "bench" => bench::run(rest),
        Some((chore, rest)) if chore == "tables" => tables::run(rest),
        Some((chore, rest)) if chore == "ablation" => ablation::run(rest),
        Some((chore, rest)) if chore == "weights" => weights::run(rest),
        Some((chore, rest)) if chore == "condensers" => condensers::run(rest),
        Some((chore, _)) => bail!("there is no chore `{chore}`\n\nhint: {USAGE}"),
        None => bail!("no chore was named\n\nhint: {USAGE}"),
    }
}
