//! Lines of a new result that are already in the view are left out before it is sent for the first time. Sent
//! messages do not change, every line is in the view, and the whole result can be recalled.

use std::sync::Arc;

use fanfold_core::{
    Body, Budget, Call, Economy, Entry, EntryId, Event, Extent, Media, Origin, Outcome, Policy, Prices,
    Reason, Session, Step, Tokens, ToolFold, ToolRule, View, Words, print_view, recount,
};
use fanfold_testkit::Rng;
use rayon::prelude::*;
use serde_json::json;

use crate::cases::case_divisor;

/// A step of one call.
fn call(tool: &str, arguments: &serde_json::Value, result: &str) -> Entry {
    let origin = Origin::message(0);
    let outcome = Outcome { body: Body::text(result), is_error: false, media: Vec::new(), origin };
    let arguments = Body::text(arguments.to_string());
    let calls =
        vec![Call { id: "1".to_owned(), tool: tool.to_owned(), arguments, result: Some(outcome), origin }];
    Entry::Step(Step { text: Body::text(""), reasoning: Body::text(""), calls, origin })
}

fn numbered(lines: &[String]) -> String {
    lines.iter().enumerate().map(|(i, line)| format!("{:>5}\u{2192}{line}\n", i + 1)).collect()
}

/// A conversation of an agent that reads, changes and rereads a few files.
pub(crate) fn rereading_conversation(seed: u64) -> Vec<Entry> {
    let mut rng = Rng::new(seed ^ 0xa6a1);
    let mut files: Vec<Vec<String>> = (0..3)
        .map(|file| {
            let n_lines = 8 + rng.below(60);
            (0..n_lines)
                .map(|n| format!("    let part_{file}_{n} = make ( left , {} ) ;", rng.below(9)))
                .collect()
        })
        .collect();
    let mut entries = fanfold_core::parse("user    mend the three files\n").expect("notation");
    for turn in 0..12 + rng.below(30) {
        let at = rng.below(files.len());
        let file = &mut files[at];
        let path = format!("src/file_{at}.rs");
        let line = rng.below(file.len());
        entries.push(match rng.below(8) {
            0..3 => call("Read", &json!({ "file_path": path }), &numbered(file)),
            3 => call("Bash", &json!({ "command": format!("cat {path}") }), &file.join("\n")),
            4 => {
                let (from, to) = (line, (line + 5 + rng.below(20)).min(file.len()));
                let part = file[from..to].join("\n");
                call("Bash", &json!({ "command": format!("sed -n {},{to}p {path}", from + 1) }), &part)
            }
            5 if rng.percent(50) => {
                file[line] = file[line].replace("left", "both");
                call("Bash", &json!({ "command": format!("sed -i {}s/left/both/ {path}", line + 1) }), "")
            }
            5 => {
                file.insert(line, format!("    let new_{turn} = make ( right , {turn} ) ;"));
                let new = file[line.saturating_sub(2)..(line + 3).min(file.len())].join("\n");
                call("Edit", &json!({ "file_path": path, "new_string": new }), "edited")
            }
            6 => {
                let text = file.join("\n");
                call("Write", &json!({ "file_path": path, "content": text }), "written")
            }
            _ => call("Bash", &json!({ "command": "make test" }), &format!("{turn} tests passed\n")),
        });
    }
    entries
}

fn session(policy: Policy) -> Session<'static> {
    let budget = Budget::with_reserve(Tokens(1_000_000), Tokens::ZERO);
    Session::new(policy, budget, &Words).with_prices(prices())
}

fn prices() -> Prices {
    Prices { write: 1.25, read: 0.1, ..Prices::without_cache() }
}

/// A policy that leaves out runs of twenty words and more.
fn policy() -> Policy {
    let policy = Policy::fanfold();
    let economy = policy.economy.map(|economy| Economy { min_repeat: Tokens(20), ..economy });
    Policy { economy, ..policy }
}

fn session_after(policy: Policy, entries: impl IntoIterator<Item = Entry>) -> (Session<'static>, String) {
    let mut session = session(policy);
    for entry in entries {
        session.append(entry);
        session.view().expect("it fits");
    }
    let view = session.view().expect("it fits").clone();
    let text = print_view(session.transcript(), &view);
    (session, text)
}

