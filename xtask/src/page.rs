//! Inserts generated tables and sections into hand-written pages.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

const END: &str = "<!-- end -->";

/// Replaces the table between its markers in a page.
pub(crate) fn write_table(file: &Path, begin: &str, table: &str) -> anyhow::Result<()> {
    let page = fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    fs::write(file, fill(&page, begin, table)?)?;
    Ok(())
}

/// A page with another text between its markers.
pub(crate) fn fill(page: &str, begin: &str, text: &str) -> anyhow::Result<String> {
    let (before, rest) = page.split_once(begin).with_context(|| format!("the page has no `{begin}`"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("the page has no `{END}`"))?;
    Ok(format!("{before}{begin}\n\n{text}\n{END}{after}"))
}

/// Prints a text on stdout.
#[allow(clippy::print_stdout, reason = "the table is the data")]
pub(crate) fn print(table: &str) {
    println!("{table}");
}
