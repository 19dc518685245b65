//! A new large result is condensed before any sent message is folded, and only if the view does not fit. Its useful
//! lines stay, and the original can be recalled.

use std::sync::atomic::{AtomicUsize, Ordering};

use fanfold_core::{
    Body, Budget, Call, Entry, EntryId, Event, Extent, Item, Origin, Outcome, Place, Policy, Reason, Session,
    Step, Tokens, View, Words, print_view,
};

use crate::cases::{check_cases, fail};
use crate::drivers::drive;

fn reading(path: &str, text: &str) -> Entry {
    let origin = Origin::message(0);
    let arguments = serde_json::json!({ "file_path": path }).to_string();
    let outcome = Outcome { body: Body::text(text), is_error: false, media: Vec::new(), origin };
    let (id, tool, arguments) = ("1".to_owned(), "Read".to_owned(), Body::text(arguments));
    let calls = vec![Call { id, tool, arguments, result: Some(outcome), origin }];
    Entry::Step(Step { text: Body::text("I look."), reasoning: Body::text(""), calls, origin })
}

fn session_after(window: u64, entries: impl IntoIterator<Item = Entry>) -> Session<'static> {
    let budget = Budget::with_reserve(Tokens(window), Tokens::ZERO);
    let policy = Policy::fanfold().with_cadence(fanfold_core::Cadence::Window);
    let mut session = Session::new(policy, budget, &Words);
    for entry in entries {
        session.append(entry);
        session.view().expect("it fits");
    }
    session
}

/// A text of `n_lines` similar lines of code.
fn file(name: &str, n_lines: usize) -> String {
    (0..n_lines).map(|n| format!("    let part = make_{name} ( left , right , {n} ) ;\n")).collect()
}

/// If only the new result is folded, sent messages do not change.
#[test]
fn sent_messages_stay_when_only_the_new_result_is_folded() {
    let n_cut = AtomicUsize::new(0);
    check_cases(3_000, &["fanfold"], |case| {
        let (mut last, mut n_receipts) = (View::default(), 0);
        drive(case, |session, view| {
            let receipts = session.ledger().receipts();
            let new = &receipts[n_receipts.min(receipts.len())..];
            let is_cut = !new.is_empty() && new.iter().all(|receipt| receipt.reason == Reason::Arrival);
            n_receipts = receipts.len();
            n_cut.fetch_add(usize::from(is_cut), Ordering::Relaxed);
            let last = std::mem::replace(&mut last, view.clone());
            let is_prefix = view.items.starts_with(&last.items);
            if is_cut && !is_prefix { fail("a sent message changed".to_owned()) } else { Ok(()) }
        })
    });
    assert!(n_cut.into_inner() > 0, "no result was condensed");
}

/// If condensing the new result is enough, nothing else is folded. A result that fits is not condensed.
#[test]
fn the_new_result_is_folded_first() {
    let user = || fanfold_core::parse("user    what is wrong with it?\n").expect("notation");
    let small = || (0..3).map(|n| reading(&format!("src/small_{n}.rs"), &file("small", 20)));
    let large = file("large", 200);
    let fits =
        session_after(7_000, user().into_iter().chain(small()).chain([reading("src/large.rs", &large)]));
    assert!(fits.ledger().receipts().is_empty());
    let mut session =
        session_after(3_000, user().into_iter().chain(small()).chain([reading("src/large.rs", &large)]));
    let reasons: Vec<Reason> = session.ledger().receipts().iter().map(|receipt| receipt.reason).collect();
    assert_eq!(reasons, [Reason::Arrival]);
    let view = session.view().expect("it fits").clone();
    let whole: Vec<Item> = (0..4).map(|id| Item::Whole(EntryId(id))).collect();
    assert_eq!(view.items[..4], whole, "sent messages stay");
    assert!(print_view(session.transcript(), &view).contains("condensed from 200 lines"));
    let whole = *view.handles.last().expect("it can be recalled");
    assert_eq!(session.recall(whole, &Extent::Whole).expect("it can be recalled"), large);
}

