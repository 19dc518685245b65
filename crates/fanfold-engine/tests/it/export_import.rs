//! Export and import of sessions.

use fanfold_core::Extent;
use fanfold_engine::{Import, ImportOutcome, RewindTarget, SessionEngine};
use fanfold_store::CheckMode;
use fanfold_testkit::generators::bodies::{BodyFormat, rich};

use crate::setup::{beginnings, chat, engine, id, long_chat, request, terms, terms_of};

/// Exports a session from one engine and imports it into another.
fn transfer(from: &SessionEngine, session: &str, to: &SessionEngine) -> ImportOutcome {
    let line = from.export_line(&id(session)).unwrap();
    assert!(SessionEngine::is_line(&line) && !line.contains('\n'));
    to.import_line(&line).unwrap()
}

#[test]
fn an_imported_session_equals_the_exported_one() {
    for kind in BodyFormat::ALL {
        for seed in 0..6 {
            let (here, there) = (engine(), engine());
            let terms = terms("fanfold", 150);
            let bodies = beginnings(&rich(kind, seed), 3);
            bodies.iter().for_each(|body| drop(request(&here, "s", body, &terms)));
            if here.store().session(&id("s")).unwrap().is_none() {
                continue;
            }
            here.set_title(&id("s"), "Task").unwrap();
            here.set_goal(&id("s"), "get there").unwrap();
            assert_eq!(transfer(&here, "s", &there), ImportOutcome::New(id("s")));
            assert_eq!(transfer(&here, "s", &there), ImportOutcome::Unchanged(id("s")));
            check_same(&here, &there, &format!("{kind:?} {seed}"));
        }
    }
}

fn check_same(here: &SessionEngine, there: &SessionEngine, name: &str) {
    let rows = [here.row(&id("s")).unwrap(), there.row(&id("s")).unwrap()];
    assert_eq!(
        (rows[0].tip, &rows[0].title, &rows[0].goal),
        (rows[1].tip, &rows[1].title, &rows[1].goal),
        "{name}"
    );
    assert_eq!(here.body(&id("s")).unwrap(), there.body(&id("s")).unwrap(), "{name}");
    for handle in here.handles(&id("s")).unwrap() {
        let handle = handle.parse().unwrap();
        let opened = |engine: &SessionEngine| engine.recall(&id("s"), handle, &Extent::Whole).unwrap();
        assert_eq!(opened(here), opened(there), "{name}");
    }
    for number in 1..=here.requests(&id("s")).unwrap().len() {
        let again = there.rebuild(&id("s"), number, &terms_of).unwrap();
        assert!(again.is_same, "{name}: request {number}");
    }
    assert_eq!(there.check_handles(&id("s")).unwrap().1, Vec::<String>::new(), "{name}");
}

#[test]
fn an_export_contains_abandoned_messages() {
    let (here, there) = (engine(), engine());
    let messages = long_chat(8);
    request(&here, "s", &chat(&messages), &terms("fanfold", 9_000));
    here.checkpoint(&id("s"), "the end").unwrap();
    here.rewind(&id("s"), RewindTarget::Length(4)).unwrap();
    transfer(&here, "s", &there);
    assert_eq!(there.row(&id("s")).unwrap().n_messages, 4);
    assert_eq!(there.redo(&id("s")).unwrap().n_after, messages.len() as u32);
    there.rewind(&id("s"), RewindTarget::Length(2)).unwrap();
    assert_eq!(there.restore(&id("s"), "the end").unwrap().n_after, messages.len() as u32);
}

#[test]
fn a_fork_is_imported_without_its_parent() {
    let (here, there) = (engine(), engine());
    let terms = terms("fanfold", 400);
    let messages = long_chat(30);
    request(&here, "s", &chat(&messages), &terms);
    let fork = here.fork(&id("s"), None, None).unwrap();
    let sent = request(&here, &fork.0, &chat(&messages), &terms).body;
    assert_eq!(transfer(&here, &fork.0, &there), ImportOutcome::New(fork.clone()));
    assert_eq!(there.handles(&fork).unwrap(), here.handles(&fork).unwrap());
    assert_eq!(there.check_handles(&fork).unwrap().1, Vec::<String>::new());
    assert_eq!(request(&there, &fork.0, &chat(&messages), &terms).body, sent);
    assert!(there.rebuild(&fork, 1, &terms_of).unwrap().is_same);
}

