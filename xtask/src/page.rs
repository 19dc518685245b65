//! Inserts generated tables into hand-written pages.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

const END: &str = "<!-- end -->";

/// Replaces the table between its markers in a page.
pub(crate) fn write_table(file: &Path, begin: &str, table: &str) -> anyhow::Result<()> {
    let page = fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let (before, rest) = page.split_once(begin).with_context(|| format!("the page has no `{begin}`"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("the page has no `{END}`"))?;
    fs::write(file, format!("{before}{begin}\n\n{table}\n{END}{after}"))?;
    Ok(())
}

/// Prints a text on stdout.
#[allow(clippy::print_stdout, reason = "the table is the data")]
pub(crate) fn print(table: &str) {
    println!("{table}");
}
