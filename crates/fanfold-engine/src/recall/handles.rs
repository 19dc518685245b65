//! Recalls originals from the store alone, by the locations recorded with each fold.

use std::collections::BTreeMap;
use std::rc::Rc;

use fanfold_core::{
    Extent, Handle, Original, RecallError, Transcript, Words, find_by_content, open_original,
};
use fanfold_store::{NodeId, SessionId, Store, StoreError};

use crate::engine::SessionEngine;
use crate::follow::fold_record::content_hash;
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
        /// The session's handles with the longest common prefix.
        near: Vec<String>,
    },
    /// The original is missing or differs from the recorded fingerprint.
    #[error("the original behind {0} is damaged or missing")]
    Broken(Handle),
    /// The requested lines do not exist.
    #[error(transparent)]
    Extent(#[from] RecallError),
}

impl SessionEngine {
    /// Recalls the original behind any handle that a session has ever had, byte for byte.
    pub fn recall(&self, session: &SessionId, handle: Handle, extent: &Extent) -> Result<String, OpenError> {
        let past = SessionLog::read(&*self.store, session)?;
        let mut reader = OriginalReader::new(&*self.store, &past);
        match reader.read(handle)? {
            HandleLookup::Original(content) => Ok(extent.extract(content, handle)?),
            HandleLookup::Mismatch => Err(OpenError::Broken(handle)),
            HandleLookup::Unknown => {
                let found = self.find_by_content(session, &past, handle)?;
                let content = found.ok_or_else(|| unknown_handle(session, handle, &past))?;
                Ok(extent.extract(content, handle)?)
            }
        }
    }

    /// Finds an original by its hash. A handle is a hash of the content, so this works without a recorded fold.
    fn find_by_content(
        &self,
        session: &SessionId,
        past: &SessionLog,
        handle: Handle,
    ) -> Result<Option<String>, StoreError> {
        let frame = past.events.iter().rev().find_map(|noted| match &noted.event {
            SessionEvent::Request(sent) if sent.from == 0 => Some((sent.frame.clone(), sent.format.clone())),
            _ => None,
        });
        let row = self.store.session(session)?.ok_or_else(|| StoreError::NoSession(session.clone()))?;
        let (Some((frame, format)), Some(tip)) = (frame, row.tip) else { return Ok(None) };
        let transcript = transcript(&*self.store, tip, &frame, &format)?;
        Ok(find_by_content(&transcript, handle).map(|content| content.to_string()))
    }

    /// Recalls every handle of a session. Returns their number, and the handles whose originals are damaged or
    /// missing.
    pub fn check_handles(&self, session: &SessionId) -> Result<(usize, Vec<String>), StoreError> {
        let past = SessionLog::read(&*self.store, session)?;
        let mut reader = OriginalReader::new(&*self.store, &past);
        let mut broken = Vec::new();
        for digits in &past.handles {
            let is_intact = match digits.parse() {
                Ok(handle) => matches!(reader.read(handle)?, HandleLookup::Original(_)),
                Err(_) => false,
            };
            if !is_intact {
                broken.push(digits.clone());
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

/// The five handles with the longest common prefix, because handles are mistyped or truncated.
pub fn nearest_handles(handle: Handle, known: impl IntoIterator<Item = String>) -> Vec<String> {
    const MAX_NEAR: usize = 5;
    let digits = handle.to_string();
    let common = |known: &str| known.bytes().zip(digits.bytes()).take_while(|(a, b)| a == b).count();
    let mut near: Vec<String> = known.into_iter().collect();
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
    /// For each handle: the fold that recorded it, the original's location, and its fingerprint.
    recorded: BTreeMap<Handle, (&'s FoldRecord, Option<Original>, &'s str)>,
    transcripts: BTreeMap<(&'s str, &'s str), Rc<Transcript>>,
}

impl<'s> OriginalReader<'s> {
    fn new(store: &'s dyn Store, past: &'s SessionLog) -> OriginalReader<'s> {
        let mut recorded = BTreeMap::new();
        for noted in &past.events {
            let SessionEvent::Fold(fold) = &noted.event else { continue };
            for (digits, original, fingerprint) in &fold.handles {
                if let Ok(handle) = digits.parse() {
                    recorded.entry(handle).or_insert((
                        fold,
                        originals::from_json(original),
                        fingerprint.as_str(),
                    ));
                }
            }
        }
        OriginalReader { store, recorded, transcripts: BTreeMap::new() }
    }

    fn read(&mut self, handle: Handle) -> Result<HandleLookup, StoreError> {
        let Some((_, _, fingerprint)) = self.recorded.get(&handle) else { return Ok(HandleLookup::Unknown) };
        let fingerprint = *fingerprint;
        let content = self.content(handle, 64)?;
        Ok(match content.filter(|content| content_hash(content) == fingerprint) {
            Some(content) => HandleLookup::Original(content),
            None => HandleLookup::Mismatch,
        })
    }

    /// The content behind a handle. A handle may refer to several others, at most `depth` levels deep; each was
    /// recorded by its own fold.
    fn content(&mut self, handle: Handle, depth: usize) -> Result<Option<String>, StoreError> {
        let Some((fold, Some(original), _)) = self.recorded.get(&handle).cloned() else { return Ok(None) };
        if let Original::Several(_, handles) = &original {
            let Some(depth) = depth.checked_sub(1) else { return Ok(None) };
            let mut all = String::new();
            for handle in handles {
                let Some(part) = self.content(*handle, depth)? else { return Ok(None) };
                all.push_str(&part);
            }
            return Ok(Some(all));
        }
        if let Original::Text(_, words) = &original {
            return Ok(Some(words.to_string()));
        }
        let transcript = self.transcript(fold)?;
        Ok(transcript.and_then(|transcript| open_original(&transcript, &original, &BTreeMap::new())))
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
