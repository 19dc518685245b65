//! Plants faults, one by one, in a copy of the code, and sees whether a property fails: a property that nothing can break
//! proves nothing.
//!
//! Each fault is a small edit that a tired person could make. One that no test notices means that a property is missing.

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

impl Fault {
    /// Whose tests notice it: what the engine does with its store has tests of its own.
    fn package(&self) -> &'static str {
        let is_engines = self.file.starts_with("crates/fanfold-engine/");
        if is_engines { "fanfold-engine" } else { "fanfold-testkit" }
    }
}

const TABLE: &str = "docs/faults.md";
const BEGIN: &str = "<!-- begin: cargo xtask faults --write -->";
/// A run that takes longer hangs.
const LONGEST: Duration = Duration::from_secs(400);

/// Plants the faults and prints the table.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let is_written = arguments.iter().any(|argument| argument == "--write");
    let parts: Vec<_> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let is_wanted = |fault: &&Fault| parts.is_empty() || parts.iter().any(|part| fault.name.contains(*part));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace has a root")?;
    let copy = std::env::temp_dir().join("fanfold-faults");
    let _ = fs::remove_dir_all(copy.join("tree"));
    let tree = copy.join("tree");
    copy_tree(root, &tree)?;
    let target = copy.join("target");
    let mut known = BTreeSet::new();
    let packages: BTreeSet<&str> = FAULTS.iter().filter(is_wanted).map(Fault::package).collect();
    for package in packages {
        match test(&tree, &target, package, "")? {
            Outcome::Failed(tests) => known.extend(tests),
            Outcome::Passed => {}
            Outcome::Broken(message) => bail!("the code as it is does not build:\n{message}"),
            Outcome::Hung => bail!("the tests of {package} hang without any fault"),
        }
    }
    let mut rows = Vec::new();
    for fault in FAULTS.iter().filter(is_wanted) {
        let row = plant(fault, &tree, &target, &known)?;
        eprintln!("{row}");
        rows.push(row);
    }
    let n_missed = rows.iter().filter(|row| row.contains("NOT CAUGHT")).count();
    let mut table = String::from("| fault | breaks | caught by |\n| --- | --- | --- |\n");
    rows.iter().for_each(|row| table.push_str(&format!("{row}\n")));
    if !known.is_empty() {
        let names: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
        table.push_str(&format!("\nFailing without any fault, and left out above: {}.\n", names.join(", ")));
    }
    if is_written {
        page::write_table(&root.join(TABLE), BEGIN, &table)?;
    }
    page::say(&table);
    ensure!(
        n_missed == 0,
        "{n_missed} faults were not caught\n\nhint: add the property that each of them breaks"
    );
    Ok(())
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
    let module = breaks.split(' ').next_back().unwrap_or_default();
    let package = fault.package();
    let mut outcome = test(tree, target, package, &format!("{module}::"));
    let is_noticed = match &outcome {
        Ok(Outcome::Failed(tests)) => tests.difference(known).next().is_some(),
        Ok(Outcome::Passed) => false,
        Ok(Outcome::Hung | Outcome::Broken(_)) | Err(_) => true,
    };
    if !is_noticed {
        outcome = test(tree, target, package, "");
    }
    fs::write(&file, sound)?;
    let caught = match outcome? {
        Outcome::Failed(tests) => {
            let fresh: Vec<_> = tests.difference(known).map(|test| format!("`{test}`")).collect();
            match fresh.len() {
                0 => "NOT CAUGHT".to_owned(),
                1..=3 => fresh.join(", "),
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

/// Runs the quick properties of a package with this in their names.
fn test(tree: &Path, target: &Path, package: &str, filter: &str) -> anyhow::Result<Outcome> {
    let log = target.with_file_name("log");
    let mut cargo = Command::new("cargo")
        .args([
            "test",
            "--offline",
            "--no-fail-fast",
            "--package",
            package,
            "--lib",
            "--test",
            "it",
            "--",
            filter,
        ])
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", target)
        .env("FANFOLD_FAST", "1")
        .env("RUST_BACKTRACE", "0")
        .stdout(fs::File::create(&log)?)
        .stderr(Stdio::null())
        .spawn()
        .context("cargo can't be run")?;
    let start = Instant::now();
    let status = loop {
        if let Some(status) = cargo.try_wait()? {
            break status;
        }
        if start.elapsed() > LONGEST && is_testing(&log) {
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

/// Whether the tests have begun, and it is not the building that takes so long.
fn is_testing(log: &Path) -> bool {
    fs::read_to_string(log).is_ok_and(|said| said.contains("\nrunning "))
}

/// Copies what a build needs: no targets, no history.
fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
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
        } else {
            fs::copy(&path, &copy).with_context(|| format!("{} can't be copied", path.display()))?;
        }
    }
    Ok(())
}

/// The faults, by the promise they break.
const FAULTS: &[Fault] = &[
    Fault {
        name: "a summary counts when it is decided what is folded",
        breaks: "9 harmless: summaries",
        file: "crates/fanfold-core/src/ledger.rs",
        find: "        Tokens(transcript.total().0.saturating_add_signed(-self.saved))",
        replace: "        Tokens(transcript.total().0.saturating_add_signed(-self.saved)) + self.board.tokens()",
    },
    Fault {
        name: "a summary stays where there is no room for it",
        breaks: "3 budget: summaries",
        file: "crates/fanfold-core/src/summary/place.rs",
        find: "        None => before.clone().filter(fits),",
        replace: "        None => before.clone().filter(|placed| fits(placed) || placed.number < usize::MAX),",
    },
    Fault {
        name: "a summary comes in without a fold",
        breaks: "5 stable: summaries",
        file: "crates/fanfold-core/src/step.rs",
        find: "        None => Chance::None,",
        replace: "        None => Chance::Fold(now.transcript.len() / 2),",
    },
    Fault {
        name: "a summary that leaves is not told",
        breaks: "5 stable: summaries",
        file: "crates/fanfold-core/src/summary/place.rs",
        find: "    if is_changed {",
        replace: "    if is_changed && after.is_some() {",
    },
    Fault {
        name: "a summary that comes while a call runs takes the step",
        breaks: "9 harmless: summaries",
        file: "crates/fanfold-core/src/session.rs",
        find: "        let takes_no_step = is_running && ",
        replace: "        let takes_no_step = is_running && self.events.len() > usize::MAX / 2 && ",
    },
    Fault {
        name: "a summary wakes folds that rest",
        breaks: "9 harmless: summaries",
        file: "crates/fanfold-core/src/step.rs",
        find: "        ledger.board.hear(summary);",
        replace: "        ledger.board.hear(summary);\n        ledger.weak = 0;\n        ledger.folded = None;",
    },
    Fault {
        name: "marks in a summary are left as they are",
        breaks: "9 harmless: summaries",
        file: "crates/fanfold-core/src/summary/clean.rs",
        find: "            '<' if is_mark(&text[i + 1..]) => out.push('‹'),",
        replace: "            '<' if is_mark(&text[i + 1..]) => out.push('<'),",
    },
    Fault {
        name: "an empty summary takes the place of a good one",
        breaks: "4 lossless: summaries",
        file: "crates/fanfold-core/src/summary/place.rs",
        find: "        if !text.is_empty() {",
        replace: "        if text.len() < usize::MAX {",
    },
    Fault {
        name: "a summary's handles do not count as the view's",
        breaks: "4 lossless: summaries",
        file: "crates/fanfold-core/src/summary/place.rs",
        find: "covers.map(|segment| segment.handle).collect();",
        replace: "covers.map(|segment| Handle::of(&segment.tokens().0.to_le_bytes())).collect();",
    },
    Fault {
        name: "a flawed answer is asked for again and again",
        breaks: "errands",
        file: "crates/fanfold-core/src/summary/errand.rs",
        find: "                self.is_given_up = is_second;",
        replace: "                self.is_given_up = is_second && self.n_flawed > 9;",
    },
    Fault {
        name: "the user's newest words are the model's",
        breaks: "errands",
        file: "crates/fanfold-core/src/summary/complete.rs",
        find: "    sections.set(TASK, task.to_owned());\n    let text",
        replace: "    let _ = (task, TASK);\n    let text",
    },
    Fault {
        name: "what an answer leaves out is not added",
        breaks: "errands",
        file: "crates/fanfold-core/src/summary/complete.rs",
        find: "        sections.add(section, &line);\n        n_added += 1;",
        replace: "        let _ = (section, &line);",
    },
    Fault {
        name: "a summary begins at the first step again",
        breaks: "errands",
        file: "crates/fanfold-core/src/summary/errand.rs",
        find: "previous.as_ref().map_or(0, |previous| previous.upto.index() + 1);",
        replace: "previous.as_ref().map_or(0, |previous| previous.upto.index() / usize::MAX);",
    },
    Fault {
        name: "quotes of the user are believed",
        breaks: "errands",
        file: "crates/fanfold-core/src/summary/judge.rs",
        find: "    if !quotes.is_empty() {",
        replace: "    if quotes.len() > 99 {",
    },
    Fault {
        name: "a question may be as long as it likes",
        breaks: "errands",
        file: "crates/fanfold-core/src/summary/material.rs",
        find: "    if text.is_empty() || showing.counter.count(&text) > showing.room {",
        replace: "    if text.is_empty() {\n        sources.iter().for_each(|source| source.write_whole(transcript, &mut text));\n    }\n    if text.is_empty() {",
    },
    Fault {
        name: "a fold for economy is made whatever it costs",
        breaks: "economy: regret",
        file: "crates/fanfold-core/src/account.rs",
        find: "cost * 1000.0 <= whole_cost * f64::from(economy.limit)",
        replace: "cost >= 0.0 && whole_cost >= 0.0 && economy.limit > 0",
    },
    Fault {
        name: "what a fold breaks is taken as cached still",
        breaks: "economy: regret",
        file: "crates/fanfold-core/src/account.rs",
        find: "        self.ends.truncate(self.ends.partition_point(|end| end.n_entries <= first));",
        replace: "",
    },
    Fault {
        name: "user text may be folded at any stage",
        breaks: "1 verbatim",
        file: "crates/fanfold-core/src/draft.rs",
        find: "            Users::Never => false,",
        replace: "            Users::Never => true,",
    },
    Fault {
        name: "a shortened user message is not told",
        breaks: "1 verbatim",
        file: "crates/fanfold-core/src/draft.rs",
        find: "            self.user_text.push(entry);\n        }\n        let what",
        replace: "        }\n        let what",
    },
    Fault {
        name: "folded user messages are sent in another role's words",
        breaks: "1 verbatim",
        file: "crates/fanfold-wire/src/chat/encode.rs",
        find: "(_, Voice::Fanfold) => {\n            (Role::User, format!(r#\"{{\"role\":\"user\",\"name\":\"fanfold\",\"content\":{text}}}\"#))",
        replace: "(_, Voice::Fanfold) => {\n            (Role::User, format!(r#\"{{\"role\":\"user\",\"content\":{text}}}\"#))",
    },
    Fault {
        name: "only the first portion of an entry is sent",
        breaks: "2 paired",
        file: "crates/fanfold-wire/src/outgoing.rs",
        find: "        for portion in &anchor.portions {",
        replace: "        for portion in anchor.portions.iter().take(1) {",
    },
    Fault {
        name: "a call that was never answered gets no result",
        breaks: "2 paired",
        file: "crates/fanfold-wire/src/outgoing.rs",
        find: "let may_still_run = is_last && ",
        replace: "let may_still_run = ",
    },
    Fault {
        name: "an opening by the assistant is let through",
        breaks: "2 paired",
        file: "crates/fanfold-wire/src/outgoing.rs",
        find: "    if outs[first].role == Role::User {",
        replace: "    if outs[first].role != Role::Tool {",
    },
    Fault {
        name: "a segment's saving is not recorded",
        breaks: "3 budget",
        file: "crates/fanfold-core/src/draft.rs",
        find: "        self.ledger.saved += before.0 as i64 - after.0 as i64;\n",
        replace: "",
    },
    Fault {
        name: "merged segments are not counted as gone",
        breaks: "3 budget",
        file: "crates/fanfold-core/src/draft.rs",
        find: "            before += self.ledger.segments[old as usize].tokens();",
        replace: "            let _ = old;",
    },
    Fault {
        name: "stubs are counted by their bytes",
        breaks: "3 budget",
        file: "crates/fanfold-core/src/draft.rs",
        find: "        let tokens = self.counter.count(&stub);",
        replace: "        let tokens = Tokens(stub.len() as u64 / 4);",
    },
    Fault {
        name: "a few tokens too many are let through",
        breaks: "3 budget",
        file: "crates/fanfold-core/src/step.rs",
        find: "    if total > room {",
        replace: "    if total > room + Tokens(5) {",
    },
    Fault {
        name: "the remedy of an overflow forgets the reserve",
        breaks: "3 budget",
        file: "crates/fanfold-core/src/step.rs",
        find: "let window = now.budget.window() + over;",
        replace: "let window = now.budget.room() + over;",
    },
    Fault {
        name: "pressure is not told again after a fold",
        breaks: "3 budget",
        file: "crates/fanfold-core/src/step.rs",
        find: "        ledger.told = Pressure::None;\n",
        replace: "",
    },
    Fault {
        name: "weak folds go on for ever",
        breaks: "3 budget",
        file: "crates/fanfold-core/src/step.rs",
        find: "let is_resting = now.policy.rests && ledger.weak >= 2;",
        replace: "let is_resting = now.policy.rests && ledger.weak >= 200;",
    },
    Fault {
        name: "unfolding forgets what the segment cost",
        breaks: "3 budget",
        file: "crates/fanfold-core/src/step.rs",
        find: "            ledger.saved += segment.tokens().0 as i64;\n",
        replace: "",
    },
    Fault {
        name: "slices leave out a byte between them",
        breaks: "4 lossless",
        file: "crates/fanfold-core/src/slices.rs",
        find: "        out.push(from..to);\n        from = to;",
        replace: "        out.push(from..to);\n        from = text.ceil_char_boundary(to + 1);",
    },
    Fault {
        name: "a merge forgets an entry",
        breaks: "4 lossless",
        file: "crates/fanfold-core/src/segment.rs",
        find: "        material.entries.extend(&segment.entries);",
        replace: "        material.entries.extend(&segment.entries[segment.entries.len() / 8..]);",
    },
    Fault {
        name: "a merge forgets a handle",
        breaks: "4 lossless",
        file: "crates/fanfold-core/src/segment.rs",
        find: "        material.stretches.extend(segment.stretches.iter().cloned());",
        replace: "        material.stretches.extend(segment.stretches.iter().skip(1).cloned());",
    },
    Fault {
        name: "the last stretch of a run is not written",
        breaks: "4 lossless",
        file: "crates/fanfold-core/src/segment.rs",
        find: "stretches.next_if(|(stretch, _)| stretch.first <= last)",
        replace: "stretches.next_if(|(stretch, _)| stretch.first < last)",
    },
    Fault {
        name: "every part of a segment shows the first",
        breaks: "4 lossless",
        file: "crates/fanfold-core/src/view.rs",
        find: "let part = &segment.parts[n];",
        replace: "let part = &segment.parts[n / 2];",
    },
    Fault {
        name: "two originals may share a short handle",
        breaks: "4 lossless",
        file: "crates/fanfold-core/src/ledger.rs",
        find: "Some((_, known)) if *known == hash => return handle,",
        replace: "Some((_, known)) if *known == hash || handle.names(hash) => return handle,",
    },
    Fault {
        name: "hashes of entries are cached in the wrong place",
        breaks: "4 lossless",
        file: "crates/fanfold-core/src/ledger.rs",
        find: "*self.hashes.entry(entry).or_insert_with(",
        replace: "*self.hashes.entry(EntryId(entry.0 & !1)).or_insert_with(",
    },
    Fault {
        name: "a folded argument does not name its handle",
        breaks: "4 lossless",
        file: "crates/fanfold-core/src/passes/arguments.rs",
        find: "let note = if is_tagged { note.clone() }",
        replace: "let note = if true { note.clone() }",
    },
    Fault {
        name: "lines of an original are counted from zero",
        breaks: "4 lossless",
        file: "crates/fanfold-core/src/recall.rs",
        find: "Ok(lines[from - 1..(*to).min(lines.len())].join(\"\\n\"))",
        replace: "Ok(lines[(*from).min(lines.len() - 1)..(*to + 1).min(lines.len())].join(\"\\n\"))",
    },
    Fault {
        name: "a fold of a later stage gives no receipt",
        breaks: "5 stable",
        file: "crates/fanfold-core/src/step.rs",
        find: "        left.extend(more);",
        replace: "        if stage.above == 0 {\n            left.extend(more);\n        }",
    },
    Fault {
        name: "the view grows from the wrong entry",
        breaks: "5 stable",
        file: "crates/fanfold-core/src/session.rs",
        find: "        self.viewed = self.transcript.len();",
        replace: "        self.viewed = self.view.items.len();",
    },
    Fault {
        name: "folds begin before their threshold",
        breaks: "5 stable",
        file: "crates/fanfold-core/src/step.rs",
        find: "    if total <= trigger {",
        replace: "    if total <= trigger.permille(900) {",
    },
    Fault {
        name: "a deeper fold leaves the older one standing",
        breaks: "6 settled",
        file: "crates/fanfold-core/src/draft.rs",
        find: "        standing.retain(|&other| !is_within(self.ledger.folds[other as usize].place, place));\n",
        replace: "",
    },
    Fault {
        name: "a fold is written although it is no shorter",
        breaks: "6 settled",
        file: "crates/fanfold-core/src/draft.rs",
        find: "        if tokens >= before {",
        replace: "        if tokens > before + Tokens(9) {",
    },
    Fault {
        name: "entries that come together get one step",
        breaks: "7 deterministic",
        file: "crates/fanfold-core/src/session.rs",
        find: "        self.settle();\n        self.is_settled = false;\n        self.transcript.append",
        replace: "        self.is_settled = false;\n        self.transcript.append",
    },
    Fault {
        name: "what workers did comes back in the wrong order",
        breaks: "7 deterministic",
        file: "crates/fanfold-core/src/scan.rs",
        find: "    done.into_iter().flat_map(",
        replace: "    done.into_iter().rev().flat_map(",
    },
    Fault {
        name: "lines stand in the order of a hash set",
        breaks: "7 deterministic",
        file: "crates/fanfold-core/src/segment.rs",
        find: "        written.chosen.sort_unstable_by_key(|chosen| chosen.line);",
        replace: "        let map: std::collections::HashMap<_, _> = written.chosen.drain(..).map(|chosen| (chosen.line, chosen)).collect();\n        written.chosen.extend(map.into_values());",
    },
    Fault {
        name: "running steps may be folded",
        breaks: "8 running",
        file: "crates/fanfold-core/src/draft.rs",
        find: " || self.transcript.is_running(id)",
        replace: "",
    },
    Fault {
        name: "a running step ends with the next prompt",
        breaks: "8 running",
        file: "crates/fanfold-core/src/transcript.rs",
        find: ".all(|later| later.step().is_none())",
        replace: ".len() == 0",
    },
    Fault {
        name: "the floor of the tail is ignored",
        breaks: "newest",
        file: "crates/fanfold-core/src/edges.rs",
        find: "let is_floor = steps < least_steps || results < least_results;",
        replace: "let is_floor = steps < least_steps.min(1) && results < least_results;",
    },
    Fault {
        name: "the newest images are folded like old ones",
        breaks: "newest",
        file: "crates/fanfold-core/src/draft.rs",
        find: "Speaker::User => reach.images || self.newest_images != Some(id),",
        replace: "Speaker::User => true,",
    },
    Fault {
        name: "what a late result changed is not forgotten",
        breaks: "4 lossless",
        file: "crates/fanfold-core/src/session.rs",
        find: "        self.ledger.forget(&self.transcript, call.step);\n",
        replace: "",
    },
    Fault {
        name: "a late result does not bring its step back",
        breaks: "3 budget",
        file: "crates/fanfold-core/src/session.rs",
        find: "!self.ledger.is_whole(call.step) {",
        replace: "false {",
    },
    Fault {
        name: "looking while a call runs takes the step for good",
        breaks: "7 deterministic",
        file: "crates/fanfold-core/src/session.rs",
        find: "if is_running && !self.is_settled {",
        replace: "if false && is_running {",
    },
    Fault {
        name: "media of a folded result are folded again",
        breaks: "3 budget",
        file: "crates/fanfold-core/src/draft.rs",
        find: "\n            || matches!(place, Place::ResultMedia(call, _) if self.ledger.fold_at(Place::Result(call)).is_some());",
        replace: ";",
    },
    Fault {
        name: "pins are forgotten",
        breaks: "wishes",
        file: "crates/fanfold-core/src/draft.rs",
        find: "self.ledger.pinned.contains(&id) || ",
        replace: "",
    },
    Fault {
        name: "focus is not looked at",
        breaks: "wishes",
        file: "crates/fanfold-core/src/draft.rs",
        find: "&self.ledger.focus, self.policy.choice",
        replace: "\"\", self.policy.choice",
    },
    Fault {
        name: "what stands in the view is recalled, too",
        breaks: "needed",
        file: "crates/fanfold-core/src/need.rs",
        find: "        mentioned.retain(|(atom, _)| !is_shown[*atom as usize]);\n",
        replace: "",
    },
    Fault {
        name: "an excerpt takes room that is not free",
        breaks: "needed",
        file: "crates/fanfold-core/src/need.rs",
        find: "- told).min(free)",
        replace: "- told).min(free + room)",
    },
    Fault {
        name: "segments are written anew at each fold",
        breaks: "6 settled",
        file: "crates/fanfold-core/src/passes/digest.rs",
        find: "live.len() > behind || ",
        replace: "true || ",
    },
    Fault {
        name: "edits of any file count for the one that is read",
        breaks: "condensed",
        file: "crates/fanfold-core/src/changed.rs",
        find: " && deed.has_changed(file) {",
        replace: " && !deed.changes.is_empty() {",
    },
    Fault {
        name: "edits are not looked at where a file becomes shorter",
        breaks: "condensed",
        file: "crates/fanfold-core/src/changed.rs",
        find: "        !self.0.is_empty() && key(line)",
        replace: "        self.0.is_empty() && key(line)",
    },
    Fault {
        name: "a parser takes as long as it likes",
        breaks: "condensed",
        file: "crates/fanfold-core/src/condense/parse.rs",
        find: "if n_reports > allowed {",
        replace: "if n_reports > allowed + 100_000_000 {",
    },
    Fault {
        name: "the lines of the shell are shortened with its scripts",
        breaks: "condensed",
        file: "crates/fanfold-core/src/condense/written.rs",
        find: "let has_script = parts.iter().any(|part| part.is_script);",
        replace: "let has_script = false;",
    },
    Fault {
        name: "words in capitals are other words",
        breaks: "wishes",
        file: "crates/fanfold-core/src/words.rs",
        find: "let lower = last | 0x2020_2020_2020_2020;",
        replace: "let lower = last;",
    },
    Fault {
        name: "arguments that are no string are cut in the middle of a letter",
        breaks: "9 harmless",
        file: "crates/fanfold-core/src/passes/arguments.rs",
        find: "let cut = text.floor_char_boundary(short);",
        replace: "let cut = short.min(text.len());",
    },
    Fault {
        name: "a message is written anew instead of passed on",
        breaks: "10 transparent",
        file: "crates/fanfold-wire/src/chat/encode.rs",
        find: "Out { role, json: raw.into() }",
        replace: "Out { role, json: raw.replace(\": \", \":\").into() }",
    },
    Fault {
        name: "an edited message loses a field",
        breaks: "10 transparent",
        file: "crates/fanfold-wire/src/chat/encode.rs",
        find: "    Out { role, json: Cow::Owned(splices.apply(raw)) }",
        replace: "    let members: Vec<_> = message.object.fields.iter().map(|field| field.span.clone()).collect();\n    splices.cut(&members, |i| message.object.fields[i].key.starts_with(\"x_\"));\n    Out { role, json: Cow::Owned(splices.apply(raw)) }",
    },
    Fault {
        name: "an empty reply is left out",
        breaks: "10 transparent",
        file: "crates/fanfold-wire/src/responses/encode.rs",
        find: "            } else if value == \"null\" {",
        replace: "            } else if value == \"[]\" {\n                return false;\n            } else if value == \"null\" {",
    },
    Fault {
        name: "what happened is taken in the order in which it was noted",
        breaks: "7 deterministic: past",
        file: "crates/fanfold-engine/src/past.rs",
        find: "        holding.sort_unstable_by_key(|(place, i)| (*place, self.is_for_next(*i), *i));\n",
        replace: "",
    },
    Fault {
        name: "other instructions go on with the terms of before",
        breaks: "7 deterministic: past",
        file: "crates/fanfold-engine/src/keep.rs",
        find: "Ok(frame.system() == conversation.system())",
        replace: "Ok(frame.system() == conversation.system() || !past.notes.is_empty())",
    },
    Fault {
        name: "what happened behind an earlier message is gone on from",
        breaks: "7 deterministic: state",
        file: "crates/fanfold-engine/src/state.rs",
        find: "new.iter().all(|(place, _)| *place >= n_held)",
        replace: "new.iter().all(|(place, _)| *place <= n_held.max(u32::MAX))",
    },
    Fault {
        name: "a replay leaves earlier requests out",
        breaks: "6 settled: past",
        file: "crates/fanfold-engine/src/past.rs",
        find: "i > era && sent.from == 0,",
        replace: "i > era && sent.from != 0,",
    },
    Fault {
        name: "what was folded on a way that was left counts as noted",
        breaks: "4 lossless: lineage",
        file: "crates/fanfold-engine/src/fold.rs",
        find: "past.known.contains(&digits)",
        replace: "past.handles.contains(&digits)",
    },
    Fault {
        name: "nobody who folds is waited for",
        breaks: "4 lossless: past",
        file: "crates/fanfold-engine/src/lock.rs",
        find: "const PATIENCE_MS: i64 = 3_000;",
        replace: "const PATIENCE_MS: i64 = 0;",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A fault that can't be planted catches nothing; planting them all takes too long to notice that.
    #[test]
    fn each_fault_finds_its_text() {
        let root = crate::tidy::root();
        for Fault { name, file, find, .. } in FAULTS {
            let text = fs::read_to_string(root.join(file)).unwrap_or_default();
            assert_eq!(text.matches(find).count(), 1, "{name}: in {file}");
        }
    }
}
