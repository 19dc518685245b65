//! Invariants of condensed texts, for generated texts of every kind and all results of the recorded conversations.
//!
//! The errors, paths and ids of a text are in the condensed text, or its handles recall the original byte for byte.
//! A condensed text is shorter than the original, and condensing is deterministic.

use std::time::{Duration, Instant};

use fanfold_core::{
    Body, Budget, Call, Entry, Extent, Origin, Outcome, Place, Policy, Session, Step, Tokens, Words,
    condense, condense_input, default_room, detect_kind,
};
use fanfold_core::{CondenseOptions, FileExcerpt};
use fanfold_testkit::Rng;
use fanfold_testkit::contracts::key_details::find_key_details;
use fanfold_testkit::generators::tool_outputs::{KINDS, tool_output};
use fanfold_testkit::trajectories::trajectories;
use rayon::prelude::*;
use serde_json::Value;

use crate::cases::{Verdict, fail, is_fast};

/// Checks the condensed texts of several sizes.
fn check(text: &str, path: Option<&str>) -> Verdict {
    let is_edited = |line: &str| line.len() % 7 == 3;
    let file = path.map(|path| FileExcerpt { path, first_line: Some(1), is_edited: &is_edited });
    let value = |line: &str| if line.len() % 5 == 2 { 1.0 } else { 0.0 };
    for room in [default_room(text), 80, text.len() / 2] {
        let options = CondenseOptions { file, ..CondenseOptions::new(room, &value) };
        for (name, short) in
            [("condense", condense(text, &options)), ("condense_input", condense_input(text, &options))]
        {
            let Some(short) = short else { continue };
            if short.len() >= text.len() || short.len() > room + 64 {
                return fail(format!(
                    "{name}: {} bytes of {}, with a room of {room}",
                    short.len(),
                    text.len()
                ));
            }
            if short.trim().is_empty() {
                return fail(format!("{name}: an empty text from {} bytes", text.len()));
            }
            let again =
                if name == "condense" { condense(text, &options) } else { condense_input(text, &options) };
            if again.as_ref() != Some(&short) {
                return fail(format!("{name}: another result the second time"));
            }
        }
    }
    Ok(())
}

/// Folds a conversation with the text as a result, and checks the view.
fn check_folded(text: &str, path: &str) -> Verdict {
    let budget = Budget::with_reserve(Tokens(text.split_whitespace().count() as u64 / 2 + 60), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, &Words);
    for entry in conversation(text, path) {
        session.append(entry);
    }
    let Ok(view) = session.view().cloned() else { return Ok(()) };
    let sent: String = fanfold_core::print_view(session.transcript(), &view);
    let found = find_key_details(text);
    let all = found.errors.iter().chain(&found.paths).chain(&found.ids);
    let lost: Vec<&str> = all.copied().filter(|detail| !sent.contains(*detail)).collect();
    if lost.is_empty() {
        return Ok(());
    }
    // One handle recalls it, or several in order.
    let open = |handle: &fanfold_core::Handle| session.recall(*handle, &Extent::Whole).ok();
    let originals: Vec<String> = view.handles.iter().filter_map(open).collect();
    match originals.iter().any(|original| original.contains(text)) || originals.concat().contains(text) {
        true => Ok(()),
        false => fail(format!("{lost:?} is neither in the view nor can be recalled")),
    }
}

fn conversation(text: &str, path: &str) -> Vec<Entry> {
    let origin = Origin::message(0);
    let arguments = serde_json::json!({ "file_path": path }).to_string();
    let outcome = Outcome { body: Body::text(text), is_error: false, media: Vec::new(), origin };
    let call = Call {
        id: "1".to_owned(),
        tool: "Read".to_owned(),
        arguments: Body::text(arguments),
        result: Some(outcome),
        origin,
    };
    let step = |text: &str, calls| {
        Entry::Step(Step { text: Body::text(text), reasoning: Body::text(""), calls, origin })
    };
    let user = fanfold_core::parse("user    what is wrong with it?\n").expect("notation");
    user.into_iter().chain([step("Let me see.", vec![call]), step("I see.", Vec::new())]).collect()
}

