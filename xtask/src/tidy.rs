//! Checks that the compiler does not make: dependencies, purity, headers of passes, generated pages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};

use crate::{fuzz, guide};

/// Each crate with the workspace crates that it uses, as listed in docs/ARCHITECTURE.md.
const EDGES: &[(&str, &[&str])] = &[
    ("fanfold-core", &[]),
    ("fanfold-redact", &[]),
    ("fanfold-http", &[]),
    ("fanfold-memory", &["fanfold-redact"]),
    ("fanfold-wire", &["fanfold-core"]),
    ("fanfold-tokens", &["fanfold-core"]),
    ("fanfold-store", &[]),
    ("fanfold-provider", &["fanfold-redact", "fanfold-wire"]),
    (
        "fanfold-engine",
        &[
            "fanfold-core",
            "fanfold-redact",
            "fanfold-wire",
            "fanfold-tokens",
            "fanfold-store",
            "fanfold-provider",
        ],
    ),
    ("fanfold-replay", &["fanfold-core", "fanfold-wire", "fanfold-tokens"]),
    (
        "fanfold-proxy",
        &[
            "fanfold-core",
            "fanfold-redact",
            "fanfold-wire",
            "fanfold-store",
            "fanfold-provider",
            "fanfold-memory",
            "fanfold-engine",
            "fanfold-http",
            "fanfold-replay",
        ],
    ),
    ("fanfold", &["fanfold-core", "fanfold-tokens", "fanfold-store", "fanfold-engine"]),
    ("fanfold-mcp", &["fanfold-core", "fanfold-store", "fanfold-engine", "fanfold-http"]),
    (
        "fanfold-cli",
        &[
            "fanfold-core",
            "fanfold-redact",
            "fanfold-wire",
            "fanfold-tokens",
            "fanfold-store",
            "fanfold-provider",
            "fanfold-memory",
            "fanfold-engine",
            "fanfold-replay",
            "fanfold-http",
            "fanfold-proxy",
            "fanfold-mcp",
        ],
    ),
    ("fanfold-testkit", &["fanfold-core"]),
];

/// Crates that are functions from values to values.
const PURE: &[&str] = &["fanfold-core", "fanfold-redact", "fanfold-wire", "fanfold-tokens", "fanfold-replay"];

/// Names that a pure crate must not use.
const IMPURE: &[&str] =
    &["std::fs", "std::net", "std::env", "std::process", "std::thread", "std::time", "async fn"];

/// Types with shared mutable state, which core, wire, redact and tokens must not use.
const LOCKS: &[&str] = &["Mutex", "RwLock", "AtomicBool", "AtomicU", "AtomicI", "AtomicPtr"];

/// The folders and top-level modules of crates. Each uses only those before it.
const LAYERS: &[(&str, &[&str])] = &[
    (
        "fanfold-core",
        &[
            "model", "notation", "text", "actions", "facts", "select", "record", "fold", "presets", "output",
            "session", "summary", "engine",
        ],
    ),
    ("fanfold-provider", &["error", "endpoint", "answer", "request", "client", "window"]),
    (
        "fanfold-engine",
        &[
            "clock",
            "lease",
            "log",
            "follow",
            "engine",
            "outage",
            "sessions",
            "recall",
            "request",
            "summary_jobs",
            "io",
        ],
    ),
];

/// The largest number of source files in a folder of a crate.
const MAX_FILES: usize = 14;

/// A check of the tree below a root.
type Check = fn(&Path) -> anyhow::Result<()>;

/// Runs every check.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = root();
    let checks: [(&str, Check); 11] = [
        ("crate edges", edges),
        ("pure crates", purity),
        ("locks", locks),
        ("layers of crates", layers),
        ("decisions by dialect", dialects),
        ("sizes of folders", folder_sizes),
        ("passes", passes),
        ("generated docs", generated),
        ("the test command", test_command),
        ("the fuzzer's manifest", fuzz::check),
        ("stray words", stray_words),
    ];
    for (name, check) in checks {
        check(&root).with_context(|| format!("tidy: {name}"))?;
    }
    Ok(())
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace").to_owned()
}

