//! The guide's pages on passes and condensers, made of the headers of their files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::condensers;

const PASSES: &str = "docs/guide/passes.md";
const CONDENSERS: &str = "docs/guide/condensers";

/// Writes the pages.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = crate::tidy::root();
    for (name, page) in pages(&root)? {
        fs::write(root.join(&name), page).with_context(|| name)?;
    }
    Ok(())
}

/// The pages as they should be, by their names.
pub(crate) fn pages(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut pages = vec![(PASSES.to_owned(), passes(root)?)];
    pages.extend(condenser_pages(root)?);
    Ok(pages)
}

fn passes(root: &Path) -> anyhow::Result<String> {
    let folder = root.join("crates/fanfold-core/src");
    let list = fs::read_to_string(folder.join("presets/mod.rs"))?;
    let mut page = String::from(
        "# The passes\n\nEach pass is one way to make a conversation shorter. They run in the order of their loss; which of \
         them run at all is the policy's word. The examples are run as tests.\n\n\
         (This page is made from the headers in `crates/fanfold-core/src/fold/passes/` and `presets/` by `cargo xtask guide`.)\n",
    );
    let start = list.find("pub const ALL_PASSES").context("presets/mod.rs has no list of passes")?;
    let end = start + list[start..].find("];").context("the list has no end")?;
    for line in list[start..end].lines().filter(|line| line.starts_with("    ")) {
        let name = line.trim().split(',').next().unwrap_or_default().to_lowercase();
        let file = file_with(&folder, &format!("PASS: Pass = Pass {{ name: \"{name}\""))?;
        page.push_str(&format!("\n## `{name}`\n\n{}\n", header(&file)?));
    }
    Ok(page)
}

/// A page for each condenser whose example is run.
fn condenser_pages(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let folder = root.join("crates/fanfold-core/src/text/condense");
    let list = fs::read_to_string(folder.join("examples.rs"))?;
    let table = fs::read_to_string(root.join(condensers::TABLE)).context(condensers::TABLE)?;
    let mut pages = Vec::new();
    for line in list.lines() {
        let mut strings = line.trim().split('"').skip(1).step_by(2);
        let Some((name, file)) = strings.next().zip(strings.next()).filter(|_| line.contains("include_str!"))
        else {
            continue;
        };
        let page = format!(
            "# Condensing: `{name}`\n\n{}\n\n{TESTED}\n\n{}\n\n\
             (This page is made from the header of `crates/fanfold-core/src/text/condense/{file}` by `cargo xtask guide`; \
             the example is run as a test. [All condensers](README.md).)\n",
            header(&folder.join(file))?,
            measured(&table, name),
        );
        pages.push((format!("{CONDENSERS}/{name}.md"), page));
    }
    Ok(pages)
}

const TESTED: &str = "**Tested** on generated texts and on every result of the recorded conversations: the errors, \
paths and ids of the original are in the condensed text, or behind the handle in it, which recalls the original byte for \
byte; the text is never longer than the original; the same text gives the same bytes; a line of a megabyte takes linear time.";

/// The measured figures of a condenser: its row of the table.
fn measured(table: &str, name: &str) -> String {
    let page = format!("]({name}.md)");
    let head = table.lines().skip_while(|line| !line.starts_with("| what it is")).take(2);
    match table.lines().find(|line| line.starts_with("| [") && line.contains(&page)) {
        Some(row) => {
            let head: Vec<&str> = head.collect();
            format!(
                "**On recorded conversations** ([how it was measured](README.md#figures)):\n\n{}\n{row}",
                head.join("\n")
            )
        }
        None => {
            "It has no figures of its own, because its results are counted under the kind of the text inside."
                .to_owned()
        }
    }
}

/// The one file below a folder that contains a text.
fn file_with(folder: &Path, text: &str) -> anyhow::Result<PathBuf> {
    let files = crate::tidy::sources(folder)?;
    let found = files.into_iter().find(|file| fs::read_to_string(file).is_ok_and(|read| read.contains(text)));
    found.with_context(|| format!("no file has `{text}`"))
}

/// The header of a file as text.
fn header(file: &Path) -> anyhow::Result<String> {
    let source = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let header = source.lines().take_while(|line| line.starts_with("//!"));
    let text: Vec<_> = header.map(|line| line.strip_prefix("//! ").unwrap_or("")).collect();
    Ok(text.join("\n").trim_end().to_owned())
}
