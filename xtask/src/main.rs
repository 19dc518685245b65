//! Development commands of this repository, run as `cargo xtask COMMAND`.

mod tidy; //       checks that the compiler does not make
mod fuzz; //       the manifest of the fuzz targets
mod guide; //      the guide's pages on passes and condensers
mod compare; //    views and receipts of two builds
mod bench; //      benchmarks against Hermes, other proxies and the yardstick
mod condensers; // savings of each condenser
mod recordings; // runs of `fanfold replay` over recorded conversations
mod tables; //     tables of replays in docs/benchmarks.md
mod page; //       generated tables in hand-written pages
mod attack; //     the hostile trial

use anyhow::bail;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  tidy                      check crate edges, purity, passes and generated pages (also runs as a test)
  guide                     write the guide's pages on passes and condensers from their headers
  compare BEFORE AFTER      compare views and receipts of two programs on recorded conversations (needs ../shared)
  bench [--write]           time cold folds and appended steps next to Hermes (needs python3 and ../shared);
                            --write updates docs/benchmarks.md, here and below
  bench file [--write]      time to the first byte of `fanfold fold` for a file of 10 MB (needs python3 and ../shared)
  bench store [--python FILE] [--million] [--write]
                            time the store next to that of Hermes; --million: fanfold with a million messages
  bench proxy [--short] [--alone] [--write]
                            latency, streams and memory of the proxy, LiteLLM and headroom (needs pip);
                            --alone: fanfold only; --short: few requests
  bench summary [--write]   facts contained in summary prompts, next to those of Hermes
  bench replay [--write]    time `fanfold replay` next to the yardstick in ../shared (needs python3 and pip)
  tables [--write]          replay recorded conversations and update the tables of docs/benchmarks.md (needs ../shared)
  condensers [--write]      measure the savings of condensers and update the guide (needs ../shared)
  attack [--short] [--seed N] [--program FILE] [--write] [NAME…]
                            attack the program: kills, full disk, damage, load, faults, browser, redaction,
                            mutations, terminal; --short: a debug build, about a minute";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((command, _)) if command == "tidy" => tidy::run(),
        Some((command, _)) if command == "guide" => guide::run(),
        Some((command, rest)) if command == "compare" => compare::run(rest),
        Some((command, rest)) if command == "bench" => bench::run(rest),
        Some((command, rest)) if command == "tables" => tables::run(rest),
        Some((command, rest)) if command == "condensers" => condensers::run(rest),
        Some((command, rest)) if command == "attack" => attack::run(rest),
        Some((command, _)) => bail!("no command `{command}`\n\nhint: {USAGE}"),
        None => bail!("missing command\n\nhint: {USAGE}"),
    }
}
