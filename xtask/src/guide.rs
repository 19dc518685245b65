//! The guide's pages on passes and condensers, made of the headers of their files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fanfold_core::{ALL_PASSES, ContentKind};

use crate::page;

const PASSES: &str = "docs/guide/passes.md";
pub(crate) const CONDENSERS: &str = "docs/guide/condensers.md";
const BEGIN: &str = "<!-- begin: cargo xtask guide -->";

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
    Ok(vec![(PASSES.to_owned(), passes(root)?), (CONDENSERS.to_owned(), condensers(root)?)])
}

fn passes(root: &Path) -> anyhow::Result<String> {
    let folder = root.join("crates/fanfold-core/src");
    let mut page = String::from(
        "# The passes\n\nEach pass is one way to make a conversation shorter. They run in the order of their loss; which of \
         them run at all is the policy's word. The examples are run as tests.\n\n\
         (This page is made from the headers in `crates/fanfold-core/src/fold/passes/` and `presets/` by `cargo xtask guide`.)\n",
    );
    for pass in ALL_PASSES {
        let file = file_with(&folder, &format!("PASS: Pass = Pass {{ name: \"{}\"", pass.name))?;
        page.push_str(&format!("\n## `{}`\n\n{}\n", pass.name, header(&file)?));
    }
    Ok(page)
}

/// The page on condensers with its index and a section per condenser.
fn condensers(root: &Path) -> anyhow::Result<String> {
    let folder = root.join("crates/fanfold-core/src/text/condense");
    let mut files = Vec::new();
    for kind in ContentKind::ALL {
        let file = file_with(&folder, &format!("kind: ContentKind::{kind:?},\n    detects"))?;
        files.push((kind.name(), file));
    }
    for (name, file) in
        [("written", "written.rs"), ("escaped", "documents/escaped.rs"), ("envelope", "envelope.rs")]
    {
        files.push((name.to_owned(), folder.join(file)));
    }
    let index: Vec<String> = files.iter().map(|(name, _)| format!("[{name}](#{name})")).collect();
    let mut text = format!("{}\n", index.join(", "));
    for (name, file) in &files {
        text.push_str(&format!("\n### `{name}`\n\n{}\n", header(file)?));
    }
    page::fill(&fs::read_to_string(root.join(CONDENSERS)).context(CONDENSERS)?, BEGIN, &text)
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
