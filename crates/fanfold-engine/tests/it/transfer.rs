//! Sessions written down, and brought elsewhere.

use fanfold_core::Extent;
use fanfold_engine::{Back, Engine, Import, Imported};
use fanfold_testkit::generators::bodies::{BodyFormat, rich};

use crate::setting::{beginnings, chat, engine, id, long_chat, request, terms, terms_of};

fn bring(from: &Engine, session: &str, to: &Engine) -> Imported {
    let line = from.export_line(&id(session)).unwrap();
    assert!(Engine::is_line(&line) && !line.contains('\n'));
    to.import_line(&line).unwrap()
}

#[test]
fn what_is_brought_elsewhere_is_the_same_in_every_way() {
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
            assert_eq!(bring(&here, "s", &there), Imported::New(id("s")));
            assert_eq!(bring(&here, "s", &there), Imported::Known(id("s")));
            check_same(&here, &there, &format!("{kind:?} {seed}"));
        }
    }
}

fn check_same(here: &Engine, there: &Engine, name: &str) {
    let rows = [here.row(&id("s")).unwrap(), there.row(&id("s")).unwrap()];
    assert_eq!(
        (rows[0].tip, &rows[0].title, &rows[0].goal),
        (rows[1].tip, &rows[1].title, &rows[1].goal),
        "{name}"
    );
    assert_eq!(here.body(&id("s")).unwrap(), there.body(&id("s")).unwrap(), "{name}");
    for handle in here.handles(&id("s")).unwrap() {
        let handle = handle.parse().unwrap();
        let opened = |engine: &Engine| engine.recall(&id("s"), handle, &Extent::Whole).unwrap();
        assert_eq!(opened(here), opened(there), "{name}");
    }
    for number in 1..=here.requests(&id("s")).unwrap().len() {
        let again = there.rebuild(&id("s"), number, &terms_of).unwrap();
        assert!(again.is_same, "{name}: request {number}");
    }
    // Written down again it says the same, but for the moment of what happened.
    assert_eq!(there.check_handles(&id("s")).unwrap().1, Vec::<String>::new(), "{name}");
}

#[test]
fn what_was_left_behind_goes_with_it() {
    let (here, there) = (engine(), engine());
    let messages = long_chat(8);
    request(&here, "s", &chat(&messages), &terms("fanfold", 9_000));
    here.checkpoint(&id("s"), "the end").unwrap();
    here.rewind(&id("s"), Back::To(4)).unwrap();
    bring(&here, "s", &there);
    assert_eq!(there.row(&id("s")).unwrap().n_messages, 4);
    assert_eq!(there.redo(&id("s")).unwrap().n_after, messages.len() as u32);
    there.rewind(&id("s"), Back::To(2)).unwrap();
    assert_eq!(there.restore(&id("s"), "the end").unwrap().n_after, messages.len() as u32);
}

#[test]
fn a_fork_can_go_where_its_parent_is_not() {
    let (here, there) = (engine(), engine());
    let terms = terms("fanfold", 400);
    let messages = long_chat(30);
    request(&here, "s", &chat(&messages), &terms);
    let fork = here.fork(&id("s"), None, None).unwrap();
    let sent = request(&here, &fork.0, &chat(&messages), &terms).body;
    assert_eq!(bring(&here, &fork.0, &there), Imported::New(fork.clone()));
    assert_eq!(there.handles(&fork).unwrap(), here.handles(&fork).unwrap());
    assert_eq!(there.check_handles(&fork).unwrap().1, Vec::<String>::new());
    assert_eq!(request(&there, &fork.0, &chat(&messages), &terms).body, sent);
    assert!(there.rebuild(&fork, 1, &terms_of).unwrap().is_same);
}

#[test]
fn what_is_imported_twice_is_there_once_and_folds_like_any_other() {
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
    let Imported::New(session) = engine.import(import()).unwrap() else { panic!("it is new") };
    assert_eq!(engine.import(import()).unwrap(), Imported::Known(session.clone()));
    assert_eq!(engine.row(&session).unwrap().title.as_deref(), Some("Brought here"));
    assert_eq!(engine.body(&session).unwrap(), chat(&messages));
    let answer = request(&engine, &session.0, &chat(&messages), &terms("fanfold", 400));
    assert_eq!(answer.n_new, 0);
    assert!(answer.body.len() < chat(&messages).len() / 2);
}

#[test]
fn what_is_no_session_says_so() {
    let engine = engine();
    for line in ["{\"fanfold\":1}", "{\"fanfold\":99,\"id\":\"x\"}", "{", "[]"] {
        assert!(engine.import_line(line).is_err(), "{line}");
    }
    assert_eq!(engine.store().size().unwrap().n_sessions, 0);
}

