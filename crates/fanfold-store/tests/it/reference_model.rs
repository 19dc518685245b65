//! A simple model of a store, to compare stores with: messages linked to their predecessors, without lanes and SQL.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use fanfold_store::search::{SearchHits, SearchSpec};
use fanfold_store::{
    Batch, BlobId, CheckMode, CommitSummary, EventRow, Finding, LockOutcome, Millis, NewMessage, Node,
    NodeId, Op, Role, SessionFilter, SessionId, SessionRow, SessionUpdate, Store, StoreError, StoreSize,
};

type Result<T> = std::result::Result<T, StoreError>;

/// A store of sessions, messages and events, without blobs, named values, locks and search.
#[derive(Default)]
pub(crate) struct ReferenceModel(Mutex<Contents>);

#[derive(Clone, Default)]
struct Contents {
    nodes: HashMap<NodeId, Node>,
    last_number: u64,
    sessions: BTreeMap<SessionId, SessionRow>,
    events: BTreeMap<SessionId, Vec<EventRow>>,
}

impl ReferenceModel {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap()
    }
}

impl Store for ReferenceModel {
    fn commit(&self, batch: &Batch) -> Result<CommitSummary> {
        let mut contents = self.contents().clone();
        for (session, tip) in &batch.expected_tips {
            if contents.row(session)?.tip != *tip {
                return Err(StoreError::Conflict(session.clone()));
            }
        }
        let mut committed = CommitSummary::default();
        for op in &batch.ops {
            contents.apply(op, batch.at, &mut committed)?;
        }
        *self.contents() = contents;
        Ok(committed)
    }

    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>> {
        Ok(self.contents().sessions.get(id).cloned())
    }

    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>> {
        assert_eq!(*filter, SessionFilter::default(), "the model has no filters");
        let mut rows: Vec<SessionRow> = self.contents().sessions.values().cloned().collect();
        rows.sort_by(|a, b| (b.updated_at, &b.id).cmp(&(a.updated_at, &a.id)));
        Ok(rows)
    }

    fn chain(&self, tip: NodeId, depths: Range<u32>) -> Result<Vec<Node>> {
        let contents = self.contents();
        contents.depth(tip)?;
        let mut nodes: Vec<Node> = contents.back_from(Some(tip)).cloned().collect();
        nodes.retain(|node| depths.contains(&node.depth));
        nodes.reverse();
        Ok(nodes)
    }

    fn node(&self, id: NodeId) -> Result<Option<Node>> {
        Ok(self.contents().nodes.get(&id).cloned())
    }

    fn node_by_number(&self, number: u64) -> Result<Option<Node>> {
        Ok(self.contents().nodes.values().find(|node| node.number == number).cloned())
    }

    fn owners(&self, node: NodeId) -> Result<Vec<SessionId>> {
        let contents = self.contents();
        contents.depth(node)?;
        let is_owner = |row: &&SessionRow| contents.back_from(row.tip).any(|other| other.id == node);
        let mut rows: Vec<&SessionRow> = contents.sessions.values().filter(is_owner).collect();
        rows.sort_by_key(|row| (row.started_at, &row.id));
        Ok(rows.into_iter().map(|row| row.id.clone()).collect())
    }

    fn events(&self, session: &SessionId, from: u32) -> Result<Vec<EventRow>> {
        let contents = self.contents();
        contents.row(session)?;
        let events = contents.events.get(session).into_iter().flatten();
        Ok(events.filter(|event| event.seq >= from).cloned().collect())
    }

    fn collect_garbage(&self) -> Result<u64> {
        let mut contents = self.contents();
        let event_tips = contents.events.values().flatten().map(|event| event.tip);
        let tips = contents.sessions.values().map(|row| row.tip).chain(event_tips);
        let reachable: BTreeSet<NodeId> =
            tips.flat_map(|tip| contents.back_from(tip)).map(|node| node.id).collect();
        let n_before = contents.nodes.len();
        contents.nodes.retain(|id, _| reachable.contains(id));
        Ok((n_before - contents.nodes.len()) as u64)
    }

    fn size(&self) -> Result<StoreSize> {
        let contents = self.contents();
        Ok(StoreSize {
            n_sessions: contents.sessions.len() as u64,
            n_nodes: contents.nodes.len() as u64,
            n_json_bytes: contents.nodes.values().map(|node| node.json.len() as u64).sum(),
            n_events: contents.events.values().flatten().count() as u64,
            n_disk_bytes: 0,
        })
    }

    fn search(&self, _: &SearchSpec) -> Result<SearchHits> {
        panic!("the reference model has no such operation")
    }

    fn blob(&self, _: BlobId) -> Result<Option<Vec<u8>>> {
        panic!("the reference model has no such operation")
    }

