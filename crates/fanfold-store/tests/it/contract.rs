//! The test suite that every store passes.

use fanfold_store::{
    Batch, BlobId, EndReason, LockOutcome, Millis, NewMessage, NodeId, Op, Relation, Role, SessionFilter,
    SessionUpdate, Store, StoreError,
};

use crate::shorthand::*;

every_store! {
    messages_are_stored_byte_for_byte,
    roles_and_times_are_stored,
    shared_messages_are_stored_once,
    fork_shares_common_messages,
    nested_forks_have_separate_chains,
    append_after_rewind_preserves_old_messages,
    append_after_rewind_reuses_equal_messages,
    equal_messages_at_different_depths_are_distinct,
    chain_returns_the_requested_depths,
    owners_are_sessions_with_the_message_in_their_chain,
    failed_batch_changes_nothing,
    errors_name_the_missing_item,
    expected_tips_detect_concurrent_writes,
    titles_are_unique,
    sessions_are_listed_newest_first,
    session_filters_and_pages,
    rotation_inherits_its_root,
    second_end_does_not_replace_the_first,
    events_have_sequence_numbers_and_tips,
    blobs_are_stored_under_their_hash,
    named_values_are_separate_from_internal_ones,
    deleted_session_leaves_nothing_behind,
    garbage_collection_deletes_unreachable_messages,
    garbage_collection_preserves_what_events_refer_to,
    message_numbers_are_not_reused,
    locks_have_one_holder,
    locks_expire,
    size_counts_rows_and_bytes,
    large_batches_are_stored,
    unusual_characters_are_preserved,
}

fn messages_are_stored_byte_for_byte(store: &dyn Store) {
    write(store, vec![create("a")]);
    // Unusual spacing, escapes, a long number, and invalid JSON.
    let texts = [
        "{ \"role\" : \"user\",\"n\":1.10, \"t\":\"\\u00e9\\/\" }",
        "{\"n\":12345678901234567890123}",
        "no JSON",
        "",
    ];
    let messages = texts.map(|json| NewMessage { json: json.into(), at: None });
    let committed = write(store, vec![Op::Append(id("a"), messages.to_vec())]);
    assert_eq!(committed.n_new_messages, 4);
    let nodes = chain(store, "a");
    assert_eq!(nodes.iter().map(|node| &*node.json).collect::<Vec<_>>(), texts);
    let mut parent = None;
    for (depth, node) in nodes.iter().enumerate() {
        assert_eq!(node.id, NodeId::new(parent, &node.json));
        assert_eq!((node.parent, node.depth as usize), (parent, depth));
        assert_eq!(store.node(node.id).unwrap().as_ref(), Some(node));
        assert_eq!(store.node_by_number(node.number).unwrap().as_ref(), Some(node));
        parent = Some(node.id);
    }
    assert_eq!(committed.tips, [(id("a"), parent)]);
    assert_eq!((tip(store, "a"), session(store, "a").n_messages), (parent, 4));
}

