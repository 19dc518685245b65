//! Full text search over all sessions.
//!
//! ```text
//! discover   which sessions mention this?   the best hit of each lineage, with its context and both session ends
//! scroll     what surrounds this message?   the messages before and after it
//! read       what is in this session?       all of it, or the head and tail of a long one
//! browse     what happened lately?          the most recent sessions
//! ```

mod text; //    the text of a message and its words
mod query; //   the query language
mod spec; //    the search interface of a store, and which hits are visible
mod index; //   full text indexes
mod replies; // requests and the four kinds of reply

pub(crate) use index::backlog::IndexBacklog;
pub(crate) use index::lookup::search;
#[cfg(feature = "postgres")]
pub(crate) use index::postgres::PostgresIndex;
pub(crate) use index::sql_index::{INDEX_BATCH, Index, has_pending, index_pending, rebuild, remove_messages};
pub(crate) use index::sqlite::SqliteIndex;
pub use query::Query;
pub use replies::discover::DiscoveredSession;
pub use replies::display::DisplayMessage;
pub use replies::request::{DateOrder, NoProfiles, Profiles, SearchError, SearchRequest};
pub use replies::{
    BrowseReply, BrowsedSession, DiscoverReply, ReadReply, ScrollReply, SearchReply, Searcher, SessionMeta,
};
pub use spec::{HitOrder, LiveMessages, SearchHit, SearchHits, SearchSpec};
pub use text::message_text::message_text;
pub use text::words::words;
