//! Short functions to write batches and read sessions.

use fanfold_store::search::{Query, SearchSpec};
use fanfold_store::{
    Batch, CommitSummary, Millis, NewEvent, NewMessage, NewSession, Node, NodeId, Op, Relation, SessionId,
    SessionRow, SessionUpdate, Store, StoreError,
};

/// A session id.
pub(crate) fn id(name: &str) -> SessionId {
    SessionId(name.to_owned())
}

/// Creates a session without a parent.
pub(crate) fn create(name: &str) -> Op {
    create_from(name, None, None)
}

/// Creates a session, optionally with a parent.
pub(crate) fn create_from(name: &str, parent: Option<(&str, Relation)>, tip: Option<NodeId>) -> Op {
    let parent = parent.map(|(parent, relation)| (id(parent), relation));
    Op::Create(NewSession { id: id(name), source: "test".into(), format: "openai".into(), parent, tip })
}

/// Appends one user message per text.
pub(crate) fn append(name: &str, words: &[&str]) -> Op {
    let message = |word: &&str| NewMessage { json: json(word), at: None };
    Op::Append(id(name), words.iter().map(message).collect())
}

/// The JSON of a user message.
pub(crate) fn json(word: &str) -> String {
    format!(r#"{{"role":"user","content":"{word}"}}"#)
}

/// Adds an event.
pub(crate) fn note(name: &str, kind: &str, body: &str) -> Op {
    Op::AddEvent(id(name), NewEvent { kind: kind.into(), body: body.into() })
}

/// Sets a title.
pub(crate) fn title(name: &str, title: &str) -> Op {
    Op::Update(id(name), SessionUpdate::Title(Some(title.into())))
}

/// Commits operations at a time.
pub(crate) fn write_at(store: &dyn Store, at: i64, ops: Vec<Op>) -> Result<CommitSummary, StoreError> {
    store.commit(&Batch { at: Millis(at), expected_tips: Vec::new(), ops })
}

/// Commits operations successfully.
pub(crate) fn write(store: &dyn Store, ops: Vec<Op>) -> CommitSummary {
    write_at(store, 1, ops).unwrap()
}

/// An existing session.
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

/// The contents of a session's messages, joined by spaces.
pub(crate) fn contents(store: &dyn Store, name: &str) -> String {
    let contents: Vec<String> = chain(store, name).iter().map(content).collect();
    contents.join(" ")
}

/// The content of a message.
pub(crate) fn content(node: &Node) -> String {
    let json: serde_json::Value = serde_json::from_str(&node.json).unwrap();
    json["content"].as_str().unwrap().to_owned()
}

/// The id of the message of a session with a content.
pub(crate) fn node(store: &dyn Store, name: &str, text: &str) -> NodeId {
    chain(store, name).iter().find(|node| content(node) == text).unwrap().id
}

/// The number of messages that a query finds.
pub(crate) fn n_found(store: &dyn Store, word: &str) -> usize {
    let find = SearchSpec { query: Query::parse(word), limit: 50, ..SearchSpec::default() };
    store.search(&find).unwrap().hits.len()
}
