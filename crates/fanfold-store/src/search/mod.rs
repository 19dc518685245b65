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

pub use discover::Discovered;
pub(crate) use find::{Candidate, Owned, Picker, sort};
pub use find::{Find, Found, Hits, Live, Order};
pub(crate) use lag::Lag;
pub(crate) use lookup::{INDEXED_AT_ONCE, Index, find, forget, index_some, is_behind, rebuild};
pub(crate) use memory::MemoryIndex;
pub use message::Shown;
#[cfg(feature = "postgres")]
pub(crate) use postgres::InPostgres;
pub use query::{All, Expanded, ExpandedAll, Like, Phrase, Query, Term};
pub use request::{NoProfiles, Profiles, Request, SearchError, Sort};
pub use shapes::{Browse, Browsed, Discover, Read, Reply, Scroll, Search, SessionMeta};
pub use snippet::snippet;
pub(crate) use sqlite::InSqlite;
pub use text::text_of;
pub use words::{each_word, prepared, words};
