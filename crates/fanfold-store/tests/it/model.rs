//! Compares every store with a reference model on random batches.

use std::collections::BTreeMap;

use fanfold_store::{
    Batch, EndReason, Millis, NewMessage, Node, NodeId, Op, Relation, SessionFilter, SessionUpdate,
    SqliteStore, Store,
};
use proptest::prelude::*;

use crate::reference_model::ReferenceModel;
use crate::shorthand::*;

/// The seed of a random operation: the session, the kind of operation, the text, and an earlier message.
type Seed = (u8, u8, u8, u16);

fn op((who, kind, word, which): Seed, seen: &[NodeId]) -> Op {
    let name = |who: u8| format!("s{}", who % 5);
    let who_name = name(who);
    // Only three texts, so that chains share messages.
    let text = |n: u8| format!("w{}", n % 3);
    let node = (!seen.is_empty()).then(|| seen[usize::from(which) % seen.len()]);
    let parent = [None, Some(Relation::Fork), Some(Relation::Rotation), Some(Relation::Subagent)];
    match kind % 14 {
        0 | 1 => {
            let parent_name = name(word);
            let parent = parent[usize::from(which) % 4].map(|relation| (parent_name.as_str(), relation));
            create_from(&who_name, parent, node)
        }
        2..=6 => {
            let words: Vec<String> = (0..=which % 3).map(|i| text(word.wrapping_add(i as u8))).collect();
            append(&who_name, &words.iter().map(String::as_str).collect::<Vec<_>>())
        }
        7 | 8 => Op::MoveTip(id(&who_name), node.filter(|_| word % 8 != 0)),
        9 => note(&who_name, &text(word), &format!("{{\"n\":{which}}}")),
        10 => Op::Update(id(&who_name), SessionUpdate::Title((word % 4 != 0).then(|| text(word)))),
        11 => Op::Update(
            id(&who_name),
            [
                SessionUpdate::Goal(Some(text(word))),
                SessionUpdate::Model(text(word)),
                SessionUpdate::End(EndReason::from_name(&text(word))),
                SessionUpdate::Reopen,
            ][usize::from(which) % 4]
                .clone(),
        ),
        12 => Op::Append(
            id(&who_name),
            vec![NewMessage { json: json(&text(word)), at: Some(Millis(which.into())) }],
        ),
        _ => Op::Delete(id(&who_name)),
    }
}

/// A message without its number, which stores allocate differently.
fn without_number(node: &Node) -> Node {
    Node { number: 0, ..node.clone() }
}

/// The results of all read methods as text.
fn read_all(store: &dyn Store, seen: &[NodeId]) -> BTreeMap<String, String> {
    let mut answers = BTreeMap::new();
    for row in store.sessions(&SessionFilter::default()).unwrap() {
        let events = store.events(&row.id, 0).unwrap();
        let chain: Vec<Node> = chain(store, &row.id.0).iter().map(without_number).collect();
        answers.insert(format!("session {}", row.id), format!("{row:?} {events:?} {chain:?}"));
    }
    for id in seen {
        let node = store.node(*id).unwrap();
        if let Some(node) = &node {
            assert_eq!(store.node_by_number(node.number).unwrap().as_ref(), Some(node));
        }
        let owners = store.owners(*id).map_err(|error| error.to_string());
        let part = store.chain(*id, 1..3).map(|nodes| nodes.iter().map(without_number).collect::<Vec<_>>());
        let part = part.map_err(|error| error.to_string());
        answers.insert(
            format!("node {id}"),
            format!("{:?} {owners:?} {part:?}", node.as_ref().map(without_number)),
        );
    }
    let size = store.size().unwrap();
    answers.insert(
        "size".into(),
        format!("{:?}", (size.n_sessions, size.n_nodes, size.n_json_bytes, size.n_events)),
    );
    answers
}

/// Writes the same batches to a reference model and to `store`, and compares all results.
pub(crate) fn compare(store: &dyn Store, batches: &[(Vec<Seed>, u8)]) {
    let model = ReferenceModel::default();
    let mut seen: Vec<NodeId> = Vec::new();
    for (i, (seeds, extra)) in batches.iter().enumerate() {
        let ops: Vec<Op> = seeds.iter().map(|seed| op(*seed, &seen)).collect();
        let current_tip = |name: &str| model.session(&id(name)).unwrap().map(|row| (row.id, row.tip));
        let expected_tips = match extra % 6 {
            0 => current_tip("s0").into_iter().collect(),
            1 => vec![(id("s1"), seen.last().copied())],
            _ => Vec::new(),
        };
        let batch = Batch { at: Millis(i as i64 * i64::from(*extra)), expected_tips, ops };
        let expected = model.commit(&batch).map_err(|error| error.to_string());
        let found = store.commit(&batch).map_err(|error| error.to_string());
        assert_eq!(found, expected, "{batch:?}");
        for (_, tip) in expected.into_iter().flat_map(|committed| committed.tips) {
            seen.extend(tip.filter(|tip| !seen.contains(tip)));
        }
        if extra % 9 == 0 {
            assert_eq!(store.collect_garbage().unwrap(), model.collect_garbage().unwrap());
        }
    }
    assert_eq!(read_all(store, &seen), read_all(&model, &seen));
}

/// Random batches.
pub(crate) fn batches() -> impl Strategy<Value = Vec<(Vec<Seed>, u8)>> {
    let seeds = prop::collection::vec(any::<Seed>(), 1..5);
    prop::collection::vec((seeds, any::<u8>()), 1..25)
}

/// Creates a test runner with [`n_cases`] cases.
fn runner(n: u32) -> proptest::test_runner::TestRunner {
    let config = ProptestConfig { cases: n_cases(n), failure_persistence: None, ..ProptestConfig::default() };
    proptest::test_runner::TestRunner::new(config)
}

/// Returns the number of test cases: `n`, or 50 times `n` with `FANFOLD_MANY`.
pub(crate) fn n_cases(n: u32) -> u32 {
    if std::env::var_os("FANFOLD_MANY").is_some() { n * 50 } else { n }
}

#[test]
fn sqlite_behaves_like_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let n = std::cell::Cell::new(0);
    let mut runner = runner(60);
    let result = runner.run(&(batches(),), |(batches,)| {
        n.set(n.get() + 1);
        let store = SqliteStore::open(&folder.path().join(format!("{}.db", n.get()))).unwrap();
        compare(&store, &batches);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn postgres_behaves_like_the_model() {
    let Some(database) = crate::cluster::database() else { return };
    let mut runner = runner(25);
    let result = runner.run(&(batches(),), |(batches,)| {
        crate::postgres::drop_store(&database);
        compare(&*crate::cluster::open(&database), &batches);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
