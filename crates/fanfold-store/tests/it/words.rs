//! Short ways to write a batch.

use fanfold_store::search::{Query, SearchSpec};
use fanfold_store::{
    Batch, CommitSummary, Millis, NewEvent, NewMessage, NewSession, Node, NodeId, Op, Relation,
    SessionChange, SessionId, SessionRow, Store, StoreError,
};

/// An id.
pub(crate) fn id(name: &str) -> SessionId {
    SessionId(name.to_owned())
}

/// A session of its own.
pub(crate) fn create(name: &str) -> Op {
    create_from(name, None, None)
}

/// A session that comes from another one.
pub(crate) fn create_from(name: &str, parent: Option<(&str, Relation)>, tip: Option<NodeId>) -> Op {
    let parent = parent.map(|(parent, relation)| (id(parent), relation));
    Op::Create(NewSession { id: id(name), source: "test".into(), format: "openai".into(), parent, tip })
}

/// Messages of these words, the user's.
pub(crate) fn append(name: &str, words: &[&str]) -> Op {
    let message = |word: &&str| NewMessage { json: json(word), at: None };
    Op::Append(id(name), words.iter().map(message).collect())
}

/// A message of the user.
pub(crate) fn json(word: &str) -> String {
    format!(r#"{{"role":"user","content":"{word}"}}"#)
}

/// An event.
pub(crate) fn note(name: &str, kind: &str, body: &str) -> Op {
    Op::AddEvent(id(name), NewEvent { kind: kind.into(), body: body.into() })
}

/// A title.
pub(crate) fn title(name: &str, title: &str) -> Op {
    Op::Update(id(name), SessionChange::Title(Some(title.into())))
}

/// Writes at a moment.
pub(crate) fn write_at(store: &dyn Store, at: i64, ops: Vec<Op>) -> Result<CommitSummary, StoreError> {
    store.commit(&Batch { at: Millis(at), expected_tips: Vec::new(), ops })
}

/// Writes, and must succeed.
pub(crate) fn write(store: &dyn Store, ops: Vec<Op>) -> CommitSummary {
    write_at(store, 1, ops).unwrap()
}

/// A session that is there.
pub(crate) fn session(store: &dyn Store, name: &str) -> SessionRow {
    store.session(&id(name)).unwrap().unwrap()
}

/// The tip of a session.
pub(crate) fn tip(store: &dyn Store, name: &str) -> Option<NodeId> {
    session(store, name).tip
}

/// The messages of a session.
pub(crate) fn chain(store: &dyn Store, name: &str) -> Vec<Node> {
    tip(store, name).map_or(Vec::new(), |tip| store.chain(tip, 0..u32::MAX).unwrap())
}

/// The words of a session in one line.
pub(crate) fn said(store: &dyn Store, name: &str) -> String {
    let words: Vec<String> = chain(store, name).iter().map(word).collect();
    words.join(" ")
}

/// The word of a message.
pub(crate) fn word(node: &Node) -> String {
    let json: serde_json::Value = serde_json::from_str(&node.json).unwrap();
    json["content"].as_str().unwrap().to_owned()
}

/// The message of a session that says a word.
pub(crate) fn node(store: &dyn Store, name: &str, said: &str) -> NodeId {
    chain(store, name).iter().find(|node| word(node) == said).unwrap().id
}

/// How many messages a word finds.
pub(crate) fn n_found(store: &dyn Store, word: &str) -> usize {
    let find = SearchSpec { query: Query::parse(word), limit: 50, ..SearchSpec::default() };
    store.search(&find).unwrap().hits.len()
}