fn roles_and_times_are_stored(store: &dyn Store) {
    let messages = vec![
        NewMessage { json: r#"{"role":"assistant"}"#.into(), at: Some(Millis(-5)) },
        NewMessage { json: r#"{"role":"tool"}"#.into(), at: None },
    ];
    write_at(store, 70, vec![create("a"), Op::Append(id("a"), messages)]).unwrap();
    let found: Vec<_> = chain(store, "a").iter().map(|node| (node.role, node.at.0)).collect();
    assert_eq!(found, [(Role::Assistant, -5), (Role::Tool, 70)]);
}

fn shared_messages_are_stored_once(store: &dyn Store) {
    assert_eq!(write(store, vec![create("a"), append("a", &["one", "two"])]).n_new_messages, 2);
    let again = write_at(store, 9, vec![create("b"), append("b", &["one", "two"])]).unwrap();
    assert_eq!((again.n_new_messages, store.size().unwrap().n_nodes), (0, 2));
    assert_eq!((tip(store, "a"), contents(store, "b")), (tip(store, "b"), "one two".into()));
    // The time is that of the first commit.
    assert_eq!(chain(store, "b")[0].at, Millis(1));
    let more = write(store, vec![append("a", &["three"]), append("b", &["three", "four"])]);
    assert_eq!((more.n_new_messages, contents(store, "b")), (2, "one two three four".into()));
    assert_eq!(contents(store, "a"), "one two three");
}

fn named_values_are_separate_from_internal_ones(store: &dyn Store) {
    // Names of the store's internal values are available and do not collide with them.
    let names = ["limit\nhttps://a/v1\nm", "numbered", "indexed", "version", ""];
    for name in names {
        assert_eq!(store.named_value(name).unwrap(), None, "{name:?}");
    }
    write(store, vec![create("a"), append("a", &["one"])]);
    write(store, names.iter().map(|name| Op::SetNamedValue((*name).into(), -7)).collect());
    write(store, vec![Op::SetNamedValue("numbered".into(), i64::MAX), append("a", &["two"])]);
    assert_eq!(
        (store.named_value("version").unwrap(), store.named_value("numbered").unwrap()),
        (Some(-7), Some(i64::MAX))
    );
    store.collect_garbage().unwrap();
    assert_eq!(store.named_value("").unwrap(), Some(-7));
    write(store, vec![append("a", &["three"])]);
    assert!(chain(store, "a")[2].number < 100, "internal numbering is unaffected");
    // A failed batch sets no value.
    let failing = write_at(store, 9, vec![Op::SetNamedValue("".into(), 1), append("nobody", &["x"])]);
    assert!(failing.is_err());
    assert_eq!(store.named_value("").unwrap(), Some(-7));
}

fn fork_shares_common_messages(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["one", "two", "three"])]);
    let two = node(store, "a", "two");
    let fork = create_from("b", Some(("a", Relation::Fork)), Some(two));
    let committed = write(store, vec![fork, append("b", &["other"])]);
    assert_eq!(committed.n_new_messages, 1);
    assert_eq!(
        (contents(store, "a"), contents(store, "b")),
        ("one two three".into(), "one two other".into())
    );
    write(store, vec![append("a", &["four"]), append("b", &["more"])]);
    assert_eq!(
        (contents(store, "a"), contents(store, "b")),
        ("one two three four".into(), "one two other more".into())
    );
    assert_eq!(session(store, "b").parent, Some((id("a"), Relation::Fork)));
    assert_eq!(store.size().unwrap().n_nodes, 6);
}

fn nested_forks_have_separate_chains(store: &dyn Store) {
    write(store, vec![create("s0"), append("s0", &["w0", "w1"])]);
    // Each session forks the previous one before its last message, and appends two messages.
    for i in 1..=12 {
        let last = format!("s{}", i - 1);
        let nodes = chain(store, &last);
        let from = nodes[nodes.len() - 2].id;
        let name = format!("s{i}");
        let fork = create_from(&name, Some((&last, Relation::Fork)), Some(from));
        let (a, b) = (format!("a{i}"), format!("b{i}"));
        write(store, vec![fork, append(&name, &[&a, &b])]);
    }
    assert_eq!(contents(store, "s12"), "w0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 b12");
    assert_eq!(contents(store, "s3"), "w0 a1 a2 a3 b3");
    let owners = store.owners(node(store, "s12", "a5")).unwrap();
    assert_eq!(owners.len(), 8, "s5 to s12: {owners:?}");
    assert_eq!(store.owners(node(store, "s3", "b3")).unwrap(), [id("s3")]);
    assert_eq!(store.owners(node(store, "s3", "w0")).unwrap().len(), 13);
    let tip = tip(store, "s12").unwrap();
    let middle: Vec<String> = store.chain(tip, 4..7).unwrap().iter().map(content).collect();
    assert_eq!(middle, ["a4", "a5", "a6"]);
}

fn append_after_rewind_preserves_old_messages(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["one", "two", "three"])]);
    let (one, three) = (node(store, "a", "one"), node(store, "a", "three"));
    let committed = write(store, vec![Op::MoveTip(id("a"), Some(one)), append("a", &["zwei"])]);
    assert_eq!((committed.n_new_messages, committed.tips.len()), (1, 2));
    assert_eq!((contents(store, "a"), session(store, "a").n_messages), ("one zwei".into(), 2));
    // The old messages still exist, so the session can return to them.
    assert!(store.node(three).unwrap().is_some());
    assert!(store.owners(three).unwrap().is_empty());
    write(store, vec![Op::MoveTip(id("a"), Some(three))]);
    assert_eq!((contents(store, "a"), session(store, "a").n_messages), ("one two three".into(), 3));
    write(store, vec![Op::MoveTip(id("a"), None)]);
    assert_eq!((tip(store, "a"), session(store, "a").n_messages), (None, 0));
}