#[test]
fn generated_texts_keep_key_details() {
    let n_seeds = if is_fast() { 20 } else { 200 };
    let failed: Vec<String> = (0..n_seeds)
        .into_par_iter()
        .flat_map(|seed| KINDS.par_iter().map(move |kind| (seed, *kind)))
        .filter_map(|(seed, kind)| {
            let (text, path) = tool_output(kind, &mut Rng::new(seed));
            let verdict = check(&text, Some(path)).and_then(|()| check_folded(&text, path));
            verdict.err().map(|message| format!("{kind:?}, seed {seed}: {message}"))
        })
        .collect();
    assert!(failed.is_empty(), "{} fail:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn the_kind_of_generated_texts_is_detected() {
    for kind in KINDS {
        let n_right =
            (0..40).filter(|seed| detect_kind(&tool_output(*kind, &mut Rng::new(*seed)).0) == *kind).count();
        assert!(n_right >= 36, "{kind:?}: {n_right} of 40");
    }
}

/// Errors are removed last.
#[test]
fn condensed_texts_keep_most_errors() {
    for kind in KINDS {
        for seed in 0..40 {
            let (text, _) = tool_output(*kind, &mut Rng::new(seed));
            let short = condense(&text, &CondenseOptions::new(default_room(&text), &|_| 0.0))
                .unwrap_or_else(|| text.clone());
            let [(n_before, n_after), ..] = find_key_details(&text).count_in(&short);
            assert!(
                n_after * 10 >= n_before * 9,
                "{kind:?}, seed {seed}: {n_after} of {n_before} errors in\n{short}"
            );
        }
    }
}

#[test]
fn recorded_results_keep_key_details() {
    let Some(all) = trajectories() else { return };
    let step = if is_fast() { 20 } else { 1 };
    let failed: Vec<String> = all
        .par_iter()
        .step_by(step)
        .flat_map_iter(|trajectory| {
            let results = trajectory.messages.iter().filter_map(|message| {
                let message: Value = serde_json::from_str(message.get()).ok()?;
                (message["role"] == "tool")
                    .then(|| message["content"].as_str().unwrap_or_default().to_owned())
            });
            results.enumerate().filter_map(|(i, text)| {
                let path = ["a.go", "a.py", "a.rs", "a.ts", "a.java", "a.c"][i % 6];
                let verdict = check(&text, Some(path)).and_then(|()| check_folded(&text, path));
                verdict.err().map(|message| format!("{}, result {i}: {message}", trajectory.id))
            })
        })
        .collect();
    assert!(
        failed.is_empty(),
        "{} fail:\n{}",
        failed.len(),
        failed.iter().take(20).cloned().collect::<Vec<_>>().join("\n")
    );
}

/// Condensing takes linear time; with quadratic time this test would not finish.
#[test]
fn lines_of_a_megabyte_are_condensed_in_linear_time() {
    let mega = 1 << 20;
    for unit in [
        "a",
        "a b ",
        "{\"a\": ",
        "<p>",
        "- x",
        "@@ -1 +1 @@",
        "src/a.rs:1:",
        "error: ",
        "fn f() {",
        "\\n",
        "| a ",
        "EOF << ",
    ] {
        let text = unit.repeat(mega / unit.len());
        for text in
            [text.clone(), format!("cat <<EOF > a.py\n{text}\nEOF"), format!("diff --git a/x b/x\n+{text}")]
        {
            check(&text, Some("a.py")).unwrap_or_else(|message| panic!("{unit}: {message}"));
        }
    }
}

/// Condensed arguments stay valid JSON, and their handle recalls the original.
#[test]
fn condensed_arguments_are_json_and_can_be_recalled() {
    for kind in KINDS {
        for seed in 0..20 {
            let (content, path) = tool_output(*kind, &mut Rng::new(seed));
            let command = format!("cat > {path} <<'EOF'\n{content}\nEOF\nls -l {path}");
            for arguments in [
                serde_json::json!({ "file_path": path, "content": content }),
                serde_json::json!({ "command": command }),
            ] {
                check_arguments(&arguments.to_string())
                    .unwrap_or_else(|message| panic!("{kind:?}, {seed}: {message}"));
            }
        }
    }
}

fn check_arguments(arguments: &str) -> Verdict {
    let budget =
        Budget::with_reserve(Tokens(arguments.split_whitespace().count() as u64 * 2 / 3 + 40), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, &Words);
    for mut entry in conversation("done", "a.txt") {
        if let Entry::Step(step) = &mut entry {
            step.calls.iter_mut().for_each(|call| call.arguments = Body::text(arguments));
        }
        session.append(entry);
    }
    let Ok(view) = session.view().cloned() else { return Ok(()) };
    for item in &view.items {
        let fanfold_core::Item::Edited(_, edits) = item else { continue };
        for edit in edits.iter().filter(|edit| matches!(edit.place, Place::Arguments(_))) {
            if serde_json::from_str::<Value>(&edit.stub).is_err() {
                return fail(format!("the condensed arguments are not JSON: {}", edit.stub));
            }
            let fold = session.ledger().fold_at(edit.place);
            let opened = fold.map(|fold| session.recall(fold.handle, &Extent::Whole));
            if opened != Some(Ok(arguments.to_owned())) {
                return fail("the handle recalls another text");
            }
        }
    }
    Ok(())
}

/// A condensed command keeps its shell lines and shortens the here-document.
#[test]
fn condensed_commands_keep_their_shell_lines() {
    for kind in KINDS {
        for seed in 0..20 {
            let (content, path) = tool_output(*kind, &mut Rng::new(seed));
            let (before, after) =
                (format!("cd /srv && cat > {path} <<'END_{seed}'"), format!("make {path} && ./check --all"));
            let command = format!("{before}\n{}\nEND_{seed}\n{after}", content.trim_end());
            for room in [before.len() + after.len() + 100, command.len() / 2] {
                let Some(short) = condense_input(&command, &CondenseOptions::new(room, &|_| 0.0)) else {
                    continue;
                };
                for line in [before.as_str(), &format!("END_{seed}"), &after] {
                    assert!(
                        short.lines().any(|other| other == line),
                        "{kind:?}, seed {seed}: no {line} in\n{short}"
                    );
                }
            }
        }
    }
}

/// A condensed file shows an edited function whole, but not if another file was edited.
#[test]
fn edited_functions_stay_whole() {
    let body =
        |i: usize| [format!("let p = {i} + 1 * 2 - 3 + 4 ;"), format!("make_part ( p , {i} , 2 , 3 )")];
    let function =
        |i: usize| format!("fn make_the_next_part_of_it_{i}() {{\n    {}\n}}\n", body(i).join("\n    "));
    let file: String = (0..60).map(function).collect();
    let sent = |path: &str, i: usize| {
        let [old, new] = body(i);
        let edit = serde_json::json!({ "file_path": path, "old_string": old, "new_string": new });
        let mut editing = conversation("done", path);
        if let Entry::Step(step) = &mut editing[1] {
            step.calls[0].tool = "Edit".to_owned();
            step.calls[0].arguments = Body::text(edit.to_string());
        }
        let budget = Budget::with_reserve(Tokens(600), Tokens::ZERO);
        let mut session = Session::new(Policy::fanfold(), budget, &Words);
        let reading = conversation(&file, "src/parts.rs").into_iter().skip(1);
        for entry in editing.into_iter().chain(reading.take(1)) {
            session.append(entry);
        }
        let view = session.view().expect("it fits when the file is condensed").clone();
        fanfold_core::print_view(session.transcript(), &view)
    };
    for i in (10..50).step_by(3) {
        let is_whole = |sent: &str| body(i).iter().all(|line| sent.contains(&format!("    {line}\n")));
        let (same, other) = (sent("src/parts.rs", i), sent("src/others.rs", i));
        assert!(is_whole(&same), "{i}:\n{same}");
        assert!(!is_whole(&other), "{i}:\n{other}");
    }
}

/// The work of a parser is limited. Parsing this text as Java takes quadratic time and gigabytes.
#[test]
fn parsing_of_unparsable_text_is_aborted_early() {
    let code = "class A { void f() { g(); } }\n".repeat(20);
    let text = format!("{code}{}", "a<a<a<a<a<a<a<a<\n".repeat(1_900));
    for path in ["a.java", "a.cc", "a.ts", "a.rs"] {
        let file = FileExcerpt { path, first_line: Some(1), is_edited: &|_| false };
        let start = Instant::now();
        let short =
            condense(&text, &CondenseOptions { file: Some(file), ..CondenseOptions::new(200, &|_| 0.0) });
        assert!(short.is_some(), "{path}");
        // It takes some milliseconds with the limit and six seconds without.
        assert!(start.elapsed() < Duration::from_secs(2), "{path}: {:?}", start.elapsed());
    }
}