fn edges(root: &Path) -> anyhow::Result<()> {
    let allowed: BTreeMap<_, _> = EDGES.iter().copied().collect();
    for folder in fs::read_dir(root.join("crates"))? {
        let folder = folder?.path();
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let Some(allowed) = allowed.get(name.as_str()) else { bail!("{name} is not in the list of crates") };
        let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
        // Tests may use the testkit; what ships may not.
        let shipped = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        let used = shipped.lines().filter(|line| line.starts_with("fanfold-"));
        let used: Vec<&str> = used.filter_map(|line| line.split(['.', ' ', '=']).next()).collect();
        for used in &used {
            ensure!(allowed.contains(used), "{name} may not use {used}");
        }
        let unused = allowed.iter().find(|allowed| !used.contains(allowed));
        if let Some(unused) = unused {
            bail!("{name} does not use {unused}\n\nhint: remove it from EDGES and from docs/ARCHITECTURE.md");
        }
    }
    Ok(())
}

fn purity(root: &Path) -> anyhow::Result<()> {
    for name in PURE {
        for file in sources(&root.join("crates").join(name).join("src"))? {
            if is_test(&file) {
                continue;
            }
            let text = fs::read_to_string(&file)?;
            let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
            for word in IMPURE {
                ensure!(!shipped.contains(word), "{} uses {word}, and {name} is pure", file.display());
            }
        }
    }
    Ok(())
}

fn locks(root: &Path) -> anyhow::Result<()> {
    for name in ["fanfold-core", "fanfold-wire", "fanfold-redact", "fanfold-tokens"] {
        for file in sources(&root.join("crates").join(name).join("src"))? {
            let text = fs::read_to_string(&file)?;
            for word in LOCKS {
                ensure!(!shipped(&text).contains(word), "{} uses {word}", file.display());
            }
        }
    }
    Ok(())
}

fn layers(root: &Path) -> anyhow::Result<()> {
    for (name, layers) in LAYERS {
        let src = root.join("crates").join(name).join("src");
        for file in sources(&src)? {
            let path = file.strip_prefix(&src)?.with_extension("");
            let layer = path.iter().next().and_then(|name| name.to_str()).unwrap_or_default();
            if layer == "lib" || is_test(&file) {
                continue;
            }
            let rank = |name: &str| layers.iter().position(|layer| *layer == name);
            let own =
                rank(layer).with_context(|| format!("{layer} is not in the list of layers of {name}"))?;
            let text = fs::read_to_string(&file)?;
            for used in paths(shipped(&text)) {
                // A path to a name at the root of the crate does not show its layer.
                ensure!(!used.is_empty(), "{} has a path without a module after `crate::`", file.display());
                let is_above = rank(used).is_some_and(|used| used > own);
                ensure!(!is_above, "{} uses {used}, which is above {layer}", file.display());
            }
        }
    }
    Ok(())
}

/// Returns whether a file is compiled for tests only.
fn is_test(file: &Path) -> bool {
    file.ends_with("tests.rs") || file.ends_with("examples.rs")
}

/// The first segments of the paths in a source that begin with `crate::`.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split("crate::").skip(1);
    after.filter_map(|rest| rest.split(|c: char| !c.is_ascii_lowercase() && c != '_').next())
}

/// A source without its unit tests.
fn shipped(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default()
}

