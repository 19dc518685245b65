//! The [`Store`] trait. Every implementation passes the test suite in `tests/it/contract.rs`.

use std::ops::Range;

use crate::doctor::{CheckMode, Finding};
use crate::model::{Batch, BlobId, CommitSummary, EventRow, Millis, Node, NodeId, SessionId, SessionRow};
use crate::search::{SearchHits, SearchSpec};

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No session has this id.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// A session with this id already exists.
    #[error("session {0} already exists")]
    SessionExists(SessionId),
    /// No message has this id.
    #[error("there is no message {0}")]
    NoNode(NodeId),
    /// Another session has this title.
    #[error("session {holder} already has the title {title:?}")]
    TitleTaken {
        /// The title.
        title: String,
        /// The session that has it.
        holder: SessionId,
    },
    /// The tip of the session is not the expected one, because another writer moved it.
    #[error("session {0} was changed by another process")]
    Conflict(SessionId),
    /// Other processes held the store's locks for too long.
    #[error("the store was still busy after {tries} tries")]
    Busy {
        /// The number of attempts.
        tries: u32,
    },
    /// The disk is full, or a quota or a file size limit is reached. Nothing of the batch was written.
    #[error(
        "no space left to write the store\n\nhint: free some space and try again; earlier data is intact"
    )]
    DiskFull,
    /// The store was written by a newer fanfold.
    #[error("the store has schema version {found}, and this fanfold supports versions up to {known}")]
    TooNew {
        /// The schema version of the store.
        found: u32,
        /// The newest version that this program supports.
        known: u32,
    },
    /// The store was written by an older fanfold and is opened read-only, so it cannot be upgraded.
    #[error(
        "the store has schema version {found}, and this fanfold reads version {known}\n\n\
         hint: open it for writing once to upgrade it"
    )]
    TooOld {
        /// The schema version of the store.
        found: u32,
        /// The version that this program reads.
        known: u32,
    },
    /// The file or database is empty.
    #[error(
        "it does not contain a fanfold store yet\n\nhint: store a session first: fanfold fold --session new chat.json"
    )]
    NoStore,
    /// The database belongs to another program.
    #[error("it is another program's database\n\nhint: use a separate file for the store (--store FILE)")]
    ForeignDatabase,
    /// The store was opened read-only.
    #[error("the store {0} was opened read-only")]
    ReadOnly(String),
    /// The address has no valid format.
    #[error(
        "{0} is not an address of a store\n\n\
         hint: a file, a folder, sqlite:FILE, postgres://USER@HOST/DATABASE or memory:"
    )]
    InvalidAddress(String),
    /// The store's data is damaged or inconsistent.
    #[error("the store is corrupt: {0}\n\nhint: `fanfold doctor` reports the damage and repairs what it can")]
    Corrupt(String),
    /// The store could not be opened, or failed before and is not used until it works again. The text is that of the
    /// first error, with its hint.
    #[error("{0}")]
    Unavailable(String),
    /// Any other error from the database.
    #[error("the store failed: {0}")]
    Other(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// True if the store itself fails, whatever the operation. The others are answers about sessions and messages.
    pub fn is_outage(&self) -> bool {
        match self {
            StoreError::NoSession(_)
            | StoreError::SessionExists(_)
            | StoreError::NoNode(_)
            | StoreError::TitleTaken { .. }
            | StoreError::Conflict(_) => false,
            StoreError::Busy { .. }
            | StoreError::DiskFull
            | StoreError::TooNew { .. }
            | StoreError::TooOld { .. }
            | StoreError::NoStore
            | StoreError::ForeignDatabase
            | StoreError::ReadOnly(_)
            | StoreError::InvalidAddress(_)
            | StoreError::Corrupt(_)
            | StoreError::Unavailable(_)
            | StoreError::Other(_) => true,
        }
    }
}

