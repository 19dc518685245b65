//! A large result gives way before anything that was sent does, and only where the view does not fit. Its lines that are likely to be used
//! stay; all of it opens again.

use std::sync::atomic::{AtomicUsize, Ordering};

use fanfold_core::{
    Body, Budget, Call, Entry, EntryId, Event, Extent, Item, Origin, Outcome, Place, Policy, Reason, Session,
    Step, Tokens, View, Words, print_view,
};

use crate::cases::{hold, no};
use crate::walks::walk;

fn reading(path: &str, text: &str) -> Entry {
    let origin = Origin::message(0);
    let arguments = serde_json::json!({ "file_path": path }).to_string();
    let outcome = Outcome { body: Body::text(text), is_error: false, media: Vec::new(), origin };
    let (id, tool, arguments) = ("1".to_owned(), "Read".to_owned(), Body::text(arguments));
    let calls = vec![Call { id, tool, arguments, result: Some(outcome), origin }];
    Entry::Step(Step { text: Body::text("I look."), reasoning: Body::text(""), calls, origin })
}

fn following(window: u64, entries: impl IntoIterator<Item = Entry>) -> Session<'static> {
    let budget = Budget::with_reserve(Tokens(window), Tokens::ZERO);
    let policy = Policy::fanfold().with_cadence(fanfold_core::Cadence::Window);
    let mut session = Session::new(policy, budget, &Words);
    for entry in entries {
        session.append(entry);
        session.view().expect("it fits");
    }
    session
}

/// Lines with six words of their own each.
fn file(name: &str, n_lines: usize) -> String {
    (0..n_lines).map(|n| format!("    let part = make_{name} ( left , right , {n} ) ;\n")).collect()
}

/// What was sent stands as it stood.
#[test]
fn what_was_sent_stays_where_only_the_newest_gives_way() {
    let n_cut = AtomicUsize::new(0);
    hold(3_000, &["fanfold"], |case| {
        let (mut last, mut n_receipts) = (View::default(), 0);
        walk(case, |session, view| {
            let receipts = session.ledger().receipts();
            let new = &receipts[n_receipts.min(receipts.len())..];
            let is_cut = !new.is_empty() && new.iter().all(|receipt| receipt.reason == Reason::Arrival);
            n_receipts = receipts.len();
            n_cut.fetch_add(usize::from(is_cut), Ordering::Relaxed);
            let last = std::mem::replace(&mut last, view.clone());
            let stays = view.items.starts_with(&last.items);
            if is_cut && !stays { no("what was sent has changed".to_owned()) } else { Ok(()) }
        })
    });
    assert!(n_cut.into_inner() > 0, "something was cut");
}

/// Where it is enough that the newest gives way, nothing else does; and nothing is cut that fits.
#[test]
fn the_newest_gives_way_first() {
    let user = || fanfold_core::parse("user    what is wrong with it?\n").expect("notation");
    let small = || (0..3).map(|n| reading(&format!("src/small_{n}.rs"), &file("small", 20)));
    let large = file("large", 200);
    let fits = following(7_000, user().into_iter().chain(small()).chain([reading("src/large.rs", &large)]));
    assert!(fits.ledger().receipts().is_empty());
    let mut session =
        following(3_000, user().into_iter().chain(small()).chain([reading("src/large.rs", &large)]));
    let reasons: Vec<Reason> = session.ledger().receipts().iter().map(|receipt| receipt.reason).collect();
    assert_eq!(reasons, [Reason::Arrival]);
    let view = session.view().expect("it fits").clone();
    let whole: Vec<Item> = (0..4).map(|id| Item::Whole(EntryId(id))).collect();
    assert_eq!(view.items[..4], whole, "what was sent before stays");
    assert!(print_view(session.transcript(), &view).contains("condensed from 200 lines"));
    let whole = *view.handles.last().expect("it opens");
    assert_eq!(session.recall(whole, &Extent::Whole).expect("it opens"), large);
}

