//! Chores of this repository, run as `cargo xtask <chore>`.

mod faults; // plants faults and sees whether a property fails

use anyhow::bail;

const USAGE: &str = "\
usage: cargo xtask <chore>

  faults [--write] [PART]   plant faults one by one, those whose name has PART in it, and tell which test fails;
                            --write puts the table into docs/faults.md";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((chore, rest)) if chore == "faults" => faults::run(rest),
        Some((chore, _)) => bail!("there is no chore `{chore}`\n\nhint: {USAGE}"),
        None => bail!("no chore was named\n\nhint: {USAGE}"),
    }
}