/// A condensed file shows the lines around the newest edits.
#[test]
fn lines_around_edits_stay() {
    let function = |n: usize| {
        format!(
            "fn make_large_{n}() -> Part {{\n    let left = {n} + 1 * 2 ;\n    part ( left , right , {n} )\n}}\n"
        )
    };
    let large: String = (0..100).map(function).collect();
    let shown = |path: &str, n: usize| {
        let line = format!("let left = {n} + 1 * 2 ;");
        let edit = serde_json::json!({ "file_path": path, "old_string": line, "new_string": "" });
        let mut editing = reading(path, "done");
        if let Entry::Step(step) = &mut editing {
            step.calls[0].tool = "Edit".to_owned();
            step.calls[0].arguments = Body::text(edit.to_string());
        }
        let user = fanfold_core::parse("user    what is wrong with it?\n").expect("notation");
        let entries = user.into_iter().chain([editing, reading("src/large.rs", &large)]);
        let mut session = session_after(2_000, entries);
        let view = session.view().expect("it fits").clone();
        print_view(session.transcript(), &view)
    };
    for n in (10..90).step_by(11) {
        let next_line = format!("right , {n} )");
        assert!(shown("src/large.rs", n).contains(&next_line), "{}", shown("src/large.rs", n));
    }
    let n_shown =
        (10..90).step_by(11).filter(|n| shown("src/other.rs", *n).contains(&format!("right , {n} )")));
    assert!(n_shown.count() < 4, "too many lines around edits of another file");
}

/// The function that the user asks about stays in a result that has to become shorter.
#[test]
fn a_function_that_the_user_names_stays() {
    let text: String =
        (0..80).map(|i| format!("def handler_{i} ( job ) :\n    return job . take ( {i} )\n")).collect();
    let user = fanfold_core::parse("user    why does handler_71 fail?\n").expect("notation");
    let mut session = session_after(400, user.into_iter().chain([reading("src/handlers.py", &text)]));
    let view = session.view().expect("it fits").clone();
    let shown = print_view(session.transcript(), &view);
    assert!(shown.contains("condensed from") && shown.contains("def handler_71 "), "{shown}");
}

/// A segment does not repeat lines that are in the view, even if they come from another file.
#[test]
fn a_segment_does_not_repeat_lines_in_the_view() {
    let user = fanfold_core::parse("user    what is wrong with it?\n").expect("notation");
    let reads = [("first", "first", 60), ("second", "second", 60), ("third", "again", 60)];
    let reads = reads.map(|(path, text, n)| reading(&format!("src/{path}.rs"), &file(text, n)));
    let shown = |last: &str| {
        let last = reading("src/last.rs", &file(last, 61));
        let mut session = session_after(2_500, user.clone().into_iter().chain(reads.clone()).chain([last]));
        let view = session.view().expect("it fits").clone();
        assert_eq!(view.items.last(), Some(&Item::Whole(EntryId(4))), "the newest stays");
        let shown = print_view(session.transcript(), &view);
        shown.lines().filter(|line| line.contains("make_again ")).count()
    };
    assert_eq!(shown("again"), 61, "only the newest result shows them");
}

/// A large JSON document is described by its keys, and a large table by its header.
#[test]
fn structured_results_keep_their_structure() {
    let user = || fanfold_core::parse("user    what is wrong with it?\n").expect("notation");
    let row = |n: usize| serde_json::json!({ "id": n, "name": format!("part_{n}"), "state": "made" });
    let json = serde_json::to_string_pretty(&(0..400).map(row).collect::<Vec<_>>()).expect("JSON");
    let table: String = (0..400).map(|n| format!("| part_{n} | made | {n} |\n")).collect();
    let table = format!("| name | state | size |\n| --- | --- | --- |\n{table}");
    for (large, first) in [(json, "400 items of {id, name, state}"), (table, "| name | state | size |")] {
        let mut session = session_after(2_000, user().into_iter().chain([reading("out", &large)]));
        let view = session.view().expect("it fits").clone();
        let Some(Item::Edited(_, edits)) = view.items.last() else { panic!("the result is not condensed") };
        let stub = &edits.last().expect("an edit of the result").stub;
        assert!(stub.trim_start().starts_with(first), "{stub}");
    }
}

