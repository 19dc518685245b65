//! Recalls originals from the store alone, by the locations recorded with each fold.

use std::collections::BTreeMap;
use std::rc::Rc;

use fanfold_core::{
    Entry, EntryId, Extent, Handle, Original, RecallError, Transcript, Words, find_by_content, open_original,
    search_entries,
};
use fanfold_store::{NodeId, SessionId, Store, StoreError};

use crate::engine::SessionEngine;
use crate::follow::fold_record::content_hash;
use crate::follow::folded_conversation::messages_of;
use crate::follow::session_state::{decode_as, read_frame};
use crate::log::body_frame::BodyFrame;
use crate::log::events::{FoldRecord, SessionEvent};
use crate::log::message_styles::MessageStyles;
use crate::log::originals;
use crate::log::session_log::SessionLog;

/// Why an original could not be recalled.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No fold of the session has the handle.
    #[error("no original of session {session} has the handle {handle}")]
    Unknown {
        /// The session.
        session: SessionId,
        /// The handle.
        handle: Handle,
        /// Similar content hashes of the session.
        near: Vec<String>,
    },
    /// The original is missing or differs from the recorded fingerprint.
    #[error("the original behind {0} is damaged or missing")]
    Broken(Handle),
    /// The requested lines or the requested place do not exist.
    #[error(transparent)]
    Extent(#[from] RecallError),
}

impl SessionEngine {
    /// Recalls the original behind any handle that a session has ever had, or at any address in its newest transcript,
    /// byte for byte.
    pub fn recall(&self, session: &SessionId, handle: Handle, extent: &Extent) -> Result<String, OpenError> {
        let past = SessionLog::read(&*self.store, session)?;
        let mut reader = OriginalReader::new(&*self.store, &past);
        if handle.is_address() {
            let newest = self.newest_transcript(session, &past)?;
            return match reader.read_address(handle, newest.as_ref())? {
                HandleLookup::Original(content) => Ok(extent.extract(content, handle)?),
                HandleLookup::Mismatch => Err(OpenError::Broken(handle)),
                HandleLookup::Unknown => Err(match &newest {
                    Some(transcript) => RecallError::not_found(transcript, handle).into(),
                    None => unknown_handle(session, handle, &past),
                }),
            };
        }
        match reader.read(handle)? {
            HandleLookup::Original(content) => Ok(extent.extract(content, handle)?),
            HandleLookup::Mismatch => Err(OpenError::Broken(handle)),
            HandleLookup::Unknown => {
                let newest = self.newest_transcript(session, &past)?;
                let found = newest.and_then(|transcript| find_by_content(&transcript, handle));
                let content = found.ok_or_else(|| unknown_handle(session, handle, &past))?;
                Ok(extent.extract(content.to_string(), handle)?)
            }
        }
    }

    /// Finds the lines with a text among the messages that a view of the session did not have in full. Returns an empty
    /// text if no line contains it.
    pub fn search_folded(&self, session: &SessionId, text: &str) -> Result<String, OpenError> {
        let past = SessionLog::read(&*self.store, session)?;
        let Some(transcript) = self.newest_transcript(session, &past)? else { return Ok(String::new()) };
        let folded = past.folded_messages(&*self.store, self.tip(session)?)?;
        let is_folded = |entry: &Entry| messages_of(entry).iter().any(|message| folded.contains(message));
        let entries = transcript.entries().iter().enumerate().filter(|(_, entry)| is_folded(entry));
        let entries: Vec<EntryId> = entries.map(|(i, _)| EntryId::from(i)).collect();
        Ok(search_entries(&transcript, &entries, text))
    }

    /// The newest recorded transcript; none if no request has recorded one or messages of it are missing.
    fn newest_transcript(
        &self,
        session: &SessionId,
        past: &SessionLog,
    ) -> Result<Option<Transcript>, StoreError> {
        let frame = past.events.iter().rev().find_map(|noted| match &noted.event {
            SessionEvent::Request(sent) if sent.from == 0 => Some((&sent.frame, &sent.format)),
            _ => None,
        });
        let (Some((frame, format)), Some(tip)) = (frame, self.tip(session)?) else { return Ok(None) };
        match transcript(&*self.store, tip, frame, format) {
            // A fold may have recorded the original with an older transcript that is intact.
            Err(StoreError::NoNode(_) | StoreError::Corrupt(_)) => Ok(None),
            read => Ok(Some(read?)),
        }
    }

    /// The newest message of a session.
    fn tip(&self, session: &SessionId) -> Result<Option<NodeId>, StoreError> {
        let row = self.store.session(session)?;
        Ok(row.ok_or_else(|| StoreError::NoSession(session.clone()))?.tip)
    }