/// Of a file that is too large, what stands around the newest edits is shown.
#[test]
fn what_was_worked_on_stays() {
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
        let mut session = following(2_000, entries);
        let view = session.view().expect("it fits").clone();
        print_view(session.transcript(), &view)
    };
    for n in (10..90).step_by(11) {
        let beside = format!("right , {n} )");
        assert!(shown("src/large.rs", n).contains(&beside), "{}", shown("src/large.rs", n));
    }
    let n_of_others =
        (10..90).step_by(11).filter(|n| shown("src/other.rs", *n).contains(&format!("right , {n} )")));
    assert!(n_of_others.count() < 4, "lines of a file that was not worked on");
}

/// What the agent looks at again and again it is working on: its lines stay before others, though those are newer.
#[test]
fn lines_that_were_shown_again_stay() {
    let user = fanfold_core::parse("user    what is wrong with it?\n").expect("notation");
    let reads = |paths: [&str; 3]| paths.map(|name| reading(&format!("src/{name}.rs"), &file(name, 60)));
    let last = reading("src/last.rs", &file("last", 40));
    let n_lines = |paths: [&str; 3], of: &str| {
        let mut session =
            following(2_500, user.clone().into_iter().chain(reads(paths)).chain([last.clone()]));
        let view = session.view().expect("it fits").clone();
        assert!(!session.ledger().receipts().is_empty(), "it folds");
        let shown = print_view(session.transcript(), &view);
        shown.lines().filter(|line| line.contains(&format!("make_{of} "))).count()
    };
    let (again, once) = (["again", "again", "once"], ["other", "again", "once"]);
    let (shown_again, shown_once) = (n_lines(again, "again"), n_lines(once, "again"));
    assert!(shown_again > shown_once, "{shown_again} and {shown_once}");
}

/// Lines that the agent copied into an edit it is likely to copy again: they stay before others of the same file.
#[test]
fn lines_that_the_agent_copied_stay() {
    let copied = [7, 23, 38, 51];
    let line = |n: usize| format!("let part = make_edited ( left , right , {n} ) ;");
    let edit = |n: usize| {
        let mut editing = reading("src/edited.rs", "done");
        if let Entry::Step(step) = &mut editing {
            let edit =
                serde_json::json!({ "file_path": "src/edited.rs", "new_string": "", "old_string": line(n) });
            step.calls[0].tool = "Edit".to_owned();
            step.calls[0].arguments = Body::text(edit.to_string());
        }
        editing
    };
    let user = fanfold_core::parse("user    what is wrong with it?\n").expect("notation");
    let read = ["edited", "second", "third"].map(|name| reading(&format!("src/{name}.rs"), &file(name, 60)));
    let last = reading("src/last.rs", &file("last", 40));
    let n_shown = |edits: &[usize]| {
        let edits = edits.iter().map(|n| edit(*n));
        let entries = user.clone().into_iter().chain(read.clone()).chain(edits).chain([last.clone()]);
        let mut session = following(2_500, entries);
        let view = session.view().expect("it fits").clone();
        assert!(!session.ledger().receipts().is_empty(), "it folds");
        let shown = print_view(session.transcript(), &view);
        let is_shown = |n: &&usize| {
            let mut lines = shown.lines().filter(|shown| !shown.contains("old_string"));
            lines.any(|shown| shown.contains(&line(**n)))
        };
        copied.iter().filter(is_shown).count()
    };
    let others = [8, 24, 39, 52];
    assert_eq!(n_shown(&copied), copied.len());
    assert!(n_shown(&others) < copied.len(), "{} of those that were not copied", n_shown(&others));
}

/// What is folded need not tell what stands in view as it came, from another file though.
#[test]
fn what_stands_in_view_is_not_told_again() {
    let user = fanfold_core::parse("user    what is wrong with it?\n").expect("notation");
    let reads = [("first", "first", 60), ("second", "second", 60), ("third", "again", 60)];
    let reads = reads.map(|(path, text, n)| reading(&format!("src/{path}.rs"), &file(text, n)));
    let shown = |last: &str| {
        let last = reading("src/last.rs", &file(last, 61));
        let mut session = following(2_500, user.clone().into_iter().chain(reads.clone()).chain([last]));
        let view = session.view().expect("it fits").clone();
        assert_eq!(view.items.last(), Some(&Item::Whole(EntryId(4))), "the newest stays");
        let shown = print_view(session.transcript(), &view);
        shown.lines().filter(|line| line.contains("make_again ")).count()
    };
    assert!(shown("other") > 1, "some lines are told");
    assert_eq!(shown("again"), 61, "those of the newest alone");
}

