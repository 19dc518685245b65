//! Replaces all old entries by one static summary, rewritten at each fold. (`hermes`, `hamr`)
//!
//! ```text
//! user    fix the parser in src/parse.rs
//! say     I will look at it
//! call    bash {"command":"cargo test"}
//! result  running 2 tests
//!         test reads_a_title ... ok
//!         test reads_a_header ... FAILED
//!         thread 'reads_a_header' panicked at src/parse.rs:120:9:
//!         assertion `left == right` failed
//!           left: 3
//!          right: 4
//!         stack backtrace:
//!            0: rust_begin_unwind
//!            1: core::panicking::panic_fmt
//!            2: core::panicking::assert_failed_inner
//!            3: parse::tests::reads_a_header
//!         note: some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.
//!         test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
//! say     the height is off by one
//! ->
//! note    <fanfold>
//!         Earlier messages were folded; this is what they held. [011525]
//!         ## User asks
//!         - fix the parser in src/parse.rs
//!         ## Tool actions
//!         - bash(command=cargo test)
//!         ## Errors
//!         - test reads_a_header ... FAILED
//!         ## Last turns
//!         - user: fix the parser in src/parse.rs
//!         - assistant: I will look at it
//!         </fanfold>
//! say     the height is off by one
//! ```

use std::collections::HashSet;

use crate::actions::tool_rule::ToolRule;
use crate::actions::{has_failed, parse_action_with_rules};
use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::fold::passes::last_resort::squeeze::ends;
use crate::fold::policy::{Digest, SummaryCounts};
use crate::fold::segment::{part, runs, seal};
use crate::model::tokens::Tokens;
use crate::model::transcript::{Entry, EntryId, Speaker};
use crate::model::view::Voice;
use crate::presets::rules::call_lines::{arguments, cut_line};
use crate::text::condense::severity::{Severity, severity_of};

pub(crate) const PASS: Pass = Pass { name: "summary", run };

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    let Digest::Summary { share, counts } = draft.policy.digest else { return };
    let mut entries = draft.absorbable();
    if entries.is_empty() {
        return;
    }
    let merged = draft.ledger.live_segments.clone();
    for &live in &merged {
        entries.extend(&draft.ledger.segments[live as usize].entries);
    }
    entries.sort();
    let facts = SummaryFacts::newest(draft, &entries, counts);
    let handle = draft.name_entries(&entries);
    let max_tokens = draft.room.permille(share).max(Tokens(400));
    let mut parts = Vec::new();
    for (i, run) in runs(&entries).into_iter().enumerate() {
        let text = if i == 0 {
            facts.print(&handle.to_string(), max_tokens, draft)
        } else {
            format!("<fanfold>\n[{} earlier messages summarised above, {handle}]\n</fanfold>", run.len())
        };
        parts.push(part(draft, run[0], text));
    }
    let segment = seal(draft, entries, parts, Voice::Fanfold, vec![handle]);
    draft.absorb_if_shorter(segment, &merged, Tokens::ZERO);
}

/// The contents of a summary.
#[derive(Debug, Default)]
struct SummaryFacts {
    asks: Vec<String>,
    actions: Vec<String>,
    files: Vec<String>,
    errors: Vec<String>,
    texts: Vec<String>,
}

impl SummaryFacts {
    /// The newest facts of all entries.
    fn newest(draft: &mut Draft<'_>, entries: &[EntryId], counts: SummaryCounts) -> SummaryFacts {
        let transcript = draft.transcript;
        let rules = &draft.policy.tools;
        let each: Vec<SummaryFacts> =
            entries.iter().map(|id| SummaryFacts::from_entry(transcript.entry(*id), rules)).collect();
        let mut seen = HashSet::new();
        let files = each.iter().flat_map(|facts| &facts.files);
        let files: Vec<&String> = files.filter(|file| seen.insert(file.as_str())).collect();
        SummaryFacts {
            asks: last(each.iter().rev().flat_map(|facts| facts.asks.iter().rev()), counts.asks),
            actions: last(each.iter().rev().flat_map(|facts| facts.actions.iter().rev()), counts.actions),
            files: last(files.into_iter().rev(), counts.files),
            errors: last(each.iter().rev().flat_map(|facts| facts.errors.iter().rev()), counts.errors),
            texts: last(each.iter().rev().flat_map(|facts| facts.texts.iter().rev()), counts.texts),
        }
    }