fn append_after_rewind_reuses_equal_messages(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["one", "two", "three"])]);
    let one = node(store, "a", "one");
    let again = write(store, vec![Op::MoveTip(id("a"), Some(one)), append("a", &["two", "drei", "vier"])]);
    assert_eq!((again.n_new_messages, contents(store, "a")), (2, "one two drei vier".into()));
    let back = write(store, vec![Op::MoveTip(id("a"), None), append("a", &["one", "two", "three"])]);
    assert_eq!((back.n_new_messages, contents(store, "a")), (0, "one two three".into()));
}

fn equal_messages_at_different_depths_are_distinct(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["yes", "yes", "yes"])]);
    assert_eq!((contents(store, "a"), store.size().unwrap().n_nodes), ("yes yes yes".into(), 3));
}

fn chain_returns_the_requested_depths(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["w0", "w1", "w2", "w3", "w4"])]);
    let (mid, tip) = (node(store, "a", "w2"), tip(store, "a").unwrap());
    let words =
        |tip, depths| store.chain(tip, depths).unwrap().iter().map(content).collect::<Vec<_>>().join(" ");
    assert_eq!(words(tip, 1..3), "w1 w2");
    assert_eq!(words(mid, 0..9), "w0 w1 w2");
    assert_eq!(words(tip, 4..u32::MAX), "w4");
    assert_eq!(words(tip, 5..9), "");
    assert_eq!(words(tip, 2..2), "");
    let part = store.chain(tip, 3..5).unwrap();
    assert_eq!(part[0].parent, Some(mid));
}

fn owners_are_sessions_with_the_message_in_their_chain(store: &dyn Store) {
    write_at(store, 5, vec![create("later"), append("later", &["one", "two"])]).unwrap();
    let two = node(store, "later", "two");
    write_at(store, 3, vec![create("sooner"), append("sooner", &["one", "two", "three"])]).unwrap();
    assert_eq!(store.owners(two).unwrap(), [id("sooner"), id("later")]);
    assert_eq!(store.owners(node(store, "sooner", "three")).unwrap(), [id("sooner")]);
    let one = node(store, "later", "one");
    write(store, vec![Op::MoveTip(id("later"), Some(one))]);
    assert_eq!(store.owners(two).unwrap(), [id("sooner")]);
    assert_eq!(store.owners(one).unwrap(), [id("sooner"), id("later")]);
}

fn failed_batch_changes_nothing(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["one"]), title("a", "first")]);
    let before = (session(store, "a"), store.size().unwrap().n_nodes);
    let ops = vec![
        append("a", &["two"]),
        create("b"),
        note("a", "fold", "{}"),
        Op::PutBlob(b"kept".to_vec()),
        Op::Update(id("a"), SessionUpdate::Goal(Some("more".into()))),
        Op::Update(id("a"), SessionUpdate::End(EndReason::Reset)),
        title("b", "second"),
        append("missing", &["x"]),
    ];
    for at in 0..ops.len() {
        // The failing operation is inserted at every position.
        let mut ops = ops.clone();
        let last = ops.pop().unwrap();
        ops.insert(at, last);
        assert!(matches!(write_at(store, 8, ops), Err(StoreError::NoSession(name)) if name == id("missing")));
    }
    assert_eq!((session(store, "a"), store.size().unwrap().n_nodes), before);
    assert!(store.session(&id("b")).unwrap().is_none());
    assert!(store.events(&id("a"), 0).unwrap().is_empty());
    assert!(store.blob(BlobId::new(b"kept")).unwrap().is_none());
    assert_eq!(contents(store, "a"), "one");
}

