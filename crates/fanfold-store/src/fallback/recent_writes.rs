//! The newest events and blobs of this process. Its own copy of a session lacks the events that it has written since it
//! last read them, and the blobs that it only refers to.

use std::collections::{BTreeMap, VecDeque};

use crate::model::{Batch, BlobId, CommitSummary, EventRow, Millis, NewEvent, NodeId, Op, SessionId};

use super::session_copy::SessionCopy;

/// Maximum total size of blobs, and of events, in bytes.
const MAX_BYTES: usize = 8 << 20;

#[derive(Default)]
pub(super) struct RecentWrites {
    /// The events that were written and may not have been read. Sessions that were written to first come first.
    events: VecDeque<(SessionId, Vec<WrittenEvent>)>,
    n_event_bytes: usize,
    /// Blobs in the order of their first use.
    blobs: VecDeque<(BlobId, Vec<u8>)>,
    n_blob_bytes: usize,
}

struct WrittenEvent {
    /// Its number in the session, if events were read after it.
    seq: Option<u32>,
    at: Millis,
    /// The newest message at that time; `None` for the newest one of the session.
    tip: Option<Option<NodeId>>,
    event: NewEvent,
}

impl RecentWrites {
    /// Adds a committed batch.
    pub(super) fn add(&mut self, batch: &Batch, summary: &CommitSummary) {
        let mut moves = summary.tips.iter();
        let mut tips: BTreeMap<&SessionId, Option<NodeId>> = BTreeMap::new();
        for op in &batch.ops {
            match op {
                Op::Append(id, _) | Op::MoveTip(id, _) => {
                    tips.extend(moves.next().map(|(_, tip)| (id, *tip)));
                }
                Op::AddEvent(id, event) => {
                    let tip = tips.get(id).copied();
                    self.add_event(id, WrittenEvent { seq: None, at: batch.at, tip, event: event.clone() });
                }
                Op::PutBlob(bytes) => self.add_blob(BlobId::new(bytes), bytes),
                Op::Delete(id) => self.forget_events(id),
                Op::Create(_) | Op::Update(..) | Op::SetNamedValue(..) => {}
            }
        }
    }

    fn add_event(&mut self, session: &SessionId, event: WrittenEvent) {
        self.n_event_bytes += event.event.body.len();
        match self.events.iter_mut().find(|(id, _)| id == session) {
            Some((_, written)) => written.push(event),
            None => self.events.push_back((session.clone(), vec![event])),
        }
        while self.n_event_bytes > MAX_BYTES
            && let Some((oldest, _)) = self.events.front()
        {
            self.forget_events(&oldest.clone());
        }
    }

    /// Numbers the events of a session, after the events from a number on were read. The reader has those before it.
    pub(super) fn add_read(&mut self, session: &SessionId, from: u32, read: &[EventRow]) {
        let Some((_, written)) = self.events.iter_mut().find(|(id, _)| id == session) else { return };
        let n_events = read.last().map_or(from, |last| last.seq + 1);
        let unnumbered = written.iter_mut().rev().filter(|event| event.seq.is_none());
        for (event, seq) in unnumbered.zip((0..n_events).rev()) {
            event.seq = Some(seq);
        }
        self.n_event_bytes -= size_of(written);
        written.retain(|event| event.seq.is_none_or(|seq| seq >= from));
        self.n_event_bytes += size_of(written);
    }

    fn forget_events(&mut self, session: &SessionId) {
        let Some(at) = self.events.iter().position(|(id, _)| id == session) else { return };
        self.n_event_bytes -= self.events.remove(at).map_or(0, |(_, written)| size_of(&written));
    }

    /// Adds a blob that was written or read.
    pub(super) fn add_blob(&mut self, id: BlobId, bytes: &[u8]) {
        if self.blob(id).is_some() || bytes.len() > MAX_BYTES {
            return;
        }
        self.n_blob_bytes += bytes.len();
        self.blobs.push_back((id, bytes.to_vec()));
        while self.n_blob_bytes > MAX_BYTES {
            self.n_blob_bytes -= self.blobs.pop_front().map_or(0, |(_, bytes)| bytes.len());
        }
    }

    pub(super) fn blob(&self, id: BlobId) -> Option<&[u8]> {
        self.blobs.iter().find(|(known, _)| *known == id).map(|(_, bytes)| &**bytes)
    }

    /// Adds the events that a copy of a session lacks.
    pub(super) fn complete(&self, mut copy: SessionCopy) -> SessionCopy {
        let written = self.events.iter().find(|(id, _)| *id == copy.row.id).map(|(_, written)| written);
        let n_known = copy.row.n_events;
        let is_missing = |event: &&WrittenEvent| event.seq.is_none_or(|seq| seq >= n_known);
        for WrittenEvent { at, tip, event, .. } in written.into_iter().flatten().filter(is_missing) {
            let (tip, NewEvent { kind, body }) = (tip.unwrap_or(copy.row.tip), event.clone());
            copy.events.push(EventRow { seq: copy.row.n_events, at: *at, tip, kind, body });
            copy.row.n_events += 1;
        }
        copy
    }
}

fn size_of(written: &[WrittenEvent]) -> usize {
    written.iter().map(|written| written.event.body.len()).sum()
}