    fn from_entry(entry: &Entry, rules: &[ToolRule]) -> SummaryFacts {
        let mut facts = SummaryFacts::default();
        match entry {
            Entry::Prompt(prompt) if prompt.speaker == Speaker::System => {}
            Entry::Prompt(prompt) => {
                facts.asks.push(cut_line(prompt.body.as_str(), 300));
                facts.texts.push(format!("user: {}", cut_line(prompt.body.as_str(), 240)));
            }
            Entry::Step(step) => {
                for call in &step.calls {
                    facts.actions.push(format!("{}({})", call.tool, arguments(call, 80)));
                    let action = parse_action_with_rules(rules, call);
                    paths(&action.target, &mut facts.files);
                    paths(call.arguments.as_str(), &mut facts.files);
                    let result = call.result.as_ref().map_or("", |outcome| outcome.body.as_str());
                    if has_failed(call, &action) {
                        let line = result.lines().find(|line| severity_of(line) == Severity::Error);
                        let line = line.or_else(|| result.lines().next()).unwrap_or_default();
                        facts.errors.push(cut_line(line, 160));
                    }
                }
                paths(step.text.as_str(), &mut facts.files);
                if !step.text.as_str().trim().is_empty() {
                    facts.texts.push(format!("assistant: {}", cut_line(step.text.as_str(), 240)));
                }
            }
        }
        facts
    }

    fn print(&self, handle: &str, max_tokens: Tokens, draft: &Draft<'_>) -> String {
        let mut text =
            format!("<fanfold>\nEarlier messages were folded; this is what they held. [{handle}]\n");
        let sections = [
            ("User asks", &self.asks),
            ("Tool actions", &self.actions),
            ("Files", &self.files),
            ("Errors", &self.errors),
            ("Last turns", &self.texts),
        ];
        for (title, lines) in sections.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            text.push_str(&format!("## {title}\n"));
            for line in lines {
                text.push_str(&format!("- {line}\n"));
            }
        }
        let tokens = draft.counter.count(&text);
        if tokens > max_tokens {
            // Keep the beginning and the end, as the original systems do.
            let room = (text.len() as u64 * max_tokens.0 / tokens.0) as usize;
            let (head, tail) = ends(&text, room);
            text = format!("{head}\n[… cut …]\n{}", tail.trim_start());
        }
        text.push_str("</fanfold>");
        text
    }
}

/// The first `n` of the lines, in reverse order.
fn last<'a>(lines: impl Iterator<Item = &'a String>, n: usize) -> Vec<String> {
    let mut last: Vec<String> = lines.take(n).cloned().collect();
    last.reverse();
    last
}

/// Adds the paths in a text that are not in the list yet.
fn paths(text: &str, found: &mut Vec<String>) {
    let is_edge = |c: char| c.is_whitespace() || "\"'`()[]{}<>,;:=|\\".contains(c);
    for word in text.split(is_edge) {
        let word = word.trim_matches(['.', ':', '!', '?']);
        let has_letters = word.bytes().any(|byte| byte.is_ascii_alphabetic());
        let is_path = word.len() >= 5 && word.len() < 200 && has_letters && is_pathlike(word);
        if is_path && !found.iter().any(|path| path == word) {
            found.push(word.to_owned());
        }
    }
}

fn is_pathlike(word: &str) -> bool {
    let has_dir = word.matches('/').count() >= 2 || (word.contains('/') && word.contains(['.', '_', '-']));
    let has_extension = word.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=5).contains(&extension.len())
            && extension.bytes().all(|b| b.is_ascii_lowercase())
    });
    (has_dir && !word.contains("//"))
        || (has_extension && !word.contains('/') && word.matches('.').count() == 1)
}