fn errors_name_the_missing_item(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["one"])]);
    let nowhere = NodeId([7; 32]);
    let fails = |op: Op| write_at(store, 2, vec![op]).unwrap_err().to_string();
    assert_eq!(fails(create("a")), "session a already exists");
    assert_eq!(fails(create_from("b", Some(("x", Relation::Fork)), None)), "there is no session x");
    assert_eq!(fails(create_from("b", None, Some(nowhere))), format!("there is no message {nowhere}"));
    assert_eq!(fails(Op::MoveTip(id("a"), Some(nowhere))), format!("there is no message {nowhere}"));
    for op in [
        Op::Append(id("x"), Vec::new()),
        Op::MoveTip(id("x"), None),
        note("x", "fold", "{}"),
        Op::Update(id("x"), SessionUpdate::Reopen),
        Op::Delete(id("x")),
    ] {
        assert_eq!(fails(op), "there is no session x");
    }
    assert!(matches!(store.chain(nowhere, 0..1), Err(StoreError::NoNode(node)) if node == nowhere));
    assert!(matches!(store.owners(nowhere), Err(StoreError::NoNode(node)) if node == nowhere));
    assert!(matches!(store.events(&id("x"), 0), Err(StoreError::NoSession(name)) if name == id("x")));
    assert_eq!(store.session(&id("x")).unwrap(), None);
    assert_eq!(store.node(nowhere).unwrap(), None);
    assert_eq!(store.node_by_number(u64::MAX).unwrap(), None);
    assert_eq!(store.blob(BlobId([0; 32])).unwrap(), None);
}

fn expected_tips_detect_concurrent_writes(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["one"])]);
    let seen = tip(store, "a");
    let next = |expect, word: &str| {
        let expect = vec![(id("a"), expect)];
        store.commit(&Batch { at: Millis(2), expected_tips: expect, ops: vec![append("a", &[word])] })
    };
    next(seen, "two").unwrap();
    assert!(matches!(next(seen, "three"), Err(StoreError::Conflict(name)) if name == id("a")));
    assert!(matches!(next(None, "three"), Err(StoreError::Conflict(_))));
    assert_eq!(contents(store, "a"), "one two");
    let expect = vec![(id("x"), None)];
    let missing = store.commit(&Batch { at: Millis(2), expected_tips: expect, ops: Vec::new() });
    assert!(matches!(missing, Err(StoreError::NoSession(name)) if name == id("x")));
}

fn titles_are_unique(store: &dyn Store) {
    write(store, vec![create("a"), create("b"), title("a", "Task")]);
    let taken = write_at(store, 2, vec![title("b", "Task")]).unwrap_err();
    assert_eq!(taken.to_string(), "session a already has the title \"Task\"");
    // The same title again, a title that was released, and two swapped titles.
    write(store, vec![title("a", "Task"), title("b", "task")]);
    write(
        store,
        vec![Op::Update(id("a"), SessionUpdate::Title(None)), title("b", "Task"), title("a", "task")],
    );
    assert_eq!(session(store, "b").title.as_deref(), Some("Task"));
    assert_eq!(session(store, "a").title.as_deref(), Some("task"));
    assert!(write_at(store, 2, vec![create("c"), title("c", "Task")]).is_err());
    write(store, vec![Op::Delete(id("b")), create("d"), title("d", "Task")]);
    assert_eq!(session(store, "d").title.as_deref(), Some("Task"));
}

fn names(store: &dyn Store, filter: &SessionFilter) -> String {
    let rows = store.sessions(filter).unwrap();
    rows.into_iter().map(|row| row.id.0).collect::<Vec<_>>().join(" ")
}

fn sessions_are_listed_newest_first(store: &dyn Store) {
    for (at, name) in [(1, "a"), (3, "c"), (2, "b"), (3, "d")] {
        write_at(store, at, vec![create(name)]).unwrap();
    }
    assert_eq!(names(store, &SessionFilter::default()), "d c b a");
    write_at(store, 9, vec![append("a", &["one"])]).unwrap();
    assert_eq!(names(store, &SessionFilter::default()), "a d c b");
    assert_eq!(session(store, "a").started_at, Millis(1));
    let listed = store.sessions(&SessionFilter::default()).unwrap();
    assert_eq!(listed[0], session(store, "a"));
}

fn session_filters_and_pages(store: &dyn Store) {
    write_at(store, 1, vec![create("a"), title("a", "Task")]).unwrap();
    write_at(store, 2, vec![create_from("b", Some(("a", Relation::Rotation)), None)]).unwrap();
    write_at(store, 3, vec![create_from("c", Some(("a", Relation::Fork)), None)]).unwrap();
    write_at(store, 4, vec![create_from("d", Some(("c", Relation::Subagent)), None)]).unwrap();
    let all = SessionFilter::default;
    assert_eq!(names(store, &SessionFilter { root: Some(id("a")), ..all() }), "b a");
    assert_eq!(names(store, &SessionFilter { parent: Some(id("a")), ..all() }), "c b");
    assert_eq!(names(store, &SessionFilter { title: Some("Task".into()), ..all() }), "a");
    assert_eq!(names(store, &SessionFilter { source: Some("test".into()), limit: Some(2), ..all() }), "d c");
    assert_eq!(names(store, &SessionFilter { source: Some("other".into()), ..all() }), "");
    assert_eq!(
        names(store, &SessionFilter { since: Some(Millis(2)), before: Some(Millis(4)), ..all() }),
        "c b"
    );
    assert_eq!(names(store, &SessionFilter { offset: 3, ..all() }), "a");
    assert_eq!(names(store, &SessionFilter { offset: 1, limit: Some(2), ..all() }), "c b");
    assert_eq!(names(store, &SessionFilter { limit: Some(0), ..all() }), "");
    assert_eq!(names(store, &SessionFilter { limit: Some(usize::MAX), offset: usize::MAX, ..all() }), "");
}

