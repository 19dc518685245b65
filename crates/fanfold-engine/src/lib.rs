//! One request from start to end, effects in order: the originals are kept, the folds are kept, then the view leaves.
//!
//! The engine orders effects and takes no decision about content. What a session's view is follows from its messages
//! and from what happened to it, both of which are in the store; what is held in memory only saves the time of
//! following it again.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod clock; //    what time it is
mod terms; //    what a conversation is folded by
mod room; //     how much room there is, as the provider counts
mod words; //    a person's first words
mod threads; //  all cores, for a session
mod follow; //   a conversation and its session, followed together
mod dresses; //  how the messages of a request were dressed
mod offer; //    how the model may open folds
mod note; //     what happens to a session
mod names; //    what handles open, written down
mod skeleton; // a body without its messages
mod past; //     what has happened, and what of it holds
mod undone; //   what of it no longer holds
mod state; //    a session followed to its newest message
mod cache; //    the sessions used last
mod lock; //     the right to fold
mod engine; //   all of it together
mod arrive; //   a body decoded
mod keep; //     what was said is kept
mod fold; //     what was folded is noted
mod request; //  one request from start to end
mod beside; //   recalls that a client was not shown
mod recollect; // memory at its end
mod recognise; // which session a body belongs to
mod related; //  what they have in common
mod provider; // what the provider says of a request
mod limit; //    what a model was found to take at most
mod recall; //   folds opened from the store alone
mod anywhere; // a handle whose session nobody named
mod errand; //   summaries, written beside the turns
mod rebuild; //  a request made again
mod wishes; //   titles, goals, pins
mod places; //   back, forth again, and to marked places
mod lineage; //  forks, rotations, the newest of a line
mod retention; // sessions that go
mod told; //     the window that a session was told
mod standing; // how full a window is, and what was folded
mod live; //     what a view holds as it was said
mod here; //     what of a conversation is here already
mod transfer; // sessions written down
mod bring; //    sessions brought here

pub use anywhere::{Recalled, Sought};
pub use bring::{Import, Imported};
pub use clock::{Clock, MachineClock};
pub use dresses::Dresses;
pub use engine::{Engine, OpError, store_hint, store_words};
pub use errand::{
    Ended, Missed, Pending, Progress, Rest, Wanted, Way, Ways, Writer, Written, summarise_alone,
};
pub use follow::{Followed, Sizes, Wishes, decode, messages_of, prepare};
pub use here::Brought;
pub use note::{Began, Beside, FoldMade, Moved, Note, Noted, Opened, Sent, Summarised, Why};
pub use offer::Offer;
pub use places::{Back, Place as Checkpoint, Step};
pub use provider::{Refused, Usage};
pub use rebuild::{Rebuilt, TermsOf};
pub use recall::OpenError;
pub use recognise::Recognised;
pub use recollect::Recollection;
pub use request::{Answer, Ask, Left, Mode, Trouble};
pub use retention::{Pruned, Retention};
pub use standing::Standing;
pub use terms::Terms;
pub use threads::Threads;
pub use told::Told;
pub use wishes::clean_title;
pub use words::opening_words;