#[test]
fn a_session_that_has_gone_on_goes_on_where_it_was_brought() {
    let (here, there) = (engine(), engine());
    let terms = terms("fanfold", 400);
    let messages = long_chat(40);
    request(&here, "s", &chat(&messages[..41]), &terms);
    assert_eq!(bring(&here, "s", &there), Imported::New(id("s")));
    request(&here, "s", &chat(&messages), &terms);
    assert_eq!(bring(&here, "s", &there), Imported::Grown(id("s")));
    assert_eq!(bring(&here, "s", &there), Imported::Known(id("s")));
    assert_eq!(there.store().size().unwrap().n_sessions, 1);
    check_same(&here, &there, "grown");
    // What has gone on there is no reason to bring the older one again.
    let old = here.export_line(&id("s")).unwrap();
    let longer = [&messages[..], &[serde_json::json!({ "role": "user", "content": "and on" })]].concat();
    request(&there, "s", &chat(&longer), &terms);
    assert_eq!(there.import_line(&old).unwrap(), Imported::Known(id("s")));
    assert_eq!(there.row(&id("s")).unwrap().n_messages, longer.len() as u32);
}

#[test]
fn a_session_whose_file_was_moved_goes_on() {
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
    assert_eq!(engine.import(import(5, "a file")).unwrap(), Imported::New(id("s")));
    assert_eq!(engine.import(import(9, "another file")).unwrap(), Imported::Grown(id("s")));
    assert_eq!(engine.import(import(5, "a file")).unwrap(), Imported::Known(id("s")));
    assert_eq!(engine.row(&id("s")).unwrap().n_messages, 9);
}

#[test]
fn a_session_whose_id_is_taken_is_brought_once_and_goes_on() {
    let (here, there) = (engine(), engine());
    let terms = terms("fanfold", 400);
    let messages = long_chat(40);
    request(&there, "s", &chat(&[serde_json::json!({ "role": "user", "content": "my own" })]), &terms);
    request(&here, "s", &chat(&messages[..41]), &terms);
    let Imported::New(brought) = bring(&here, "s", &there) else { panic!("it is new") };
    assert_ne!(brought, id("s"));
    assert_eq!(bring(&here, "s", &there), Imported::Known(brought.clone()));
    request(&here, "s", &chat(&messages), &terms);
    assert_eq!(bring(&here, "s", &there), Imported::Grown(brought.clone()));
    assert_eq!(bring(&here, "s", &there), Imported::Known(brought.clone()));
    assert_eq!(there.store().size().unwrap().n_sessions, 2);
    assert_eq!(there.body(&brought).unwrap(), chat(&messages));
    assert_eq!(there.row(&id("s")).unwrap().n_messages, 1);
}

#[test]
fn a_fork_is_brought_behind_its_own_parent() {
    let (here, there) = (engine(), engine());
    let terms = terms("fanfold", 400);
    let messages = long_chat(30);
    request(&there, "s", &chat(&[serde_json::json!({ "role": "user", "content": "my own" })]), &terms);
    request(&here, "s", &chat(&messages), &terms);
    let fork = here.fork(&id("s"), None, None).unwrap();
    // Alone, it has no parent: who has that id is another one.
    assert_eq!(bring(&here, &fork.0, &there), Imported::New(fork.clone()));
    assert_eq!(there.row(&fork).unwrap().parent, None);
    let other = engine();
    request(&other, "s", &chat(&[serde_json::json!({ "role": "user", "content": "my own" })]), &terms);
    let mut brought = fanfold_engine::Brought::default();
    let mut bring = |session: &fanfold_store::SessionId| {
        other.import_line_of(&here.export_line(session).unwrap(), &mut brought).unwrap()
    };
    let parent = bring(&id("s")).id().clone();
    assert_ne!(parent, id("s"));
    assert_eq!(bring(&fork), Imported::New(fork.clone()));
    assert_eq!(other.row(&fork).unwrap().parent.unwrap().0, parent);
    let events = other.store().events(&fork, 0).unwrap();
    let forked = events.iter().find(|event| event.kind == "forked").unwrap();
    assert!(forked.body.contains(&parent.0), "{}", forked.body);
    assert_eq!(other.handles(&fork).unwrap(), here.handles(&fork).unwrap());
    // Where the parent is here as it was, it is found without the file.
    let third = engine();
    third.import_line(&here.export_line(&id("s")).unwrap()).unwrap();
    third.import_line(&here.export_line(&fork).unwrap()).unwrap();
    assert_eq!(third.row(&fork).unwrap().parent.unwrap().0, id("s"));
}
