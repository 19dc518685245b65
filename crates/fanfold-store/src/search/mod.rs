//! Finds what was said: by words, by place, by session.
//!
//! ```text
//! discover   which sessions say this?      the best hit of each, with its surroundings, its beginning and its end
//! scroll     what was said around here?    the messages before and after one
//! read       what was said there?          a session, a long one by its head and tail
//! browse     what was there lately?        the last sessions
//! ```

mod words; //   a text taken apart
mod json; //    the JSON of a message, cut or not
mod text; //    the text of a message
mod query; //   what somebody looks for
mod find; //    what a store is asked, and what may be seen
mod memory; //  full text in memory
mod lookup; //  what is found in a database
mod lag; //     when an index catches up
mod sqlite; //  full text in SQLite
#[cfg(feature = "postgres")]
mod postgres; // full text in PostgreSQL
mod snippet; // a few words around a hit
mod message; // a message as it is shown
mod request; // what a caller may ask
mod shapes; //  the four answers
mod discover; // the first of them

pub use discover::DiscoveredSession;
pub(crate) use find::{Candidate, Ownership, HitCollector, sort};
pub use find::{SearchSpec, SearchHit, SearchHits, LiveMessages, HitOrder};
pub(crate) use lag::IndexBacklog;
pub(crate) use lookup::{INDEX_BATCH, Index, search, remove_messages, index_pending, has_pending, rebuild};
pub(crate) use memory::MemoryIndex;
pub use message::DisplayMessage;
#[cfg(feature = "postgres")]
pub(crate) use postgres::PostgresIndex;
pub use query::{TermGroup, ExpandedQuery, ExpandedGroup, WordPattern, Phrase, Query, Term};
pub use request::{NoProfiles, Profiles, SearchRequest, SearchError, DateOrder};
pub use shapes::{BrowseReply, BrowsedSession, DiscoverReply, ReadReply, SearchReply, ScrollReply, Searcher, SessionMeta};
pub use snippet::snippet;
pub(crate) use sqlite::SqliteIndex;
pub use text::message_text;
pub use words::{for_each_word, joined_words, words};