#[test]
fn a_second_import_of_a_conversation_adds_nothing() {
    let engine = engine();
    let messages = long_chat(30);
    let import = || Import {
        source: "elsewhere".into(),
        format: "chat".into(),
        messages: messages.iter().map(|message| (message.to_string(), None)).collect(),
        body: Some(chat(&messages)),
        title: Some("Brought\u{202e} here".into()),
        from: "a file".into(),
        ..Import::default()
    };
    let ImportOutcome::New(session) = engine.import(import()).unwrap() else { panic!("it is new") };
    assert_eq!(engine.import(import()).unwrap(), ImportOutcome::Unchanged(session.clone()));
    assert_eq!(engine.row(&session).unwrap().title.as_deref(), Some("Brought here"));
    assert_eq!(engine.body(&session).unwrap(), chat(&messages));
    let answer = request(&engine, &session.0, &chat(&messages), &terms("fanfold", 400));
    assert_eq!(answer.n_new, 0);
    assert!(answer.body.len() < chat(&messages).len() / 2);
}

#[test]
fn an_invalid_export_is_an_error() {
    let engine = engine();
    for line in ["{\"fanfold\":1}", "{\"fanfold\":99,\"id\":\"x\"}", "{", "[]"] {
        assert!(engine.import_line(line).is_err(), "{line}");
    }
    assert_eq!(engine.store().size().unwrap().n_sessions, 0);
}

#[test]
fn a_forged_export_leaves_nothing_that_doctor_complains_of() {
    let here = engine();
    request(&here, "s", &chat(&long_chat(20)), &terms("fanfold", 400));
    let whole: serde_json::Value = serde_json::from_str(&here.export_line(&id("s")).unwrap()).unwrap();
    let forgeries: [fn(&mut serde_json::Value); 5] = [
        |line| line["events"] = serde_json::json!([]),
        |line| line["events"][0]["body"] = serde_json::json!({}),
        |line| line["blobs"]["00"] = "unreferenced".into(),
        |line| line["messages"] = serde_json::json!([]),
        |line| line["events"][1]["kind"] = "unknown".into(),
    ];
    for (i, forge) in forgeries.into_iter().enumerate() {
        let mut line = whole.clone();
        forge(&mut line);
        let there = engine();
        let is_accepted = there.import_line(&line.to_string()).is_ok();
        assert_eq!(there.store().check(CheckMode::Report).unwrap(), [], "forgery {i}");
        assert!(is_accepted || i == 3, "forgery {i}");
    }
}

#[test]
fn a_later_export_extends_the_imported_session() {
    let (here, there) = (engine(), engine());
    let terms = terms("fanfold", 400);
    let messages = long_chat(40);
    request(&here, "s", &chat(&messages[..41]), &terms);
    assert_eq!(transfer(&here, "s", &there), ImportOutcome::New(id("s")));
    request(&here, "s", &chat(&messages), &terms);
    assert_eq!(transfer(&here, "s", &there), ImportOutcome::Extended(id("s")));
    assert_eq!(transfer(&here, "s", &there), ImportOutcome::Unchanged(id("s")));
    assert_eq!(there.store().size().unwrap().n_sessions, 1);
    check_same(&here, &there, "extended");
    // An older export adds nothing to a session that has continued here.
    let old = here.export_line(&id("s")).unwrap();
    let longer = [&messages[..], &[serde_json::json!({ "role": "user", "content": "and on" })]].concat();
    request(&there, "s", &chat(&longer), &terms);
    assert_eq!(there.import_line(&old).unwrap(), ImportOutcome::Unchanged(id("s")));
    assert_eq!(there.row(&id("s")).unwrap().n_messages, longer.len() as u32);
}

