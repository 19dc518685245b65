//! What was folded, opened from the store alone: by what was noted when the handle was given.

use std::collections::BTreeMap;
use std::rc::Rc;

use fanfold_core::{Extent, Handle, Original, RecallError, Transcript, Words, find_by_content, open};
use fanfold_store::{NodeId, SessionId, Store, StoreError};

use crate::engine::Engine;
use crate::log::body_frame::Skeleton;
use crate::log::fold_record::print_of;
use crate::log::message_styles::Dresses;
use crate::log::notes::{FoldMade, Note};
use crate::log::originals;
use crate::log::session_log::Past;
use crate::sessions::state::{decode_as, read_frame};

/// Why an original was not recalled.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No fold of the session has the handle; these are the nearest that were given.
    #[error("no original of session {session} has the handle {handle}")]
    Unknown {
        /// The session.
        session: SessionId,
        /// The handle.
        handle: Handle,
        /// Handles that begin alike.
        near: Vec<String>,
    },
    /// The handle opens other bytes than it was given for.
    #[error("{0} no longer opens what it was given for")]
    Broken(Handle),
    /// The lines asked for are not there.
    #[error(transparent)]
    Extent(#[from] RecallError),
}

impl Engine {
    /// The original behind any handle that a session was ever given, byte for byte.
    pub fn recall(&self, session: &SessionId, handle: Handle, extent: &Extent) -> Result<String, OpenError> {
        let past = Past::read(&*self.store, session)?;
        let mut opener = Opener::new(&*self.store, &past);
        match opener.open(handle)? {
            Opened::Whole(content) => Ok(extent.of(content, handle)?),
            Opened::Other => Err(OpenError::Broken(handle)),
            Opened::Unknown => {
                let found = self.by_content(session, &past, handle)?;
                let content = found.ok_or_else(|| unknown(session, handle, &past))?;
                Ok(extent.of(content, handle)?)
            }
        }
    }

    /// A handle names content, so an original can be found again without knowing how it was folded.
    fn by_content(
        &self,
        session: &SessionId,
        past: &Past,
        handle: Handle,
    ) -> Result<Option<String>, StoreError> {
        let frame = past.notes.iter().rev().find_map(|noted| match &noted.note {
            Note::Request(sent) if sent.from == 0 => Some((sent.frame.clone(), sent.format.clone())),
            _ => None,
        });
        let row = self.store.session(session)?.ok_or_else(|| StoreError::NoSession(session.clone()))?;
        let (Some((frame, format)), Some(tip)) = (frame, row.tip) else { return Ok(None) };
        let transcript = transcript(&*self.store, tip, &frame, &format)?;
        Ok(find_by_content(&transcript, handle).map(|content| content.to_string()))
    }

    /// Opens every handle that a session was ever given: how many there are, and those that do not open what they
    /// were given for.
    pub fn check_handles(&self, session: &SessionId) -> Result<(usize, Vec<String>), StoreError> {
        let past = Past::read(&*self.store, session)?;
        let mut opener = Opener::new(&*self.store, &past);
        let mut broken = Vec::new();
        for digits in &past.handles {
            let is_right = match digits.parse() {
                Ok(handle) => matches!(opener.open(handle)?, Opened::Whole(_)),
                Err(_) => false,
            };
            if !is_right {
                broken.push(digits.clone());
            }
        }
        Ok((past.handles.len(), broken))
    }

    /// Every handle that a session was ever given, in order of their digits.
    pub fn handles(&self, session: &SessionId) -> Result<Vec<String>, StoreError> {
        Ok(Past::read(&*self.store, session)?.handles.into_iter().collect())
    }
}

fn unknown(session: &SessionId, handle: Handle, past: &Past) -> OpenError {
    const MOST_NAMED: usize = 5;
    let wanted = handle.to_string();
    let common = |known: &str| known.bytes().zip(wanted.bytes()).take_while(|(a, b)| a == b).count();
    let mut near: Vec<String> = past.handles.iter().cloned().collect();
    near.sort_by_key(|known| (std::cmp::Reverse(common(known)), known.clone()));
    near.truncate(MOST_NAMED);
    OpenError::Unknown { session: session.clone(), handle, near }
}

/// What came of opening a handle.
enum Opened {
    /// What it was given for.
    Whole(String),
    /// Something else, or nothing.
    Other,
    /// It was never given.
    Unknown,
}