fn rotation_inherits_its_root(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["one"])]);
    let tip = tip(store, "a");
    write(
        store,
        vec![
            Op::Update(id("a"), SessionUpdate::End(EndReason::Compression)),
            create_from("b", Some(("a", Relation::Rotation)), tip),
            create_from("c", Some(("b", Relation::Rotation)), tip),
            create_from("d", Some(("c", Relation::Fork)), tip),
        ],
    );
    let roots = ["a", "b", "c", "d"].map(|name| session(store, name).root.0);
    assert_eq!(roots, ["a", "a", "a", "d"]);
    assert_eq!(contents(store, "c"), "one");
}

fn second_end_does_not_replace_the_first(store: &dyn Store) {
    write(store, vec![create("a")]);
    let end =
        |at, reason| write_at(store, at, vec![Op::Update(id("a"), SessionUpdate::End(reason))]).unwrap();
    end(4, EndReason::Other("tired".into()));
    end(5, EndReason::Reset);
    assert_eq!(session(store, "a").ended, Some((Millis(4), EndReason::Other("tired".into()))));
    write(store, vec![Op::Update(id("a"), SessionUpdate::Reopen)]);
    assert_eq!(session(store, "a").ended, None);
    end(6, EndReason::Branched);
    assert_eq!(session(store, "a").ended, Some((Millis(6), EndReason::Branched)));
    write(
        store,
        vec![
            Op::Update(id("a"), SessionUpdate::Goal(Some("win".into()))),
            Op::Update(id("a"), SessionUpdate::Model("m".into())),
        ],
    );
    let row = session(store, "a");
    assert_eq!((row.goal.as_deref(), row.model.as_deref()), (Some("win"), Some("m")));
}

fn events_have_sequence_numbers_and_tips(store: &dyn Store) {
    write(
        store,
        vec![create("a"), note("a", "first", "{}"), append("a", &["one"]), note("a", "second", "[1, 2]")],
    );
    write_at(store, 6, vec![note("a", "third", "\"\"")]).unwrap();
    let events = store.events(&id("a"), 0).unwrap();
    let found: Vec<_> = events.iter().map(|event| (event.seq, event.at.0, event.kind.as_str())).collect();
    assert_eq!(found, [(0, 1, "first"), (1, 1, "second"), (2, 6, "third")]);
    assert_eq!((events[0].tip, events[1].tip), (None, tip(store, "a")));
    assert_eq!(events[1].body, "[1, 2]");
    assert_eq!(store.events(&id("a"), 2).unwrap(), events[2..]);
    assert_eq!(store.events(&id("a"), 9).unwrap(), []);
    assert_eq!((session(store, "a").n_events, session(store, "a").updated_at), (3, Millis(6)));
}

fn blobs_are_stored_under_their_hash(store: &dyn Store) {
    let bytes: Vec<u8> = (0..=255).collect();
    write(store, vec![Op::PutBlob(bytes.clone()), Op::PutBlob(bytes.clone()), Op::PutBlob(Vec::new())]);
    write(store, vec![Op::PutBlob(bytes.clone())]);
    assert_eq!(store.blob(BlobId::new(&bytes)).unwrap(), Some(bytes));
    assert_eq!(store.blob(BlobId::new(b"")).unwrap(), Some(Vec::new()));
}

