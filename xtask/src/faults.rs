//! Plants faults, one by one, in a copy of the code, and sees whether a property fails: a property that nothing can break
//! proves nothing.
//!
//! Each fault is a small edit that a tired person could make. One that no test notices means that a property is missing.

mod folding; //   faults in what is folded and sent
mod summaries; // faults in summaries
mod serving; //   faults in the proxy as clients and providers meet it
mod fronts; //    faults in the proxy, in what comes back, in the tools, in memory and redaction
mod sessions; //  faults in what is kept, brought here and found again
mod keeping; //   faults in what is written, by whomever, and in what is found of it
mod watching; //  faults in the proxy as people watch it, and in what each API would take
mod asking; //    faults in what models and memory are asked, and in what they answer

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use crate::page;

/// One edit that breaks one promise.
struct Fault {
    /// What the edit does.
    name: &'static str,
    /// What it breaks: a line of *What always holds*, by its number, and the file of its tests.
    breaks: &'static str,
    file: &'static str,
    find: &'static str,
    replace: &'static str,
}

/// Whose tests notice what is planted in files that begin like this; all others are the properties'.
const PACKAGES: [(&str, &str); 15] = [
    // A store with a broken session in it is made by the program.
    ("crates/fanfold-store/src/readable.rs", "fanfold-cli"),
    // What one file of the core does is tried beside it.
    ("crates/fanfold-core/src/summary/quotes.rs", "fanfold-core"),
    ("crates/fanfold-core/src/budget.rs", "fanfold-core"),
    ("crates/fanfold-engine/", "fanfold-engine"),
    ("crates/fanfold-store/", "fanfold-store"),
    ("crates/fanfold-cli/", "fanfold-cli"),
    // What other agents wrote is tried as people bring it here.
    ("crates/fanfold-replay/src/sources/", "fanfold-cli"),
    ("crates/fanfold-wire/src/reply/", "fanfold-wire"),
    ("crates/fanfold-wire/src/dress.rs", "fanfold-wire"),
    ("crates/fanfold-proxy/", "fanfold-proxy"),
    // The tools are tried as clients use them: by the program.
    ("crates/fanfold-mcp/", "fanfold-cli"),
    ("crates/fanfold-cli/", "fanfold-cli"),
    ("crates/fanfold-redact/", "fanfold-redact"),
    ("crates/fanfold-memory/", "fanfold-memory"),
    ("crates/fanfold-provider/", "fanfold-provider"),
];

impl Fault {
    /// Where it should be noticed: a module of the tests that go with its file, or crate, program and module of others.
    fn place(&self) -> Place {
        let place = self.breaks.split(' ').next_back().unwrap_or_default();
        if let [package, program, module] = place.split('/').collect::<Vec<_>>()[..] {
            return Place { package: format!("fanfold-{package}"), program: Some(program), module };
        }
        let found = PACKAGES.iter().find(|(begin, _)| self.file.starts_with(begin));
        let package = found.map_or("fanfold-testkit", |(_, package)| package).to_owned();
        Place { package, program: None, module: place }
    }
}

/// Tests of a crate.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    package: String,
    /// The program they are in; without one, the quick tests that the crate has.
    program: Option<&'static str>,
    /// Their module; all, if it has no name.
    module: &'static str,
}

/// All of them.
fn faults() -> impl Iterator<Item = &'static Fault> {
    let folding = folding::FAULTS.iter().chain(summaries::FAULTS);
    let fronts = fronts::FAULTS.iter().chain(serving::FAULTS).chain(watching::FAULTS);
    let kept = sessions::FAULTS.iter().chain(keeping::FAULTS);
    folding.chain(fronts).chain(kept).chain(asking::FAULTS)
}

const TABLE: &str = "docs/faults.md";
const HEAD: &str = "| fault | breaks | caught by |\n| --- | --- | --- |\n";
const BEGIN: &str = "<!-- begin: cargo xtask faults --write -->";
/// Tests that take longer hang.
const LONGEST: Duration = Duration::from_secs(300);