/// Selects sessions; a session must match every condition that is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionFilter {
    /// The program that created the session.
    pub source: Option<String>,
    /// The root session of the lineage.
    pub root: Option<SessionId>,
    /// The parent session.
    pub parent: Option<SessionId>,
    /// The exact title.
    pub title: Option<String>,
    /// Last written to at this time or later.
    pub since: Option<Millis>,
    /// Last written to before this time.
    pub before: Option<Millis>,
    /// The maximum number of sessions; unlimited if `None`.
    pub limit: Option<usize>,
    /// The number of matching sessions to skip.
    pub offset: usize,
}

/// A lease: the exclusive right to fold a session until it expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLock {
    /// The session.
    pub session: SessionId,
    /// The lock holder: host, process, and a random word.
    pub holder: String,
    /// When the lease expires.
    pub until: Millis,
}

/// The result of trying to take a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockOutcome {
    /// The caller holds the lock.
    Acquired(SessionLock),
    /// Another holder's lease has not expired.
    HeldByOther(SessionLock),
}

/// The size of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreSize {
    /// The number of sessions.
    pub n_sessions: u64,
    /// The number of messages; a message that several sessions share counts once.
    pub n_nodes: u64,
    /// The bytes of the messages' JSON.
    pub n_json_bytes: u64,
    /// The number of events of all sessions.
    pub n_events: u64,
    /// The bytes on disk, including indexes.
    pub n_disk_bytes: u64,
}

/// A durable store of sessions.
pub trait Store: Send + Sync {
    /// Writes a batch atomically. It is durable when this returns.
    fn commit(&self, batch: &Batch) -> Result<CommitSummary, StoreError>;

    /// Returns a session.
    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>, StoreError>;

    /// Lists sessions, the last written to first.
    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreError>;

    /// Returns the messages on the chain that ends at `tip`, limited to these depths, oldest first.
    fn chain(&self, tip: NodeId, depths: Range<u32>) -> Result<Vec<Node>, StoreError>;

    /// Like [`chain`](Store::chain), with U+FFFD for bytes that are not UTF-8: for search, export and display, so that
    /// one damaged byte does not hide a session. A view is never built from it.
    fn readable_chain(&self, tip: NodeId, depths: Range<u32>) -> Result<Vec<Node>, StoreError> {
        self.chain(tip, depths)
    }

    /// Returns a message, with U+FFFD for bytes that are not UTF-8.
    fn node(&self, id: NodeId) -> Result<Option<Node>, StoreError>;

    /// Returns the message with a number.
    fn node_by_number(&self, number: u64) -> Result<Option<Node>, StoreError>;

    /// Returns the sessions whose chain contains the message, the oldest first. Rewound messages have no owner.
    fn owners(&self, node: NodeId) -> Result<Vec<SessionId>, StoreError>;

    /// Searches the messages that belong to a session. The result includes every committed batch, unless very many
    /// messages are not indexed yet; it is then marked as bounded.
    fn search(&self, spec: &SearchSpec) -> Result<SearchHits, StoreError>;

    /// Returns the events of a session whose sequence number is at least `from`, oldest first.
    fn events(&self, session: &SessionId, from: u32) -> Result<Vec<EventRow>, StoreError>;

    /// Returns a blob.
    fn blob(&self, id: BlobId) -> Result<Option<Vec<u8>>, StoreError>;

    /// Returns the integer stored under a name.
    fn named_value(&self, name: &str) -> Result<Option<i64>, StoreError>;

    /// Takes or renews the lock of a session for `lease_ms`, unless another holder's lease has not expired at `now`.
    fn lock(
        &self,
        session: &SessionId,
        holder: &str,
        lease_ms: i64,
        now: Millis,
    ) -> Result<LockOutcome, StoreError>;

    /// Releases a lock if `holder` holds it.
    fn unlock(&self, session: &SessionId, holder: &str) -> Result<(), StoreError>;

    /// Deletes messages and blobs that no session or event refers to. Returns the number of deleted messages.
    fn collect_garbage(&self) -> Result<u64, StoreError>;

    /// Checks the consistency of the whole store; in [`CheckMode::Repair`], also repairs what can be repaired.
    fn check(&self, mode: CheckMode) -> Result<Vec<Finding>, StoreError>;

    /// Returns the size of the store.
    fn size(&self) -> Result<StoreSize, StoreError>;
}