    /// Recalls every handle of a session. Returns their number, and the handles whose originals are damaged or
    /// missing.
    pub fn check_handles(&self, session: &SessionId) -> Result<(usize, Vec<String>), StoreError> {
        let past = SessionLog::read(&*self.store, session)?;
        let mut reader = OriginalReader::new(&*self.store, &past);
        let mut broken = Vec::new();
        for name in &past.handles {
            let is_intact = match name.parse() {
                Ok(handle) => reader.is_intact(handle)?,
                Err(_) => false,
            };
            if !is_intact {
                broken.push(name.clone());
            }
        }
        Ok((past.handles.len(), broken))
    }

    /// Every handle that a session has ever had, sorted.
    pub fn handles(&self, session: &SessionId) -> Result<Vec<String>, StoreError> {
        Ok(SessionLog::read(&*self.store, session)?.handles.into_iter().collect())
    }
}

fn unknown_handle(session: &SessionId, handle: Handle, past: &SessionLog) -> OpenError {
    let near = nearest_handles(handle, past.handles.iter().cloned());
    OpenError::Unknown { session: session.clone(), handle, near }
}

/// The content hashes that begin with the same two digits as a mistyped or truncated one, the most similar first, at most
/// five of them. None for an address: a transcript without it has no similar one.
pub fn nearest_handles(handle: Handle, known: impl IntoIterator<Item = String>) -> Vec<String> {
    const MAX_NEAR: usize = 5;
    const MIN_COMMON: usize = 2;
    if handle.is_address() {
        return Vec::new();
    }
    let digits = handle.to_string();
    let common = |known: &str| known.bytes().zip(digits.bytes()).take_while(|(a, b)| a == b).count();
    // An address begins with `#`, so it has nothing in common with a hash.
    let mut near: Vec<String> = known.into_iter().filter(|known| common(known) >= MIN_COMMON).collect();
    near.sort_by_key(|known| (std::cmp::Reverse(common(known)), known.clone()));
    near.truncate(MAX_NEAR);
    near
}

/// The outcome of looking up a handle.
enum HandleLookup {
    /// The original.
    Original(String),
    /// The original is missing, or its fingerprint differs from the recorded one.
    Mismatch,
    /// No fold has recorded the handle.
    Unknown,
}

/// Reads originals, decoding each transcript once.
struct OriginalReader<'s> {
    store: &'s dyn Store,
    /// The records of each handle, oldest first. An address has another one for each branch of the conversation.
    recorded: BTreeMap<Handle, Vec<RecordedOriginal<'s>>>,
    transcripts: BTreeMap<(&'s str, &'s str), Rc<Transcript>>,
}

/// An original as a fold has recorded it.
#[derive(Clone)]
struct RecordedOriginal<'s> {
    fold: &'s FoldRecord,
    /// The index of the fold in the log.
    event: usize,
    /// Absent if this version cannot read it.
    original: Option<Original>,
    fingerprint: &'s str,
}

