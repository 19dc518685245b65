//! Counts the facts of tool results that summary prompts contain, for fanfold and Hermes on the same messages.
//!
//! A fact counts if the prompt contains it: an error as a whole line, a path, a value (a number of at least three
//! digits) with its neighbouring word. This file finds facts by rules of its own, independent of those that select
//! text for prompts.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use fanfold_core::summary::{NextStep, SummaryJob, SummaryOptions};
use fanfold_core::{Budget, Entry, EntryId, Event, Policy, Session, Strategy, Summary, Tokens};
use fanfold_tokens::o200k;
use fanfold_wire::{Change, Conversation};

use crate::{bench, page};

const TABLE: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- begin: cargo xtask bench summary --write -->";

/// The windows of the agent's model and of the summary model.
const WINDOW: Tokens = Tokens(200_000);
const SUMMARISER: Tokens = Tokens(128_000);

/// Prints the prompt of Hermes: the middle that it removes, pruned and serialised by its own code.
const SCRIPT: &str = r###"
import json, logging, os, sys, tempfile
os.environ["HERMES_HOME"] = tempfile.mkdtemp()
os.environ["HERMES_DISABLE_LAZY_INSTALLS"] = "1"
logging.disable(logging.CRITICAL)
from agent.context_compressor import ContextCompressor
for file in sys.argv[1:]:
    messages = json.load(open(file))["messages"]
    engine = ContextCompressor(model="m", config_context_length=200_000, quiet_mode=True)
    pruned, _ = engine._prune_old_tool_results(messages, engine.protect_last_n, engine.tail_token_budget)
    head = engine._align_boundary_forward(pruned, engine._protect_head_size(pruned))
    cut = engine._find_tail_cut_by_tokens(pruned, head)
    with open(file + ".hermes", "w") as out:
        out.write(engine._serialize_for_summary(pruned[head:cut]))
    print("middle", head, cut)
"###;

/// Measures and prints the table.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = crate::tidy::root();
    let work = root.join("target/bench");
    let files = bench::transcripts(&root, &work)?;
    let middles = hermes(&work, &files)?;
    let mut table = String::from(
        "| messages | summariser | calls | tokens sent | tool text shown | errors | paths | values | all three |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (file, (head, cut)) in files.iter().zip(middles) {
        let body = fs::read_to_string(file)?;
        let middle = Middle::parse(&body, head, cut)?;
        let theirs = fs::read_to_string(file.with_extension("json.hermes"))?;
        let at_once = at_once(&body, head, cut)?;
        let after_each_fold = after_each_fold(&body)?;
        let n = middle.n_messages;
        for (name, prompts) in [
            ("Hermes", vec![theirs]),
            ("fanfold, one summary", at_once),
            ("fanfold, a summary after each fold", after_each_fold),
        ] {
            if !prompts.is_empty() {
                table.push_str(&middle.row(n, name, &prompts));
            }
        }
    }
    if arguments.iter().any(|argument| argument == "--write") {
        page::write_table(&root.join(TABLE), BEGIN, &table)?;
    }
    page::print(&table);
    Ok(())
}

/// Writes Hermes' prompts next to the files and returns the range of each middle.
fn hermes(work: &Path, files: &[PathBuf]) -> anyhow::Result<Vec<(usize, usize)>> {
    let python = bench::venv(work, &[bench::HERMES])?;
    let output = bench::run_command(Command::new(python).args(["-c", SCRIPT]).args(files))?;
    let ends = |line: &str| {
        let (head, cut) = line.strip_prefix("middle ")?.split_once(' ')?;
        Some((head.parse().ok()?, cut.parse().ok()?))
    };
    let middles: Vec<(usize, usize)> = output.lines().filter_map(ends).collect();
    ensure!(middles.len() == files.len(), "Hermes printed no prompts:\n{output}");
    Ok(middles)
}

/// The tool results between the head and the tail, with their facts.
struct Middle {
    n_messages: usize,
    facts: [BTreeSet<String>; 3],
    shingles: BTreeSet<u64>,
}

impl Middle {
    fn parse(body: &str, head: usize, cut: usize) -> anyhow::Result<Middle> {
        let body: serde_json::Value = serde_json::from_str(body)?;
        let messages = body["messages"].as_array().context("the transcript has messages")?;
        let results = messages[head..cut].iter().filter(|message| message["role"] == "tool");
        let text: Vec<&str> = results.filter_map(|message| message["content"].as_str()).collect();
        let text = plain(&text.join("\n"));
        Ok(Middle { n_messages: messages.len(), facts: facts(&text), shingles: shingles(&text).collect() })
    }

    fn row(&self, n: usize, name: &str, prompts: &[String]) -> String {
        let shown = plain(&prompts.join("\n"));
        let seen = facts(&shown);
        let kept: Vec<usize> =
            self.facts.iter().zip(&seen).map(|(all, seen)| all.intersection(seen).count()).collect();
        let all: Vec<usize> = self.facts.iter().map(BTreeSet::len).collect();
        let share = |kept: usize, all: usize| match all {
            0 => "–".to_owned(),
            all => format!("{:.1} % of {all}", 100.0 * kept as f64 / all as f64),
        };
        let of_prompt: BTreeSet<u64> = shingles(&shown).collect();
        let text = self.shingles.intersection(&of_prompt).count() as f64 / self.shingles.len().max(1) as f64;
        let tokens: u64 = prompts.iter().map(|prompt| fanfold_core::Count::count(o200k(), prompt).0).sum();
        format!(
            "| {n} | {name} | {} | {:.0}k | {:.1} % | {} | {} | {} | **{:.1} %** |\n",
            prompts.len(),
            tokens as f64 / 1e3,
            100.0 * text,
            share(kept[0], all[0]),
            share(kept[1], all[1]),
            share(kept[2], all[2]),
            100.0 * kept.iter().sum::<usize>() as f64 / all.iter().sum::<usize>().max(1) as f64,
        )
    }
}