fn deleted_session_leaves_nothing_behind(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["one"]), note("a", "fold", "{}")]);
    write(store, vec![create_from("b", Some(("a", Relation::Fork)), tip(store, "a"))]);
    store.lock(&id("a"), "me", 1000, Millis(0)).unwrap();
    write(store, vec![Op::Delete(id("a"))]);
    assert_eq!(store.session(&id("a")).unwrap(), None);
    assert!(matches!(store.events(&id("a"), 0), Err(StoreError::NoSession(_))));
    assert_eq!(contents(store, "b"), "one");
    assert_eq!(session(store, "b").parent, Some((id("a"), Relation::Fork)));
    // Its id and lock are available again, and a new session has none of its events.
    write(store, vec![create("a")]);
    assert_eq!((session(store, "a").n_events, store.events(&id("a"), 0).unwrap()), (0, Vec::new()));
    assert!(matches!(store.lock(&id("a"), "you", 1000, Millis(1)).unwrap(), LockOutcome::Acquired(_)));
    write(store, vec![Op::Delete(id("a")), create("a"), note("a", "new", "{}"), Op::Delete(id("a"))]);
    assert_eq!(store.size().unwrap().n_events, 0);
}

fn garbage_collection_deletes_unreachable_messages(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["one", "two", "three", "four"])]);
    let (two, four) = (node(store, "a", "two"), node(store, "a", "four"));
    write(
        store,
        vec![create_from("b", Some(("a", Relation::Fork)), Some(two)), append("b", &["drei", "vier"])],
    );
    write(
        store,
        vec![
            create_from("c", Some(("b", Relation::Fork)), Some(node(store, "b", "drei"))),
            append("c", &["x"]),
        ],
    );
    assert_eq!(store.collect_garbage().unwrap(), 0);
    write(store, vec![Op::Delete(id("a"))]);
    assert_eq!(store.collect_garbage().unwrap(), 2);
    assert!(store.node(four).unwrap().is_none());
    assert_eq!(
        (contents(store, "b"), contents(store, "c")),
        ("one two drei vier".into(), "one two drei x".into())
    );
    // The position is free and is used again.
    write(store, vec![create_from("e", None, Some(two)), append("e", &["three"])]);
    assert_eq!(contents(store, "e"), "one two three");
    write(store, vec![Op::Delete(id("b")), Op::Delete(id("e"))]);
    assert_eq!(store.collect_garbage().unwrap(), 2, "vier and three");
    assert_eq!(contents(store, "c"), "one two drei x");
    write(store, vec![Op::Delete(id("c"))]);
    assert_eq!((store.collect_garbage().unwrap(), store.size().unwrap().n_nodes), (4, 0));
    assert_eq!(store.collect_garbage().unwrap(), 0);
    write(store, vec![create("f"), append("f", &["one"])]);
    assert_eq!(contents(store, "f"), "one");
}

fn garbage_collection_preserves_what_events_refer_to(store: &dyn Store) {
    let (named, other) = (b"named".to_vec(), b"other".to_vec());
    write(
        store,
        vec![
            create("a"),
            append("a", &["one", "two"]),
            Op::PutBlob(named.clone()),
            Op::PutBlob(other.clone()),
        ],
    );
    let two = tip(store, "a").unwrap();
    let body = format!("{{\"blob\":\"{}\"}}", BlobId::new(&named));
    write(store, vec![note("a", "checkpoint", &body), Op::MoveTip(id("a"), None)]);
    assert_eq!(store.collect_garbage().unwrap(), 0);
    assert_eq!(store.chain(two, 0..9).unwrap().len(), 2);
    assert_eq!(
        (store.blob(BlobId::new(&named)).unwrap(), store.blob(BlobId::new(&other)).unwrap()),
        (Some(named), None)
    );
    write(store, vec![Op::Delete(id("a"))]);
    assert_eq!(store.collect_garbage().unwrap(), 2);
    assert_eq!(store.blob(BlobId::new(b"named")).unwrap(), None);
}

fn message_numbers_are_not_reused(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["one", "two"])]);
    let highest = chain(store, "a")[1].number;
    write(store, vec![Op::Delete(id("a"))]);
    store.collect_garbage().unwrap();
    write(store, vec![create("b"), append("b", &["three", "four"])]);
    let numbers: Vec<u64> = chain(store, "b").iter().map(|node| node.number).collect();
    assert!(numbers[0] > highest && numbers[1] > numbers[0], "{highest} {numbers:?}");
    assert_eq!(store.node_by_number(highest).unwrap(), None);
}

