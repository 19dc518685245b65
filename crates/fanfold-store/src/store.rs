//! What every store does. `tests/it/contract.rs` is the suite that each of them passes.

use std::ops::Range;

use crate::doctor::{CheckMode, Finding};
use crate::model::{Batch, BlobId, CommitSummary, EventRow, Millis, Node, NodeId, SessionId, SessionRow};
use crate::search::{SearchHits, SearchSpec};

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such session.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// A session of that id is there already.
    #[error("there is a session {0} already")]
    SessionExists(SessionId),
    /// There is no such message.
    #[error("there is no message {0}")]
    NoNode(NodeId),
    /// Another session has that title.
    #[error("session {holder} is called {title:?} already")]
    TitleTaken {
        /// The title.
        title: String,
        /// Who has it.
        holder: SessionId,
    },
    /// Somebody else wrote to the session.
    #[error("session {0} has gone on in the meantime")]
    Moved(SessionId),
    /// Others kept the store busy for too long.
    #[error("the store was busy for too long, after {tries} tries")]
    Busy {
        /// How often it was tried.
        tries: u32,
    },
    /// There is no room: the disk is full, or a quota, or a limit on the size of files. Nothing of the batch was written.
    #[error(
        "there is no room to write the store\n\nhint: make some and try again; what was written before is there"
    )]
    Full,
    /// The store was written by a newer fanfold.
    #[error("the store has version {found}, and this fanfold knows {known}")]
    TooNew {
        /// The version of the store.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// The store was written by an older fanfold, and may only be read here.
    #[error(
        "the store has version {found}, and this fanfold reads {known}\n\nhint: open it for writing once, and it is brought up"
    )]
    TooOld {
        /// The version of the store.
        found: u32,
        /// The one that is known.
        known: u32,
    },
    /// There is nothing of ours in it yet.
    #[error(
        "there is no store of fanfold's in it yet\n\nhint: keep a session there first: fanfold fold --session new chat.json"
    )]
    NoStore,
    /// It is somebody else's.
    #[error("it is another program's database\n\nhint: name a file of its own for the store (--store FILE)")]
    Foreign,
    /// The store was opened for reading alone.
    #[error("the store {0} was opened for reading alone")]
    ReadOnly(String),
    /// The address names no store.
    #[error(
        "{0} is no address of a store\n\nhint: a file, a folder, sqlite:FILE, postgres://USER@HOST/DATABASE or memory:"
    )]
    Address(String),
    /// The store is broken.
    #[error("the store is broken: {0}\n\nhint: `fanfold doctor` tells what is left and repairs what it can")]
    Broken(String),
    /// Anything else that the database says.
    #[error("the store failed: {0}")]
    Other(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Which sessions are meant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionFilter {
    /// Of this source.
    pub source: Option<String>,
    /// Of this lineage.
    pub root: Option<SessionId>,
    /// That came from this session.
    pub parent: Option<SessionId>,
    /// With this title.
    pub title: Option<String>,
    /// Written to at this moment or later.
    pub since: Option<Millis>,
    /// Last written to before this moment.
    pub before: Option<Millis>,
    /// At most so many; all if none.
    pub limit: Option<usize>,
    /// After so many.
    pub offset: usize,
}

/// The right to fold a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLock {
    /// The session.
    pub session: SessionId,
    /// Who has it: host, process, and a random word.
    pub holder: String,
    /// When it ends by itself.
    pub until: Millis,
}

/// How a lock was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockOutcome {
    /// It is ours.
    Acquired(SessionLock),
    /// Another one has it.
    HeldByOther(SessionLock),
}

/// How large a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreSize {
    /// Sessions.
    pub n_sessions: u64,
    /// Messages, each counted once.
    pub n_nodes: u64,
    /// Bytes of their JSON.
    pub n_json_bytes: u64,
    /// Events of all sessions.
    pub n_events: u64,
    /// Bytes on disk, with the index.
    pub n_disk_bytes: u64,
}

/// A place where sessions are kept.
pub trait Store: Send + Sync {
    /// Writes a batch: all of it, durably, or nothing.
    fn commit(&self, batch: &Batch) -> Result<CommitSummary, StoreError>;

    /// A session.
    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>, StoreError>;

    /// Sessions, the last written to first.
    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreError>;

    /// The messages that lead to a tip and have these depths, oldest first.
    fn chain(&self, tip: NodeId, depths: Range<u32>) -> Result<Vec<Node>, StoreError>;

    /// A message.
    fn node(&self, id: NodeId) -> Result<Option<Node>, StoreError>;

    /// The message of a number.
    fn node_by_number(&self, number: u64) -> Result<Option<Node>, StoreError>;

    /// The sessions whose chain has the message, the oldest first. A rewound message is in none.
    fn owners(&self, node: NodeId) -> Result<Vec<SessionId>, StoreError>;

    /// The messages with some words that may be seen, in the order asked for. Everything committed is found.
    fn search(&self, find: &SearchSpec) -> Result<SearchHits, StoreError>;

    /// The events of a session from a position on, oldest first.
    fn events(&self, session: &SessionId, from: u32) -> Result<Vec<EventRow>, StoreError>;

    /// Bytes that were kept.
    fn blob(&self, id: BlobId) -> Result<Option<Vec<u8>>, StoreError>;

    /// The number that was remembered under a name.
    fn named_value(&self, name: &str) -> Result<Option<i64>, StoreError>;

    /// Takes the lock of a session for so many milliseconds, or prolongs it, unless another one has it. A lock whose
    /// time is over is nobody's.
    fn lock(
        &self,
        session: &SessionId,
        holder: &str,
        lease_ms: i64,
        now: Millis,
    ) -> Result<LockOutcome, StoreError>;

    /// Gives a lock back, if it is the holder's.
    fn unlock(&self, session: &SessionId, holder: &str) -> Result<(), StoreError>;

    /// Removes messages and bytes that no session leads to. Gives how many messages went.
    fn collect_garbage(&self) -> Result<u64, StoreError>;

    /// Looks through all of it, and repairs what can be if asked to.
    fn check(&self, care: CheckMode) -> Result<Vec<Finding>, StoreError>;

    /// How large it is.
    fn size(&self) -> Result<StoreSize, StoreError>;
}
