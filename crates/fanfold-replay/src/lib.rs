//! Recorded conversations through policies: what would have been sent, what it would have held, what it would have cost.
//!
//! No model is called. At each recorded reply the policy makes the view that would have been sent, and the reply itself
//! says what it needed: paths, identifiers, values and lines that it used and that had been said before.

mod record; //     a recorded conversation
mod sources; //    the files they are in
mod text; //       words and boundaries
mod message; //    a message as it is measured
mod looks; //      each content once
mod atoms; //      what a reply took from what it was sent
mod copied; //     what a reply copied, whatever it is
mod trajectory; // all that does not depend on the policy
mod readable; //   what survives in rewritten text
mod recalled; //   what handles bring back
mod sent; //       what a provider would say
mod sums; //       what is added up
mod prices; //     what providers charge
mod moment; //     the reply that comes next
mod run; //        one policy at one window
mod replay; //     one conversation, reply by reply
mod table; //      outcomes added up

pub use atoms::{Class, Known};
pub use prices::{
    Bill, Charge, Cliff, Found, Match, Meter, Piece, Price, PriceChange, PriceTable, Request, Source, Why,
    cost,
};
pub use record::{Record, RecordError, Reported, sample, without_beginnings};
pub use replay::{FoldMade, Outcome, Terms, USUAL_PRICE, replay};
pub use sources::{Contents, Kind, Origin, Told, kind_of, read, read_whole};
pub use sums::{DISTANCES, Part, Sums, share};
pub use table::{Row, Shares, rows};