fn locks_have_one_holder(store: &dyn Store) {
    write(store, vec![create("a"), create("b")]);
    let take = |name: &str, holder: &str, now| store.lock(&id(name), holder, 100, Millis(now)).unwrap();
    let LockOutcome::Acquired(lock) = take("a", "me", 0) else { panic!("the lock is free") };
    assert_eq!((lock.session, lock.holder.as_str(), lock.until), (id("a"), "me", Millis(100)));
    let LockOutcome::HeldByOther(lock) = take("a", "you", 50) else { panic!("the lock is held") };
    assert_eq!((lock.holder.as_str(), lock.until), ("me", Millis(100)));
    assert!(matches!(take("b", "you", 50), LockOutcome::Acquired(_)));
    // The holder renews the lock; another process cannot release it.
    let LockOutcome::Acquired(lock) = take("a", "me", 60) else { panic!("the holder can renew its lock") };
    assert_eq!(lock.until, Millis(160));
    store.unlock(&id("a"), "you").unwrap();
    assert!(matches!(take("a", "you", 120), LockOutcome::HeldByOther(_)));
    store.unlock(&id("a"), "me").unwrap();
    assert!(matches!(take("a", "you", 120), LockOutcome::Acquired(_)));
    store.unlock(&id("nobody"), "me").unwrap();
}

fn locks_expire(store: &dyn Store) {
    write(store, vec![create("a")]);
    let take = |holder: &str, now| store.lock(&id("a"), holder, 100, Millis(now)).unwrap();
    take("dead", 0);
    assert!(matches!(take("next", 99), LockOutcome::HeldByOther(_)));
    assert!(
        matches!(take("next", 100), LockOutcome::Acquired(lock) if lock.holder == "next" && lock.until == Millis(200))
    );
    // The previous holder has lost the lock and cannot release it.
    assert!(matches!(take("dead", 150), LockOutcome::HeldByOther(_)));
    store.unlock(&id("a"), "dead").unwrap();
    assert!(matches!(take("dead", 150), LockOutcome::HeldByOther(lock) if lock.holder == "next"));
    assert!(
        matches!(store.lock(&id("a"), "next", i64::MAX, Millis(5)).unwrap(), LockOutcome::Acquired(lock) if lock.until == Millis(i64::MAX))
    );
}

fn size_counts_rows_and_bytes(store: &dyn Store) {
    let empty = store.size().unwrap();
    assert_eq!((empty.n_sessions, empty.n_nodes, empty.n_json_bytes, empty.n_events), (0, 0, 0, 0));
    write(store, vec![create("a"), create("b"), append("a", &["one", "zwölf"]), note("b", "x", "{}")]);
    let size = store.size().unwrap();
    assert_eq!((size.n_sessions, size.n_nodes, size.n_events), (2, 2, 1));
    assert_eq!(size.n_json_bytes as usize, json("one").len() + json("zwölf").len());
}

fn large_batches_are_stored(store: &dyn Store) {
    let words: Vec<String> = (0..331).map(|i| format!("w{i}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(write(store, vec![create("a"), append("a", &words)]).n_new_messages, 331);
    assert_eq!(contents(store, "a"), words.join(" "));
    let numbers: Vec<u64> = chain(store, "a").iter().map(|node| node.number).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    let large = "x".repeat(3_000_000);
    write(store, vec![append("a", &[&large])]);
    assert_eq!(chain(store, "a")[331].json.len(), json(&large).len());
}

fn unusual_characters_are_preserved(store: &dyn Store) {
    let odd = "'\"\\ %_ ; -- 日本語 🙂 \u{202e}";
    let nul = "{\"role\":\"user\",\"content\":\"a\0b\"}";
    let name = id(odd);
    write(
        store,
        vec![
            create(odd),
            title(odd, odd),
            note(odd, odd, "{\"a\":\"\0\"}"),
            Op::Append(name.clone(), vec![NewMessage { json: nul.into(), at: None }]),
        ],
    );
    let row = store.session(&name).unwrap().unwrap();
    assert_eq!(row.title.as_deref(), Some(odd));
    assert_eq!(&*store.chain(row.tip.unwrap(), 0..1).unwrap()[0].json, nul);
    assert_eq!(store.events(&name, 0).unwrap()[0].body, "{\"a\":\"\0\"}");
    assert_eq!(store.size().unwrap().n_json_bytes as usize, nul.len());
    assert_eq!(
        store.sessions(&SessionFilter { title: Some(odd.into()), ..SessionFilter::default() }).unwrap(),
        [row]
    );
}