/// Plants the faults and prints the table.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let is_written = arguments.iter().any(|argument| argument == "--write");
    let parts: Vec<_> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let is_wanted = |fault: &&Fault| parts.is_empty() || parts.iter().any(|part| fault.name.contains(*part));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace has a root")?;
    // Several people on one machine each have a place of their own.
    let place = std::env::var_os("FANFOLD_FAULTS_AT").map(PathBuf::from);
    let copy = place.unwrap_or_else(|| std::env::temp_dir().join("fanfold-faults"));
    let tree = copy.join("tree");
    copy_tree(root, &tree)?;
    let target = copy.join("target");
    let mut known = BTreeSet::new();
    let places: BTreeSet<Place> = faults().filter(is_wanted).map(Fault::place).collect();
    for place in places {
        match test(&tree, &target, &place)? {
            Outcome::Failed(tests) => known.extend(tests),
            Outcome::Passed => {}
            Outcome::Broken(message) => bail!("the code as it is does not build:\n{message}"),
            Outcome::Hung => {
                bail!("the tests of {}, {}, hang without any fault", place.package, place.module)
            }
        }
    }
    let mut rows = Vec::new();
    for fault in faults().filter(is_wanted) {
        let row = plant(fault, &tree, &target, &known)?;
        eprintln!("{row}");
        rows.push(row);
    }
    let n_missed = rows.iter().filter(|row| row.contains("NOT CAUGHT")).count();
    let mut table = String::from(HEAD);
    rows.iter().for_each(|row| table.push_str(&format!("{row}\n")));
    if !known.is_empty() {
        let names: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
        table.push_str(&format!("\nFailing without any fault, and left out above: {}.\n", names.join(", ")));
    }
    if is_written {
        let page = root.join(TABLE);
        let written =
            if parts.is_empty() { table.clone() } else { with_rows(&fs::read_to_string(&page)?, &rows) };
        page::write_table(&page, BEGIN, &written)?;
    }
    page::say(&table);
    ensure!(
        n_missed == 0,
        "{n_missed} faults were not caught\n\nhint: add the property that each of them breaks"
    );
    Ok(())
}

/// The table of a page with some of its rows made anew. What was never planted says so.
fn with_rows(page: &str, rows: &[String]) -> String {
    let mut table = String::from(HEAD);
    for fault in faults() {
        let begin = format!("| {} |", fault.name);
        let found = rows.iter().map(String::as_str).chain(page.lines()).find(|row| row.starts_with(&begin));
        let row =
            found.map_or_else(|| format!("{begin} {} | not planted yet |", fault.breaks), str::to_owned);
        table.push_str(&row);
        table.push('\n');
    }
    table
}

/// Makes the edit, runs the tests, and takes it back.
fn plant(fault: &Fault, tree: &Path, target: &Path, known: &BTreeSet<String>) -> anyhow::Result<String> {
    let file = tree.join(fault.file);
    let sound = fs::read_to_string(&file).with_context(|| format!("{} can't be read", fault.file))?;
    let n_found = sound.matches(fault.find).count();
    let Fault { name, breaks, .. } = fault;
    if n_found != 1 {
        return Ok(format!(
            "| {name} | {breaks} | NOT CAUGHT: its text is {n_found} times in {} |",
            fault.file
        ));
    }
    fs::write(&file, sound.replace(fault.find, fault.replace))?;
    // The promise's own tests first; all others only if those notice nothing.
    let place = fault.place();
    let mut outcome = test(tree, target, &place);
    let is_noticed = match &outcome {
        Ok(Outcome::Failed(tests)) => tests.difference(known).next().is_some(),
        Ok(Outcome::Passed) => false,
        Ok(Outcome::Hung | Outcome::Broken(_)) | Err(_) => true,
    };
    if !is_noticed {
        outcome = test(tree, target, &Place { module: "", ..place });
    }
    fs::write(&file, sound)?;
    let caught = match outcome? {
        Outcome::Failed(tests) => {
            let fresh: Vec<_> = tests.difference(known).map(|test| format!("`{test}`")).collect();
            match fresh.len() {
                0 => "NOT CAUGHT".to_owned(),
                1..=8 => fresh.join(", "),
                n => format!("{} and {} more", fresh[..2].join(", "), n - 2),
            }
        }
        Outcome::Passed => "NOT CAUGHT".to_owned(),
        Outcome::Hung => "a test that does not end".to_owned(),
        Outcome::Broken(message) => {
            eprintln!("{message}");
            "NOT CAUGHT: it does not build".to_owned()
        }
    };
    Ok(format!("| {name} | {breaks} | {caught} |"))
}