impl<'s> OriginalReader<'s> {
    fn new(store: &'s dyn Store, past: &'s SessionLog) -> OriginalReader<'s> {
        let mut recorded: BTreeMap<Handle, Vec<RecordedOriginal<'s>>> = BTreeMap::new();
        for (event, noted) in past.events.iter().enumerate() {
            let SessionEvent::Fold(fold) = &noted.event else { continue };
            for (name, original, fingerprint) in &fold.handles {
                if let Ok(handle) = name.parse() {
                    let original = originals::from_json(original);
                    let record = RecordedOriginal { fold, event, original, fingerprint };
                    recorded.entry(handle).or_default().push(record);
                }
            }
        }
        OriginalReader { store, recorded, transcripts: BTreeMap::new() }
    }

    /// Reads an original as the first fold has recorded it.
    fn read(&mut self, handle: Handle) -> Result<HandleLookup, StoreError> {
        match self.records(handle).first() {
            None => Ok(HandleLookup::Unknown),
            Some(record) => self.read_record(record),
        }
    }

    /// Reads the original at an address: from the newest transcript, or else as the last fold has recorded it.
    fn read_address(
        &mut self,
        handle: Handle,
        newest: Option<&Transcript>,
    ) -> Result<HandleLookup, StoreError> {
        let content = newest.and_then(|transcript| find_by_content(transcript, handle));
        let content = content.map(|content| content.to_string());
        let records = self.records(handle);
        let Some(last) = records.last() else {
            return Ok(content.map_or(HandleLookup::Unknown, HandleLookup::Original));
        };
        let Some(content) = content else { return self.read_record(last) };
        let fingerprint = content_hash(&content);
        if records.iter().any(|record| record.fingerprint == fingerprint) {
            return Ok(HandleLookup::Original(content));
        }
        // A result may have arrived late, or the address may be on another branch now. If the recorded original is
        // damaged, this one is, too.
        Ok(match self.read_record(last)? {
            HandleLookup::Original(_) => HandleLookup::Original(content),
            lookup => lookup,
        })
    }

    /// Returns whether every record of a handle gives the original that was recorded.
    fn is_intact(&mut self, handle: Handle) -> Result<bool, StoreError> {
        let records = self.records(handle);
        for record in &records {
            if !matches!(self.read_record(record)?, HandleLookup::Original(_)) {
                return Ok(false);
            }
        }
        Ok(!records.is_empty())
    }

    fn records(&self, handle: Handle) -> Vec<RecordedOriginal<'s>> {
        self.recorded.get(&handle).cloned().unwrap_or_default()
    }

    fn read_record(&mut self, record: &RecordedOriginal<'s>) -> Result<HandleLookup, StoreError> {
        let content = self.content(record, 64)?;
        Ok(match content.filter(|content| content_hash(content) == record.fingerprint) {
            Some(content) => HandleLookup::Original(content),
            None => HandleLookup::Mismatch,
        })
    }

    /// The content of an original. It may refer to several others, at most `depth` levels deep; each was recorded by the
    /// same fold or an earlier one.
    fn content(&mut self, record: &RecordedOriginal<'s>, depth: usize) -> Result<Option<String>, StoreError> {
        let Some(original) = &record.original else { return Ok(None) };
        if let Original::Several(_, handles) = original {
            let Some(depth) = depth.checked_sub(1) else { return Ok(None) };
            let mut all = String::new();
            for handle in handles {
                let parts = self.records(*handle);
                let part = parts.iter().rev().find(|part| part.event <= record.event).or(parts.first());
                let Some(part) = part else { return Ok(None) };
                let Some(part) = self.content(part, depth)? else { return Ok(None) };
                all.push_str(&part);
            }
            return Ok(Some(all));
        }
        if let Original::Text(_, words) = original {
            return Ok(Some(words.to_string()));
        }
        let transcript = self.transcript(record.fold)?;
        Ok(transcript.and_then(|transcript| open_original(&transcript, original, &BTreeMap::new())))
    }

    /// The transcript at the time of a fold; none if parts of it are missing.
    fn transcript(&mut self, fold: &'s FoldRecord) -> Result<Option<Rc<Transcript>>, StoreError> {
        let key = (fold.tip.as_str(), fold.frame.as_str());
        if let Some(known) = self.transcripts.get(&key) {
            return Ok(Some(Rc::clone(known)));
        }
        let Ok(tip) = fold.tip.parse() else { return Ok(None) };
        let read = match transcript(self.store, tip, &fold.frame, &fold.format) {
            // The caller reports the handle that needs this transcript.
            Err(StoreError::NoNode(_) | StoreError::Corrupt(_)) => return Ok(None),
            read => Rc::new(read?),
        };
        self.transcripts.insert(key, Rc::clone(&read));
        Ok(Some(read))
    }
}

/// A request body assembled from the store.
pub(crate) struct StoredBody {
    pub(crate) text: String,
    /// The ids of its messages. In stores of older versions they are not the hashes of the messages.
    pub(crate) ids: Vec<NodeId>,
}

/// Assembles the body of a request byte for byte: the messages from number `from` up to `tip`, with their styles,
/// in the body frame.
pub(crate) fn stored_body(
    store: &dyn Store,
    tip: Option<NodeId>,
    from: u32,
    frame: &BodyFrame,
    dresses: &MessageStyles,
) -> Result<StoredBody, StoreError> {
    let nodes = match tip {
        Some(tip) => store.chain(tip, from..u32::MAX)?,
        None => Vec::new(),
    };
    let text = frame.fill((0..).zip(&nodes).map(|(i, node)| dresses.apply(i, &node.json)));
    Ok(StoredBody { text, ids: nodes.iter().map(|node| node.id).collect() })
}

/// Decodes the transcript up to a message. It uses no token counter, because originals need no counts.
fn transcript(store: &dyn Store, tip: NodeId, frame: &str, format: &str) -> Result<Transcript, StoreError> {
    let frame = read_frame(store, frame)?;
    // Message styles do not change the transcript.
    let body = stored_body(store, Some(tip), 0, &frame, &MessageStyles::default())?;
    let (_, changes) = decode_as(&body.text, format, &frame).map_err(|error| {
        StoreError::Corrupt(format!("the messages up to {tip} cannot be decoded: {error}"))
    })?;
    let mut transcript = Transcript::new();
    changes.into_iter().for_each(|change| change.apply(&mut transcript, &Words));
    Ok(transcript)
}
