//! The store in memory, for tests and for use without files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::doctor::{CheckMode, Finding, RepairStatus};
use crate::model::{
    Batch, BlobId, CommitSummary, EventRow, Millis, NewMessage, NewSession, Node, NodeId, Op, Role,
    SessionId, SessionRow, SessionUpdate,
};
use crate::search::{Candidate, HitCollector, MemoryIndex, Ownership, SearchHits, SearchSpec, sort};
use crate::store::{LockOutcome, SessionFilter, SessionLock, Store, StoreError, StoreSize};

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    /// The contents. A batch is applied to a copy, which replaces the contents if it succeeds.
    state: Mutex<MemoryState>,
    /// The full text index, which lags behind the messages. Lock order: `state` first, then `index`.
    index: Mutex<MemoryIndex>,
}

#[derive(Debug, Clone, Default)]
struct MemoryState {
    nodes: HashMap<NodeId, Arc<Node>>,
    numbers: BTreeMap<u64, NodeId>,
    next_number: u64,
    sessions: BTreeMap<SessionId, SessionRow>,
    events: BTreeMap<SessionId, Vec<EventRow>>,
    blobs: BTreeMap<BlobId, Arc<[u8]>>,
    locks: BTreeMap<SessionId, SessionLock>,
    named_values: BTreeMap<String, i64>,
}