/// Decisions that depend on the dialect belong to fanfold-wire, so that a dialect is one folder and one line there.
fn dialects(root: &Path) -> anyhow::Result<()> {
    for (name, _) in EDGES.iter().filter(|(name, _)| !["fanfold-wire", "fanfold-testkit"].contains(name)) {
        for file in sources(&root.join("crates").join(name).join("src"))? {
            let is_test = file.file_stem().is_some_and(|stem| stem == "tests");
            let text = fs::read_to_string(&file)?;
            let used = if is_test { None } else { format_variant(shipped(&text)) };
            let Some(used) = used else { continue };
            bail!(
                "{} names Format::{used}\n\nhint: ask `Format` or `Provider` in fanfold-wire",
                file.display()
            );
        }
    }
    Ok(())
}

/// The first variant of `Format` that a source names.
fn format_variant(text: &str) -> Option<&str> {
    let is_part_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices("Format::").find_map(|(at, found)| {
        let is_other_type = text[..at].ends_with(is_part_of_name);
        let name = text[at + found.len()..].split(|c| !is_part_of_name(c)).next().unwrap_or_default();
        let is_variant = name.starts_with(|c: char| c.is_ascii_uppercase()) && name != "ALL";
        (is_variant && !is_other_type).then_some(name)
    })
}

fn folder_sizes(root: &Path) -> anyhow::Result<()> {
    let mut n_files: BTreeMap<String, usize> = BTreeMap::new();
    for file in sources(&root.join("crates"))? {
        let folder = file.strip_prefix(root)?.parent().unwrap_or(root).display().to_string();
        let is_source = folder.contains("/src");
        *n_files.entry(folder).or_default() += usize::from(is_source);
    }
    for (folder, n) in &n_files {
        ensure!(
            *n <= MAX_FILES,
            "{folder} has {n} source files\n\nhint: group them into folders of at most {MAX_FILES}"
        );
    }
    Ok(())
}

fn passes(root: &Path) -> anyhow::Result<()> {
    let folder = root.join("crates/fanfold-core/src");
    for file in [sources(&folder.join("fold/passes"))?, sources(&folder.join("presets"))?].concat() {
        let text = fs::read_to_string(&file)?;
        let is_list = file.ends_with("tests.rs") || !text.contains("PASS: Pass =");
        ensure!(text.starts_with("//! "), "{} has no header", file.display());
        ensure!(is_list || text.contains("//! ```text"), "{} has no example", file.display());
    }
    Ok(())
}

fn generated(root: &Path) -> anyhow::Result<()> {
    for (name, page) in guide::pages(root)? {
        let found = fs::read_to_string(root.join(&name)).unwrap_or_default();
        ensure!(found == page, "{name} is out of date\n\nhint: cargo xtask guide");
    }
    Ok(())
}

fn test_command(root: &Path) -> anyhow::Result<()> {
    let readme = fs::read_to_string(root.join("README.md"))?;
    let ci = fs::read_to_string(root.join(".ci/run"))?;
    let command = ci.lines().find(|line| line.starts_with("cargo test")).context(".ci/run has no tests")?;
    ensure!(readme.lines().any(|line| line.trim() == command), "README.md does not have `{command}`");
    Ok(())
}

fn stray_words(root: &Path) -> anyhow::Result<()> {
    let mut files = sources(&root.join("crates"))?;
    files.extend(sources(&root.join("xtask"))?);
    for file in files.iter().filter(|file| !file.ends_with("tidy.rs")) {
        let text = fs::read_to_string(file)?;
        for (i, line) in text.lines().enumerate() {
            // Condensers search for these words, so only comments count.
            let comment = line.trim_start().strip_prefix("//").unwrap_or_default();
            let is_stray = ["FIXME", "TODO"].iter().any(|word| comment.contains(word));
            let is_unfinished = ["todo!(", "unimplemented!("].iter().any(|word| line.contains(word));
            ensure!(!is_stray && !is_unfinished, "{}:{} is unfinished: {line}", file.display(), i + 1);
        }
    }
    Ok(())
}

/// Every Rust file below a folder, in order.
pub(crate) fn sources(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_is_tidy() {
        super::run().unwrap_or_else(|error| panic!("{error:#}"));
    }
}