/// Replaces the JSON escapes that affect lines and words.
fn plain(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\\"", "\"")
}

/// Errors, paths and values.
fn facts(text: &str) -> [BTreeSet<String>; 3] {
    let (mut errors, mut paths, mut values) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for line in text.lines().map(str::trim) {
        if line.starts_with("error: ") {
            // A JSON dump ends the last line with a quote.
            errors.insert(line.split('"').next().unwrap_or(line).trim().to_owned());
        }
        let words: Vec<&str> = line
            .split(|c: char| !(c.is_ascii_alphanumeric() || "_./-".contains(c)))
            .filter(|word| !word.is_empty())
            .collect();
        for (i, word) in words.iter().enumerate() {
            let word = word.trim_matches(['.', '/', '-']);
            let is_path =
                word.contains('/') && word.rsplit('/').next().is_some_and(|name| name.contains('.'));
            if is_path {
                paths.insert(word.to_owned());
            }
            let is_value = word.len() >= 3 && word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            if is_value {
                let neighbour = if i > 0 { words[i - 1] } else { words.get(1).copied().unwrap_or_default() };
                values.insert(format!("{neighbour} {word}"));
            }
        }
    }
    [errors, paths, values]
}

/// Hashes of all runs of five words.
fn shingles(text: &str) -> impl Iterator<Item = u64> {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let hash = |words: &[&str]| {
        let mut hasher = DefaultHasher::new();
        words.hash(&mut hasher);
        hasher.finish()
    };
    words.windows(5).map(hash).collect::<Vec<_>>().into_iter()
}

/// The prompts of one summary of everything up to the cut.
fn at_once(body: &str, head: usize, cut: usize) -> anyhow::Result<Vec<String>> {
    let mut policy = Policy::fanfold();
    policy.strategy = Strategy::Off;
    let mut session = Session::new(policy, Budget::of_window(WINDOW), o200k());
    follow(&mut session, body, |_| Ok(()))?;
    let entry_at = |message: usize| {
        let is_before = |entry: &Entry| origin(entry) <= message;
        EntryId::from(session.transcript().entries().partition_point(is_before).saturating_sub(1))
    };
    let range = Some((entry_at(head), entry_at(cut - 1)));
    session.apply(Event::FoldRequested { range });
    let job = SummaryJob::plan(&session, &SummaryOptions::new(SUMMARISER)).context("nothing is folded")?;
    Ok(prompts(job)?.0)
}

/// The prompts of a summary after each fold of the growing conversation.
fn after_each_fold(body: &str) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    let mut session = Session::new(Policy::fanfold(), Budget::of_window(WINDOW), o200k());
    let mut n_folds = 0;
    follow(&mut session, body, |session| {
        if session.ledger().receipts().len() > n_folds {
            n_folds = session.ledger().receipts().len();
            if let Some(job) = SummaryJob::plan(session, &SummaryOptions::new(SUMMARISER)) {
                let (prompts, summary) = prompts(job)?;
                all.extend(prompts);
                session.apply(Event::SummaryWritten(summary));
            }
        }
        Ok(())
    })?;
    Ok(all)
}

fn follow(
    session: &mut Session<'_>,
    body: &str,
    mut see: impl FnMut(&mut Session<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (_, changes) = Conversation::decode(body, None).map_err(|error| anyhow::anyhow!("{error}"))?;
    for change in changes {
        match change {
            Change::Append(entry) => drop(session.append(entry)),
            Change::Answer(call, outcome) => drop(session.set_result(call, outcome)),
        }
        see(session)?;
    }
    Ok(())
}

fn origin(entry: &Entry) -> usize {
    match entry {
        Entry::Prompt(prompt) => prompt.origin.message as usize,
        Entry::Step(step) => step.origin.message as usize,
    }
}

/// Runs a summary job with minimal valid answers; returns its prompts and the summary.
fn prompts(mut job: SummaryJob<'_>) -> anyhow::Result<(Vec<String>, Summary)> {
    let material: Vec<String> = job.material().map(str::to_owned).collect();
    let mut prompts = Vec::new();
    loop {
        match job.next() {
            NextStep::Ask(asked) => {
                // Only originals count, not the previous summary or the instructions.
                prompts.push(material[prompts.len().min(material.len() - 1)].clone());
                job.accept_answer(&answer(&asked.user));
            }
            NextStep::Done(summary) => return Ok((prompts, summary)),
            NextStep::GiveUp(flaws) => bail!("the summary failed after {} prompts: {flaws:?}", prompts.len()),
        }
    }
}

/// An answer that contains the references that the prompt requires.
fn answer(question: &str) -> String {
    let mut out = String::new();
    for heading in &fanfold_core::summary::HEADINGS[1..] {
        out.push_str(&format!("## {heading}\n- as it was\n"));
    }
    for kind in ["- files: ", "- errors: ", "- values: "] {
        let list = question.lines().filter_map(|line| line.strip_prefix(kind));
        list.for_each(|list| out.push_str(&format!("- {list}\n")));
    }
    out
}