/// What has a shape of its own is told by that, however large: a JSON document by its keys, a table by its head.
#[test]
fn what_has_a_shape_keeps_it() {
    let user = || fanfold_core::parse("user    what is wrong with it?\n").expect("notation");
    let row = |n: usize| serde_json::json!({ "id": n, "name": format!("part_{n}"), "state": "made" });
    let json = serde_json::to_string_pretty(&(0..400).map(row).collect::<Vec<_>>()).expect("JSON");
    let table: String = (0..400).map(|n| format!("| part_{n} | made | {n} |\n")).collect();
    let table = format!("| name | state | size |\n| --- | --- | --- |\n{table}");
    for (large, first) in [(json, "400 items of {id, name, state}"), (table, "| name | state | size |")] {
        let mut session = following(2_000, user().into_iter().chain([reading("out", &large)]));
        let view = session.view().expect("it fits").clone();
        let Some(Item::Edited(_, edits)) = view.items.last() else { panic!("it is cut") };
        let stub = &edits.last().expect("its result").stub;
        assert!(stub.trim_start().starts_with(first), "{stub}");
    }
}

/// A line of which nothing is left without its number is not told; it is no line for a vocabulary, either.
#[test]
fn numbered_lines_that_are_empty_are_not_told() {
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
        assert_eq!(view.tokens, counted, "the view costs what it says");
        for item in &view.items {
            let Item::Note { text, .. } = item else { continue };
            n_notes += 1;
            assert!(!text.lines().any(|line| line.trim().is_empty()), "{text}");
        }
    }
    assert!(n_notes > 0, "it folds");
}

/// What was cut, came back and may be cut again is cut as it was.
#[test]
fn what_came_back_is_cut_again() {
    let entries = fanfold_core::parse("user    what is wrong with it?\n").expect("notation");
    let mut session =
        following(300, entries.into_iter().chain([reading("src/large.rs", &file("large", 200))]));
    let before = session.view().expect("it fits").clone();
    assert!(print_view(session.transcript(), &before).contains("condensed from 200 lines"));
    session.apply(Event::Pinned(EntryId(1)));
    session.view().expect_err("it is too large to stay");
    session.apply(Event::Unpinned(EntryId(1)));
    let after = session.view().expect("it fits").clone();
    assert_eq!(print_view(session.transcript(), &after), print_view(session.transcript(), &before));
}

/// Where the handles of their parts are too many, large results and arguments have one each; people's words stay.
#[test]
fn handles_of_parts_give_way_to_words() {
    let words: String = (0..100).map(|n| format!("word{n} ")).collect();
    let mut entries = fanfold_core::parse(&format!("user    {words}\n")).expect("notation");
    let mut step = reading("src/large.rs", &file("large", 600));
    if let Entry::Step(step) = &mut step {
        let writing = serde_json::json!({ "file_path": "src/new.rs", "content": file("new", 600) });
        step.calls[0].arguments = Body::text(writing.to_string());
        step.calls = vec![step.calls[0].clone(); 4];
    }
    entries.push(step);
    let mut session = following(150, entries);
    let view = session.view().expect("it fits").clone();
    assert_eq!(view.items[0], Item::Whole(EntryId(0)), "what the user said is whole");
    let shown = print_view(session.transcript(), &view);
    assert!(!shown.contains("in parts"), "{shown}");
    for (_, edits) in view.items.iter().filter_map(|item| match item {
        Item::Edited(id, edits) => Some((id, edits)),
        Item::Whole(_) | Item::Note { .. } => None,
    }) {
        let arguments = edits.iter().filter(|edit| matches!(edit.place, Place::Arguments(_)));
        for edit in arguments {
            serde_json::from_str::<serde_json::Value>(&edit.stub).expect("what was JSON is JSON");
        }
    }
    for handle in view.handles {
        session.recall(handle, &Extent::Whole).expect("it opens");
    }
}