enum Outcome {
    Passed,
    Failed(BTreeSet<String>),
    Broken(String),
    Hung,
}

/// Runs tests, the quick form of them.
fn test(tree: &Path, target: &Path, place: &Place) -> anyhow::Result<Outcome> {
    let Place { package, program, module } = place;
    let log = target.with_file_name("log");
    let programs = match program {
        Some("lib") => vec!["--lib"],
        Some(program) => vec!["--test", program],
        None => programs(&tree.join("crates").join(package), module),
    };
    let filter = if module.is_empty() { String::new() } else { format!("{module}::") };
    let mut cargo = Command::new("cargo")
        .args(["test", "--offline", "--no-fail-fast", "--package", package])
        .args(programs)
        .args(["--", &filter])
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", target)
        .env("FANFOLD_FAST", "1")
        .env("RUST_BACKTRACE", "0")
        .stdout(fs::File::create(&log)?)
        .stderr(Stdio::null())
        .spawn()
        .context("cargo can't be run")?;
    let mut began = None;
    let status = loop {
        if let Some(status) = cargo.try_wait()? {
            break status;
        }
        if began.is_none() && is_testing(&log) {
            began = Some(Instant::now());
        }
        if began.is_some_and(|began| began.elapsed() > LONGEST) {
            cargo.kill()?;
            cargo.wait()?;
            return Ok(Outcome::Hung);
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    if status.success() {
        return Ok(Outcome::Passed);
    }
    let said = fs::read_to_string(&log)?;
    let failed = said.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    let failed: BTreeSet<String> = failed.map(str::to_owned).collect();
    if failed.is_empty() && !is_testing(&log) {
        let check = Command::new("cargo")
            .args(["check", "--offline", "--quiet", "--package", package, "--tests"])
            .current_dir(tree)
            .env("CARGO_TARGET_DIR", target)
            .output()?;
        return Ok(Outcome::Broken(String::from_utf8_lossy(&check.stderr).into_owned()));
    }
    Ok(Outcome::Failed(failed))
}

/// The quick tests that a crate has: beside its files, and of what it promises. Those of a module are in one of them.
fn programs(folder: &Path, module: &str) -> Vec<&'static str> {
    let (has_lib, it) = (folder.join("src/lib.rs").exists(), folder.join("tests/it"));
    let first = module.split("::").next().unwrap_or_default();
    let is_promised = it.join(first).with_extension("rs").exists() || it.join(first).join("mod.rs").exists();
    match (has_lib, it.exists()) {
        (_, true) if is_promised => vec!["--test", "it"],
        (true, true) => vec!["--lib", "--test", "it"],
        (true, false) => vec!["--lib"],
        (false, _) => vec!["--test", "it"],
    }
}

/// Whether the tests have begun, and it is not the building that takes so long.
fn is_testing(log: &Path) -> bool {
    fs::read_to_string(log).is_ok_and(|said| said.contains("\nrunning "))
}

/// Copies what a build needs: no targets, no history. What is the same already is left alone, so that it is not built anew.
fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for old in fs::read_dir(to)? {
        let old = old?;
        if !from.join(old.file_name()).exists() {
            if old.file_type()?.is_dir() {
                fs::remove_dir_all(old.path())?;
            } else {
                fs::remove_file(old.path())?;
            }
        }
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_left_out = [".git", "target", "docs", "node_modules"].iter().any(|left_out| name == *left_out);
        if is_left_out {
            continue;
        }
        let (path, copy): (PathBuf, PathBuf) = (entry.path(), to.join(&name));
        if entry.file_type()?.is_dir() {
            copy_tree(&path, &copy)?;
        } else if fs::read(&copy).ok() != Some(fs::read(&path)?) {
            fs::copy(&path, &copy).with_context(|| format!("{} can't be copied", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fault that can't be planted catches nothing; planting them all takes too long to notice that.
    #[test]
    fn each_fault_finds_its_text() {
        let root = crate::tidy::root();
        for Fault { name, file, find, .. } in faults() {
            let text = fs::read_to_string(root.join(file)).unwrap_or_default();
            assert_eq!(text.matches(find).count(), 1, "{name}: in {file}");
        }
    }
}