fn check_conversation(seed: u64) -> Result<usize, String> {
    let mut session = session(policy());
    let (mut last, mut n_receipts, mut n_left_out) = (View::default(), 0, 0);
    for entry in rereading_conversation(seed) {
        let appended = entry.clone();
        session.append(entry);
        let view = session.view().expect("everything fits").clone();
        let new = session.ledger().receipts()[n_receipts..].to_vec();
        n_receipts += new.len();
        n_left_out += new.iter().filter(|receipt| receipt.reason == Reason::Again).count();
        if recount(session.transcript(), &view, &Words) != view.tokens {
            return Err("the view reports another token count".to_owned());
        }
        let is_only_newest = new.iter().all(|receipt| receipt.reason == Reason::Again);
        if is_only_newest && !view.items.starts_with(&last.items) {
            return Err("a sent message changed".to_owned());
        }
        let text = print_view(session.transcript(), &view);
        // Lines within arguments are escaped.
        let unescaped = text.replace("\\n", "\n");
        let calls = appended.step().map_or(&[][..], |step| &step.calls);
        let results = calls.iter().filter_map(|call| call.result.as_ref());
        for line in results.flat_map(|outcome| outcome.body.as_str().lines()).filter(|_| is_only_newest) {
            let line = line.rsplit('\u{2192}').next().unwrap_or_default();
            if !unescaped.contains(line) {
                return Err(format!("{line:?} is missing from the view:\n{text}"));
            }
        }
        last = view;
    }
    Ok(n_left_out)
}

#[test]
fn left_out_lines_are_in_the_view() {
    let n_seeds = (1_200 / case_divisor()).max(100);
    let all: Vec<usize> = (0..n_seeds)
        .into_par_iter()
        .map(|seed| check_conversation(seed).unwrap_or_else(|message| panic!("seed {seed}: {message}")))
        .collect();
    let n_left_out: usize = all.iter().sum();
    assert!(n_left_out as u64 > n_seeds, "only {n_left_out} folds in {n_seeds} conversations");
}

fn file(n_lines: usize) -> Vec<String> {
    (0..n_lines).map(|n| format!("    let part_{n} = make ( left , right ) ;")).collect()
}

fn read(lines: &[String]) -> Entry {
    call("Read", &json!({ "file_path": "src/parts.rs" }), &numbered(lines))
}

fn cat(lines: &[String]) -> Entry {
    call("Bash", &json!({ "command": "cat src/parts.rs" }), &lines.join("\n"))
}

