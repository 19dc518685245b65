//! The guide's page on passes, made of the headers of their files.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// Where the page is.
pub(crate) const PAGE: &str = "docs/guide/passes.md";

/// Writes the page.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = crate::tidy::root();
    fs::write(root.join(PAGE), page(&root)?).with_context(|| PAGE.to_owned())
}

/// The page as it should be.
pub(crate) fn page(root: &Path) -> anyhow::Result<String> {
    let folder = root.join("crates/fanfold-core/src/passes");
    let list = fs::read_to_string(folder.join("mod.rs"))?;
    let mut page = String::from(
        "# The passes\n\nEach pass is one way to make a conversation shorter. They run in the order of their loss; which of \
         them run at all is the policy's word. The examples are run as tests.\n\n\
         (This page is made from the headers in `crates/fanfold-core/src/passes/` by `cargo xtask guide`.)\n",
    );
    let start = list.find("pub const ALL").context("passes/mod.rs has no list")?;
    let end = start + list[start..].find("];").context("the list has no end")?;
    for line in list[start..end].lines().filter(|line| line.starts_with("    ")) {
        let name = line.trim().split(',').next().unwrap_or_default().to_lowercase();
        let source = fs::read_to_string(folder.join(format!("{name}.rs"))).with_context(|| name.clone())?;
        let header = source.lines().take_while(|line| line.starts_with("//!"));
        let text: Vec<_> = header.map(|line| line.strip_prefix("//! ").unwrap_or("")).collect();
        page.push_str(&format!("\n## `{name}`\n\n{}\n", text.join("\n").trim_end()));
    }
    Ok(page)
}