/// Opens handles, reading each transcript once.
struct Opener<'s> {
    store: &'s dyn Store,
    /// The fold that gave each handle, and what it says of it.
    given: BTreeMap<Handle, (&'s FoldMade, Option<Original>, &'s str)>,
    transcripts: BTreeMap<(&'s str, &'s str), Rc<Transcript>>,
}

impl<'s> Opener<'s> {
    fn new(store: &'s dyn Store, past: &'s Past) -> Opener<'s> {
        let mut given = BTreeMap::new();
        for noted in &past.notes {
            let Note::Fold(fold) = &noted.note else { continue };
            for (digits, original, print) in &fold.handles {
                if let Ok(handle) = digits.parse() {
                    given.entry(handle).or_insert((fold, originals::read(original), print.as_str()));
                }
            }
        }
        Opener { store, given, transcripts: BTreeMap::new() }
    }

    fn open(&mut self, handle: Handle) -> Result<Opened, StoreError> {
        let Some((_, _, print)) = self.given.get(&handle) else { return Ok(Opened::Unknown) };
        let print = *print;
        let content = self.content(handle, 64)?;
        Ok(match content.filter(|content| print_of(content) == print) {
            Some(content) => Opened::Whole(content),
            None => Opened::Other,
        })
    }

    /// What a handle opens. Names stand for names, each given at its own moment.
    fn content(&mut self, handle: Handle, depth: usize) -> Result<Option<String>, StoreError> {
        let Some((fold, Some(original), _)) = self.given.get(&handle).cloned() else { return Ok(None) };
        if let Original::Several(_, handles) = &original {
            let Some(depth) = depth.checked_sub(1) else { return Ok(None) };
            let mut all = String::new();
            for handle in handles {
                let Some(one) = self.content(*handle, depth)? else { return Ok(None) };
                all.push_str(&one);
            }
            return Ok(Some(all));
        }
        if let Original::Words(_, words) = &original {
            return Ok(Some(words.to_string()));
        }
        let transcript = self.transcript(fold)?;
        Ok(transcript.and_then(|transcript| open(&transcript, &original, &BTreeMap::new())))
    }

    fn transcript(&mut self, fold: &'s FoldMade) -> Result<Option<Rc<Transcript>>, StoreError> {
        let key = (fold.tip.as_str(), fold.frame.as_str());
        if let Some(known) = self.transcripts.get(&key) {
            return Ok(Some(Rc::clone(known)));
        }
        let Ok(tip) = fold.tip.parse() else { return Ok(None) };
        let read = match transcript(self.store, tip, &fold.frame, &fold.format) {
            // That something is missing is told of the handle that needs it.
            Err(StoreError::NoNode(_) | StoreError::Corrupt(_)) => return Ok(None),
            read => Rc::new(read?),
        };
        self.transcripts.insert(key, Rc::clone(&read));
        Ok(Some(read))
    }
}

/// A body made again of what was kept.
pub(crate) struct Body {
    pub(crate) text: String,
    /// The ids of its messages. Those of older stores don't follow from what their messages say.
    pub(crate) ids: Vec<NodeId>,
}

/// The body of a request, byte for byte: the messages that lead to a tip, dressed, in what stood around them.
pub(crate) fn body_of(
    store: &dyn Store,
    tip: Option<NodeId>,
    from: u32,
    frame: &Skeleton,
    dresses: &Dresses,
) -> Result<Body, StoreError> {
    let nodes = match tip {
        Some(tip) => store.chain(tip, from..u32::MAX)?,
        None => Vec::new(),
    };
    let text = frame.fill((0..).zip(&nodes).map(|(i, node)| dresses.dress(i, &node.json)));
    Ok(Body { text, ids: nodes.iter().map(|node| node.id).collect() })
}

/// What was said up to a message. It is not counted.
fn transcript(store: &dyn Store, tip: NodeId, frame: &str, format: &str) -> Result<Transcript, StoreError> {
    let frame = read_frame(store, frame)?;
    // What was said is the same whatever its dress.
    let body = body_of(store, Some(tip), 0, &frame, &Dresses::default())?;
    let (_, changes) = decode_as(&body.text, format, &frame).map_err(|error| {
        StoreError::Corrupt(format!("the messages up to {tip} are not understood: {error}"))
    })?;
    let mut transcript = Transcript::new();
    changes.into_iter().for_each(|change| change.apply(&mut transcript, &Words));
    Ok(transcript)
}