/// A line that is empty except for its line number is not shown.
#[test]
fn empty_numbered_lines_are_not_shown() {
    let budget = Budget::with_reserve(Tokens(3_000), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, fanfold_tokens::o200k());
    session.append(fanfold_core::parse("user    what is wrong with it?\n").expect("notation").remove(0));
    let mut n_notes = 0;
    for i in 0..40 {
        let line = |n: usize| match n % 3 {
            0 => format!("  {}→\n", 1000 + 40 * i + n),
            _ => format!("  {}→    let part_{n} = make_part_{i}(left, right);\n", 1000 + 40 * i + n),
        };
        session.append(reading(&format!("src/file_{i}.rs"), &(0..30).map(line).collect::<String>()));
        let view = session.view().expect("it fits").clone();
        let counted = fanfold_core::recount(session.transcript(), &view, fanfold_tokens::o200k());
        assert_eq!(view.tokens, counted, "the view reports its tokens");
        for item in &view.items {
            let Item::Note { text, .. } = item else { continue };
            n_notes += 1;
            assert!(!text.lines().any(|line| line.trim().is_empty()), "{text}");
        }
    }
    assert!(n_notes > 0, "it folds");
}

/// A result that a pin restored is condensed as before once it is unpinned.
#[test]
fn an_unpinned_result_is_condensed_again() {
    let entries = fanfold_core::parse("user    what is wrong with it?\n").expect("notation");
    let mut session =
        session_after(300, entries.into_iter().chain([reading("src/large.rs", &file("large", 200))]));
    let before = session.view().expect("it fits").clone();
    assert!(print_view(session.transcript(), &before).contains("condensed from 200 lines"));
    session.apply(Event::Pinned(EntryId(1)));
    session.view().expect_err("the pinned result does not fit");
    session.apply(Event::Unpinned(EntryId(1)));
    let after = session.view().expect("it fits").clone();
    assert_eq!(print_view(session.transcript(), &after), print_view(session.transcript(), &before));
}

/// Large results and arguments are reduced to their handles before the user message is shortened.
#[test]
fn stubs_of_large_texts_are_short_so_that_user_text_stays() {
    let words: String = (0..100).map(|n| format!("word{n} ")).collect();
    let mut entries = fanfold_core::parse(&format!("user    {words}\n")).expect("notation");
    let mut step = reading("src/large.rs", &file("large", 600));
    if let Entry::Step(step) = &mut step {
        let writing = serde_json::json!({ "file_path": "src/new.rs", "content": file("new", 600) });
        step.calls[0].arguments = Body::text(writing.to_string());
        step.calls = vec![step.calls[0].clone(); 4];
    }
    entries.push(step);
    let mut session = session_after(150, entries);
    let view = session.view().expect("it fits").clone();
    assert_eq!(view.items[0], Item::Whole(EntryId(0)), "the user message is whole");
    let shown = print_view(session.transcript(), &view);
    assert!(shown.contains("characters, #1.1]"), "{shown}");
    for (_, edits) in view.items.iter().filter_map(|item| match item {
        Item::Edited(id, edits) => Some((id, edits)),
        Item::Whole(_) | Item::Note { .. } => None,
    }) {
        let arguments = edits.iter().filter(|edit| matches!(edit.place, Place::Arguments(_)));
        for edit in arguments {
            serde_json::from_str::<serde_json::Value>(&edit.stub).expect("the folded arguments are JSON");
        }
    }
    for handle in view.handles {
        session.recall(handle, &Extent::Whole).expect("it can be recalled");
    }
}