impl MemoryStore {
    fn state(&self) -> MutexGuard<'_, MemoryState> {
        // A poisoned lock is safe to use: the state is always replaced as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn index(&self) -> MutexGuard<'_, MemoryIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn commit(&self, batch: &Batch) -> Result<CommitSummary, StoreError> {
        let mut current = self.state();
        let mut state = current.clone();
        for (session, tip) in &batch.expected_tips {
            if state.row(session)?.tip != *tip {
                return Err(StoreError::Conflict(session.clone()));
            }
        }
        let mut committed = CommitSummary::default();
        for op in &batch.ops {
            state.apply(op, batch.at, &mut committed)?;
        }
        *current = state;
        Ok(committed)
    }

    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>, StoreError> {
        Ok(self.state().sessions.get(id).cloned())
    }

    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreError> {
        let state = self.state();
        let is_selected = |row: &&SessionRow| {
            filter.source.as_ref().is_none_or(|source| row.source == *source)
                && filter.root.as_ref().is_none_or(|root| row.root == *root)
                && filter.title.as_ref().is_none_or(|title| row.title.as_ref() == Some(title))
                && filter.since.is_none_or(|since| row.updated_at >= since)
                && filter.before.is_none_or(|before| row.updated_at < before)
                && filter
                    .parent
                    .as_ref()
                    .is_none_or(|parent| row.parent.as_ref().is_some_and(|(id, _)| id == parent))
        };
        let mut rows: Vec<SessionRow> = state.sessions.values().filter(is_selected).cloned().collect();
        rows.sort_by(|a, b| (b.updated_at, &b.id).cmp(&(a.updated_at, &a.id)));
        Ok(rows.into_iter().skip(filter.offset).take(filter.limit.unwrap_or(usize::MAX)).collect())
    }

    fn chain(&self, tip: NodeId, depths: Range<u32>) -> Result<Vec<Node>, StoreError> {
        let state = self.state();
        let mut nodes = Vec::new();
        let mut next = Some(tip);
        while let Some(id) = next {
            let node = state.nodes.get(&id).ok_or(StoreError::NoNode(id))?;
            if depths.contains(&node.depth) {
                nodes.push(Node::clone(node));
            }
            next = node.parent.filter(|_| node.depth > depths.start);
        }
        nodes.reverse();
        Ok(nodes)
    }

    fn node(&self, id: NodeId) -> Result<Option<Node>, StoreError> {
        Ok(self.state().nodes.get(&id).map(|node| Node::clone(node)))
    }

    fn node_by_number(&self, number: u64) -> Result<Option<Node>, StoreError> {
        let state = self.state();
        Ok(state.numbers.get(&number).and_then(|id| state.nodes.get(id)).map(|node| Node::clone(node)))
    }

    fn owners(&self, node: NodeId) -> Result<Vec<SessionId>, StoreError> {
        let state = self.state();
        let depth = state.depth(node)?;
        let is_owner = |row: &&SessionRow| {
            let mut next = row.tip;
            while let Some(at) = next.and_then(|id| state.nodes.get(&id)).filter(|at| at.depth > depth) {
                next = at.parent;
            }
            next == Some(node)
        };
        let mut rows: Vec<&SessionRow> = state.sessions.values().filter(is_owner).collect();
        rows.sort_by_key(|row| (row.started_at, &row.id));
        Ok(rows.into_iter().map(|row| row.id.clone()).collect())
    }

    fn search(&self, spec: &SearchSpec) -> Result<SearchHits, StoreError> {
        let state = self.state();
        let mut index = self.index();
        for (number, id) in state.numbers.range(index.last_number() + 1..) {
            index.add(*number, &state.nodes[id].json);
        }
        let query =
            spec.query.expand(|pattern, limit| Ok::<_, StoreError>(index.matching_words(pattern, limit)))?;
        let candidate = |(number, score): (u64, f64)| {
            let node = &state.nodes[state.numbers.get(&number)?];
            let (depth, at) = (node.depth, node.at);
            spec.accepts(node.role, at).then_some(Candidate { number, lane: 0, depth, at, score })
        };
        let mut candidates: Vec<_> = index.candidates(&query).into_iter().filter_map(candidate).collect();
        sort(&mut candidates, spec.order);
        let owners = state.all_owners();
        let mut collector = HitCollector::new(spec);
        for candidate in candidates {
            if collector.is_done() {
                break;
            }
            let node = &state.nodes[&state.numbers[&candidate.number]];
            let owners = owners.get(&node.id).cloned().unwrap_or_default();
            let is_live = spec.live.as_ref().is_some_and(|live| {
                live.contains(node.depth) && owners.iter().any(|row| row.id == live.session)
            });
            let owners = owners.into_iter().cloned().collect();
            collector
                .offer(candidate.score, Ownership { owners, is_live }, || Ok(Some(Node::clone(node))))?;
        }
        Ok(collector.finish(query.is_truncated))
    }

    fn events(&self, session: &SessionId, from: u32) -> Result<Vec<EventRow>, StoreError> {
        let state = self.state();
        state.row(session)?;
        let events = state.events.get(session).map_or(&[][..], Vec::as_slice);
        Ok(events.iter().filter(|event| event.seq >= from).cloned().collect())
    }

    fn blob(&self, id: BlobId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.state().blobs.get(&id).map(|bytes| bytes.to_vec()))
    }

    fn named_value(&self, name: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.state().named_values.get(name).copied())
    }

    fn lock(
        &self,
        session: &SessionId,
        holder: &str,
        lease_ms: i64,
        now: Millis,
    ) -> Result<LockOutcome, StoreError> {
        let mut state = self.state();
        if let Some(lock) = state.locks.get(session)
            && lock.holder != holder
            && lock.until > now
        {
            return Ok(LockOutcome::HeldByOther(lock.clone()));
        }
        let until = Millis(now.0.saturating_add(lease_ms));
        let lock = SessionLock { session: session.clone(), holder: holder.to_owned(), until };
        state.locks.insert(session.clone(), lock.clone());
        Ok(LockOutcome::Acquired(lock))
    }

    fn unlock(&self, session: &SessionId, holder: &str) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.locks.get(session).is_some_and(|lock| lock.holder == holder) {
            state.locks.remove(session);
        }
        Ok(())
    }

    fn collect_garbage(&self) -> Result<u64, StoreError> {
        let mut state = self.state();
        let mut reachable = BTreeSet::new();
        let events = state.events.values().flatten().filter_map(|event| event.tip);
        let tips: Vec<NodeId> = state.sessions.values().filter_map(|row| row.tip).chain(events).collect();
        for tip in tips {
            let mut next = Some(tip);
            while let Some(id) = next.filter(|id| reachable.insert(*id)) {
                next = state.nodes.get(&id).and_then(|node| node.parent);
            }
        }
        let n_before = state.nodes.len();
        state.nodes.retain(|id, _| reachable.contains(id));
        state.numbers.retain(|_, id| reachable.contains(id));
        let texts: Vec<String> = state.events.values().flatten().map(|event| event.body.clone()).collect();
        state.blobs.retain(|id, _| texts.iter().any(|text| text.contains(&id.to_string())));
        self.index().retain(|number| state.numbers.contains_key(&number));
        Ok((n_before - state.nodes.len()) as u64)
    }

    fn check(&self, _care: CheckMode) -> Result<Vec<Finding>, StoreError> {
        let state = self.state();
        let finding = |location, text: &str| Finding {
            location,
            text: text.to_owned(),
            repair: RepairStatus::Impossible,
        };
        let mut findings = Vec::new();
        for (id, node) in &state.nodes {
            let depth = node.parent.map_or(Ok(0), |parent| state.depth(parent).map(|depth| depth + 1));
            let is_sound =
                *id == NodeId::new(node.parent, &node.json) && depth.is_ok_and(|depth| depth == node.depth);
            if !is_sound {
                findings
                    .push(finding(format!("message {}", node.number), "its content does not match its id"));
            }
        }
        for row in state.sessions.values() {
            let n_messages = row.tip.map_or(Ok(0), |tip| state.depth(tip).map(|depth| depth + 1));
            if !n_messages.is_ok_and(|n_messages| n_messages == row.n_messages) {
                findings
                    .push(finding(format!("session {}", row.id), "its message count does not match its tip"));
            }
        }
        Ok(findings)
    }

    fn size(&self) -> Result<StoreSize, StoreError> {
        let state = self.state();
        let n_json_bytes = state.nodes.values().map(|node| node.json.len() as u64).sum();
        Ok(StoreSize {
            n_sessions: state.sessions.len() as u64,
            n_nodes: state.nodes.len() as u64,
            n_json_bytes,
            n_events: state.events.values().map(|events| events.len() as u64).sum(),
            n_disk_bytes: 0,
        })
    }
}