    fn named_value(&self, _: &str) -> Result<Option<i64>> {
        panic!("the reference model has no such operation")
    }

    fn lock(&self, _: &SessionId, _: &str, _: i64, _: Millis) -> Result<LockOutcome> {
        panic!("the reference model has no such operation")
    }

    fn unlock(&self, _: &SessionId, _: &str) -> Result<()> {
        panic!("the reference model has no such operation")
    }

    fn check(&self, _: CheckMode) -> Result<Vec<Finding>> {
        panic!("the reference model has no such operation")
    }
}

impl Contents {
    fn row(&self, id: &SessionId) -> Result<&SessionRow> {
        self.sessions.get(id).ok_or_else(|| StoreError::NoSession(id.clone()))
    }

    /// Returns a session to change at a time.
    fn row_mut(&mut self, id: &SessionId, at: Millis) -> Result<&mut SessionRow> {
        let row = self.sessions.get_mut(id).ok_or_else(|| StoreError::NoSession(id.clone()))?;
        row.updated_at = at;
        Ok(row)
    }

    fn depth(&self, id: NodeId) -> Result<u32> {
        self.nodes.get(&id).map(|node| node.depth).ok_or(StoreError::NoNode(id))
    }

    fn n_messages(&self, tip: Option<NodeId>) -> Result<u32> {
        tip.map_or(Ok(0), |tip| Ok(self.depth(tip)? + 1))
    }

    /// The messages from a tip back to the first.
    fn back_from(&self, tip: Option<NodeId>) -> impl Iterator<Item = &Node> {
        let node = |id: Option<NodeId>| id.and_then(|id| self.nodes.get(&id));
        std::iter::successors(node(tip), move |last| node(last.parent))
    }

    fn apply(&mut self, op: &Op, at: Millis, committed: &mut CommitSummary) -> Result<()> {
        match op {
            Op::Create(new) => {
                if self.sessions.contains_key(&new.id) {
                    return Err(StoreError::SessionExists(new.id.clone()));
                }
                let parent = new.parent.as_ref().map(|(parent, _)| self.row(parent)).transpose()?;
                let row = new.to_row(parent.map(|row| &row.root), self.n_messages(new.tip)?, at);
                self.sessions.insert(new.id.clone(), row);
            }
            Op::Append(id, messages) => {
                let mut tip = self.row(id)?.tip;
                for message in messages {
                    tip = Some(self.insert(tip, message, at, &mut committed.n_new_messages));
                }
                self.move_tip(id, tip, at, committed)?;
            }
            Op::MoveTip(id, tip) => self.move_tip(id, *tip, at, committed)?,
            Op::AddEvent(id, event) => {
                let row = self.row_mut(id, at)?;
                let (seq, tip, kind, body) = (row.n_events, row.tip, event.kind.clone(), event.body.clone());
                row.n_events += 1;
                self.events.entry(id.clone()).or_default().push(EventRow { seq, at, tip, kind, body });
            }
            Op::Update(id, change) => {
                if let SessionUpdate::Title(Some(title)) = change {
                    self.check_title(id, title)?;
                }
                self.row_mut(id, at)?.apply(change, at);
            }
            Op::Delete(id) => {
                self.row(id)?;
                self.sessions.remove(id);
                self.events.remove(id);
            }
            Op::PutBlob(_) | Op::SetNamedValue(..) => panic!("the reference model has no such operation"),
        }
        Ok(())
    }

    fn insert(&mut self, tip: Option<NodeId>, message: &NewMessage, at: Millis, n_new: &mut usize) -> NodeId {
        let id = NodeId::new(tip, &message.json);
        if !self.nodes.contains_key(&id) {
            self.last_number += 1;
            *n_new += 1;
            let node = Node {
                id,
                parent: tip,
                number: self.last_number,
                depth: tip.map_or(0, |tip| self.nodes[&tip].depth + 1),
                role: Role::from_message(&message.json),
                at: message.at.unwrap_or(at),
                json: message.json.as_str().into(),
            };
            self.nodes.insert(id, node);
        }
        id
    }

    fn move_tip(
        &mut self,
        id: &SessionId,
        tip: Option<NodeId>,
        at: Millis,
        committed: &mut CommitSummary,
    ) -> Result<()> {
        let n_messages = self.n_messages(tip)?;
        let row = self.row_mut(id, at)?;
        (row.tip, row.n_messages) = (tip, n_messages);
        committed.tips.push((id.clone(), tip));
        Ok(())
    }

    fn check_title(&self, id: &SessionId, title: &str) -> Result<()> {
        let is_holder = |row: &&SessionRow| row.title.as_deref() == Some(title) && row.id != *id;
        let Some(holder) = self.sessions.values().find(is_holder) else { return Ok(()) };
        Err(StoreError::TitleTaken { title: title.to_owned(), holder: holder.id.clone() })
    }
}