/// The first and last line of a run stay and show its position, also if the line numbers changed.
#[test]
fn a_reread_file_shows_only_changed_lines() {
    let mut lines = file(40);
    let before = read(&lines);
    lines.insert(20, "    let between = make ( new , new ) ;".to_owned());
    let (session, text) = session_after(policy(), [before, cat(&lines)]);
    for wanted in [
        "[18 lines as shown above: parts.rs]\n",
        "    let part_19 = make ( left , right ) ;\n",
        "    let between = make ( new , new ) ;\n",
        "    let part_20 = make ( left , right ) ;\n",
        "[what stands above is left out; all of it: ",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    let receipt = session.ledger().receipts().last().expect("lines were left out");
    assert_eq!((receipt.reason, receipt.price), (Reason::Again, Some(Tokens::ZERO)));
    assert_eq!(receipt.reason.to_string(), "the newest results repeated visible lines");
    let whole = session.recall(receipt.folded[0].handle, &Extent::Whole).expect("it can be recalled");
    assert_eq!(whole, lines.join("\n"));
}

#[test]
fn lines_written_by_the_agent_are_left_out() {
    let lines = file(40);
    let written = json!({ "file_path": "src/parts.rs", "content": lines.join("\n") });
    let (_, text) = session_after(policy(), [call("Write", &written, "written"), cat(&lines)]);
    assert!(text.contains("[38 lines as written above: parts.rs]"), "{text}");
}

#[test]
fn every_second_repetition_of_a_read_is_whole() {
    let lines = file(40);
    let n_shown = |n_times: usize| {
        let (_, text) = session_after(policy(), std::iter::repeat_n(read(&lines), n_times));
        text.matches("let part_7 = ").count()
    };
    assert_eq!([1, 2, 3, 4, 5].map(n_shown), [1, 1, 2, 2, 3]);
}

/// The result of a recall is not shortened, because the agent asked for the original.
#[test]
fn recalled_lines_are_shown() {
    let lines = file(40);
    let (mut session, text) = session_after(policy(), [read(&lines), cat(&lines)]);
    let n_shown = text.matches("let part_7 = ").count();
    let handle = session.ledger().receipts()[0].folded[0].handle;
    session.append(call("fanfold_recall", &json!({ "handle": handle.to_string() }), &lines.join("\n")));
    let view = session.view().expect("it fits").clone();
    assert_eq!(print_view(session.transcript(), &view).matches("let part_7 = ").count(), n_shown + 1);
}

/// Lines stay if the tool is never folded, without economy, with folding off, and if little would be saved.
#[test]
fn lines_stay_where_the_policy_forbids_or_the_gain_is_small() {
    let lines = file(40);
    let is_left_out = |policy| session_after(policy, [read(&lines), cat(&lines)]).1.contains("left out");
    assert!(is_left_out(policy()));
    let mut never = policy();
    let (tool, fold, target) = ("Bash".to_owned(), ToolFold::Never, Vec::new());
    never.tools.insert(0, ToolRule { tool, fold, cap: None, condense: None, target });
    assert!(!is_left_out(never));
    assert!(!is_left_out(policy().with_cadence(fanfold_core::Cadence::Window)));
    assert!(!is_left_out(Policy { strategy: fanfold_core::Strategy::Off, ..policy() }));
    let economy = policy().economy.map(|economy| Economy { min_repeat: Tokens(1_000), ..economy });
    assert!(!is_left_out(Policy { economy, ..policy() }));
}

/// A result with an image or an unknown part stays whole, because a shortened text would replace them.
#[test]
fn results_with_other_parts_stay_whole() {
    let lines = file(40);
    let is_left_out = |change: &dyn Fn(&mut Outcome)| {
        let mut newest = cat(&lines);
        if let Entry::Step(step) = &mut newest {
            step.calls[0].result.iter_mut().for_each(change);
        }
        session_after(policy(), [read(&lines), newest]).1.contains("left out")
    };
    let parts = |parts: Vec<serde_json::Value>| {
        let body = Body::with_raw(lines.join("\n"), serde_json::Value::from(parts).to_string());
        move |outcome: &mut Outcome| outcome.body = body.clone()
    };
    let text = json!({ "type": "text", "text": lines.join("\n"), "cache_control": { "type": "ephemeral" } });
    let unknown = json!({ "type": "hologram", "data": "x".repeat(400) });
    assert!(is_left_out(&|_| {}));
    assert!(is_left_out(&parts(vec![text.clone()])));
    assert!(!is_left_out(&parts(vec![text, unknown])));
    let (label, raw, origin) = ("image/png".to_owned(), Arc::from("{}"), Origin::message(0));
    let image = Media { label, raw, origin };
    assert!(!is_left_out(&|outcome| outcome.media.push(image.clone())));
}

/// A request below the minimum size for caching is not shortened.
#[test]
fn requests_too_short_for_the_cache_stay_whole() {
    let lines = file(40);
    let is_left_out = |minimum| {
        let mut session = session(policy()).with_prices(Prices { minimum: Tokens(minimum), ..prices() });
        [read(&lines), cat(&lines)].into_iter().for_each(|entry| {
            session.append(entry);
        });
        let view = session.view().expect("it fits").clone();
        print_view(session.transcript(), &view).contains("left out")
    };
    assert!(is_left_out(200) && !is_left_out(2_000));
}

/// A session that read a file early, continued with `later`, and folded the early part on request.
fn folded_session(lines: &[String], later: impl IntoIterator<Item = Entry>) -> Session<'static> {
    let mut session = session(policy());
    let begin = "user    mend it\ncall    look around\nresult  there is much\n";
    let mut entries = fanfold_core::parse(begin).expect("notation");
    entries.push(read(lines));
    let make = |n| call("Bash", &json!({ "command": format!("make {n}") }), &format!("{n} done"));
    entries.extend((0..8).map(make));
    entries.extend(later);
    entries.into_iter().for_each(|entry| {
        session.append(entry);
    });
    session.apply(Event::FoldRequested { range: Some((EntryId(2), EntryId(4))) });
    session
}

/// Lines in a folded segment are no longer in the view.
#[test]
fn lines_folded_since_are_shown_again() {
    let lines = file(40);
    let mut session = folded_session(&lines, []);
    session.append(cat(&lines));
    let view = session.view().expect("it fits").clone();
    let text = print_view(session.transcript(), &view);
    assert!(!text.contains("shown above") && text.contains("let part_7 = "), "{text}");
}

/// If a newer result left out lines of a segment, the view lacks these lines, so the segment may show them.
#[test]
fn a_folded_segment_shows_lines_that_a_newer_result_left_out() {
    let lines = file(40);
    let mut session = folded_session(&lines, [cat(&lines)]);
    let view = session.view().expect("it fits").clone();
    let text = print_view(session.transcript(), &view);
    let n_lines = text.matches("let part_").count();
    assert!(text.contains("[38 lines as shown above: parts.rs]"), "{text}");
    assert!(n_lines > 4, "{n_lines} lines:\n{text}");
}