#[test]
fn an_import_from_a_moved_file_extends_the_session() {
    let engine = engine();
    let messages = long_chat(8);
    let import = |n: usize, from: &str| Import {
        id: Some(id("s")),
        source: "elsewhere".into(),
        format: "chat".into(),
        messages: messages[..n].iter().map(|message| (message.to_string(), None)).collect(),
        from: from.into(),
        ..Import::default()
    };
    assert_eq!(engine.import(import(5, "a file")).unwrap(), ImportOutcome::New(id("s")));
    assert_eq!(engine.import(import(9, "another file")).unwrap(), ImportOutcome::Extended(id("s")));
    assert_eq!(engine.import(import(5, "a file")).unwrap(), ImportOutcome::Unchanged(id("s")));
    assert_eq!(engine.row(&id("s")).unwrap().n_messages, 9);
}

#[test]
fn a_session_with_a_taken_id_is_imported_once_and_extended() {
    let (here, there) = (engine(), engine());
    let terms = terms("fanfold", 400);
    let messages = long_chat(40);
    request(&there, "s", &chat(&[serde_json::json!({ "role": "user", "content": "my own" })]), &terms);
    request(&here, "s", &chat(&messages[..41]), &terms);
    let ImportOutcome::New(imported) = transfer(&here, "s", &there) else { panic!("it is new") };
    assert_ne!(imported, id("s"));
    assert_eq!(transfer(&here, "s", &there), ImportOutcome::Unchanged(imported.clone()));
    request(&here, "s", &chat(&messages), &terms);
    assert_eq!(transfer(&here, "s", &there), ImportOutcome::Extended(imported.clone()));
    assert_eq!(transfer(&here, "s", &there), ImportOutcome::Unchanged(imported.clone()));
    assert_eq!(there.store().size().unwrap().n_sessions, 2);
    assert_eq!(there.body(&imported).unwrap(), chat(&messages));
    assert_eq!(there.row(&id("s")).unwrap().n_messages, 1);
}

#[test]
fn an_imported_fork_refers_to_its_own_parent() {
    let (here, there) = (engine(), engine());
    let terms = terms("fanfold", 400);
    let messages = long_chat(30);
    request(&there, "s", &chat(&[serde_json::json!({ "role": "user", "content": "my own" })]), &terms);
    request(&here, "s", &chat(&messages), &terms);
    let fork = here.fork(&id("s"), None, None).unwrap();
    // Imported alone, the fork has no parent: the session with that id is unrelated.
    assert_eq!(transfer(&here, &fork.0, &there), ImportOutcome::New(fork.clone()));
    assert_eq!(there.row(&fork).unwrap().parent, None);
    let other = engine();
    request(&other, "s", &chat(&[serde_json::json!({ "role": "user", "content": "my own" })]), &terms);
    let mut imported = fanfold_engine::ImportedIds::default();
    let mut transfer = |session: &fanfold_store::SessionId| {
        other.import_line_with(&here.export_line(session).unwrap(), &mut imported).unwrap()
    };
    let parent = transfer(&id("s")).id().clone();
    assert_ne!(parent, id("s"));
    assert_eq!(transfer(&fork), ImportOutcome::New(fork.clone()));
    assert_eq!(other.row(&fork).unwrap().parent.unwrap().0, parent);
    let events = other.store().events(&fork, 0).unwrap();
    let forked = events.iter().find(|event| event.kind == "forked").unwrap();
    assert!(forked.body.contains(&parent.0), "{}", forked.body);
    assert_eq!(other.handles(&fork).unwrap(), here.handles(&fork).unwrap());
    // A parent imported earlier is found by its id and its messages.
    let third = engine();
    third.import_line(&here.export_line(&id("s")).unwrap()).unwrap();
    third.import_line(&here.export_line(&fork).unwrap()).unwrap();
    assert_eq!(third.row(&fork).unwrap().parent.unwrap().0, id("s"));
}