impl MemoryState {
    fn row(&self, id: &SessionId) -> Result<&SessionRow, StoreError> {
        self.sessions.get(id).ok_or_else(|| StoreError::NoSession(id.clone()))
    }

    fn row_mut(&mut self, id: &SessionId) -> Result<&mut SessionRow, StoreError> {
        self.sessions.get_mut(id).ok_or_else(|| StoreError::NoSession(id.clone()))
    }

    fn apply(&mut self, op: &Op, at: Millis, committed: &mut CommitSummary) -> Result<(), StoreError> {
        match op {
            Op::Create(new) => self.create(new, at),
            Op::Append(session, messages) => {
                let tip = self.append(session, messages, at, &mut committed.n_new_messages)?;
                committed.tips.push((session.clone(), tip));
                Ok(())
            }
            Op::MoveTip(session, tip) => {
                let n_messages = tip.map_or(Ok(0), |tip| self.depth(tip).map(|depth| depth + 1))?;
                let row = self.row_mut(session)?;
                (row.tip, row.n_messages, row.updated_at) = (*tip, n_messages, at);
                committed.tips.push((session.clone(), *tip));
                Ok(())
            }
            Op::AddEvent(session, event) => {
                let row = self.row_mut(session)?;
                let (seq, tip) = (row.n_events, row.tip);
                row.n_events += 1;
                row.updated_at = at;
                let (kind, body) = (event.kind.clone(), event.body.clone());
                let event = EventRow { seq, at, tip, kind, body };
                self.events.entry(session.clone()).or_default().push(event);
                Ok(())
            }
            Op::Update(session, change) => self.update(session, change, at),
            Op::PutBlob(bytes) => {
                self.blobs.insert(BlobId::new(bytes), bytes.as_slice().into());
                Ok(())
            }
            Op::SetNamedValue(name, value) => {
                self.named_values.insert(name.clone(), *value);
                Ok(())
            }
            Op::Delete(session) => {
                self.row(session)?;
                self.sessions.remove(session);
                self.events.remove(session);
                self.locks.remove(session);
                Ok(())
            }
        }
    }

    /// The sessions that contain each message, the oldest first.
    fn all_owners(&self) -> HashMap<NodeId, Vec<&SessionRow>> {
        let mut rows: Vec<&SessionRow> = self.sessions.values().collect();
        rows.sort_by_key(|row| (row.started_at, &row.id));
        let mut owners: HashMap<NodeId, Vec<&SessionRow>> = HashMap::new();
        for row in rows {
            let mut next = row.tip;
            while let Some(node) = next.and_then(|id| self.nodes.get(&id)) {
                owners.entry(node.id).or_default().push(row);
                next = node.parent;
            }
        }
        owners
    }

    fn depth(&self, id: NodeId) -> Result<u32, StoreError> {
        self.nodes.get(&id).map(|node| node.depth).ok_or(StoreError::NoNode(id))
    }

    fn create(&mut self, new: &NewSession, at: Millis) -> Result<(), StoreError> {
        if self.sessions.contains_key(&new.id) {
            return Err(StoreError::SessionExists(new.id.clone()));
        }
        let root = match &new.parent {
            Some((parent, _)) => Some(&self.row(parent)?.root),
            None => None,
        };
        let n_messages = new.tip.map_or(Ok(0), |tip| self.depth(tip).map(|depth| depth + 1))?;
        let row = new.to_row(root, n_messages, at);
        self.sessions.insert(new.id.clone(), row);
        Ok(())
    }

    fn append(
        &mut self,
        session: &SessionId,
        messages: &[NewMessage],
        at: Millis,
        n_new: &mut usize,
    ) -> Result<Option<NodeId>, StoreError> {
        let (mut tip, mut depth) = {
            let row = self.row(session)?;
            (row.tip, row.n_messages)
        };
        for message in messages {
            let id = NodeId::new(tip, &message.json);
            if !self.nodes.contains_key(&id) {
                self.next_number += 1;
                *n_new += 1;
                let node = Node {
                    id,
                    parent: tip,
                    number: self.next_number,
                    depth,
                    role: Role::from_message(&message.json),
                    at: message.at.unwrap_or(at),
                    json: message.json.as_str().into(),
                };
                self.numbers.insert(node.number, id);
                self.nodes.insert(id, Arc::new(node));
            }
            tip = Some(id);
            depth += 1;
        }
        let row = self.row_mut(session)?;
        (row.tip, row.n_messages, row.updated_at) = (tip, depth, at);
        Ok(tip)
    }

    fn update(&mut self, session: &SessionId, change: &SessionUpdate, at: Millis) -> Result<(), StoreError> {
        if let SessionUpdate::Title(Some(title)) = change {
            let holder =
                self.sessions.values().find(|row| row.title.as_ref() == Some(title) && row.id != *session);
            if let Some(holder) = holder {
                return Err(StoreError::TitleTaken { title: title.clone(), holder: holder.id.clone() });
            }
        }
        let row = self.row_mut(session)?;
        row.updated_at = at;
        row.apply(change, at);
        Ok(())
    }
}
