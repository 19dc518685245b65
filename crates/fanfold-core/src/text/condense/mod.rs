//! Long texts made short by what they are.
//!
//! Each kind has its file, which says what is kept and why. All of them choose lines of the original, in its order,
//! and mark the gaps: what is left reads like the original with parts left out.

pub(crate) mod signs; // lines that say that something went wrong
mod lines; //            chooses lines under a room
mod frame; //            what a harness puts around a result
mod kind; //             tells what a text is
mod documents; //        JSON, tables, web pages, prose, encoded data
mod output; //           output of programs
mod source; //           source code and patches
mod written; //          what an agent wrote: commands with scripts, files, patches

#[cfg(test)]
mod check; //            what the tests share
#[cfg(test)]
mod examples; //         runs those in the headers

pub use kind::{Kind, kind_of};
pub(crate) use source::code::is_definition;
pub(crate) use source::outline::Known as KnownOutlines;
pub use source::outline::Outlines;
pub use written::condense_written;

use documents::{dense, escaped, html, json, prose, table};
use output::{listing, log, runs, search, trace};
use source::{code, diff};

/// What a condensed text should be like.
#[derive(Clone, Copy)]
pub struct Wish<'a> {
    /// The bytes that it may have.
    pub room: usize,
    /// What the text is, where that is known; none has it looked at.
    pub kind: Option<Kind>,
    /// How much later work may need a line: 0 for nothing special, 1 for a name that is in use, more for more of it.
    pub value: &'a dyn Fn(&str) -> f32,
    /// The file that the text shows, where it is known to show one.
    pub file: Option<FileShown<'a>>,
    /// The outlines that are known; none has every text parsed.
    pub outlines: Option<&'a Outlines>,
}

/// The file that a text shows.
#[derive(Clone, Copy)]
pub struct FileShown<'a> {
    /// Its path, which tells the language of code.
    pub path: &'a str,
    /// The number of the first line that the text shows, where it is known.
    pub first_line: Option<u32>,
    /// Whether a line of it was worked on: what is defined around that line stays whole, where there is room.
    pub is_worked_on: &'a dyn Fn(&str) -> bool,
}

impl<'a> Wish<'a> {
    /// A wish for a text of which nothing more is known.
    pub fn new(room: usize, value: &'a dyn Fn(&str) -> f32) -> Wish<'a> {
        Wish { room, kind: None, value, file: None, outlines: None }
    }
}

/// The text within the room, or nothing where it would not be clearly shorter.
pub fn condense(text: &str, wish: &Wish<'_>) -> Option<String> {
    if text.len() <= wish.room {
        return None;
    }
    let mut short = condense_within(text, wish, 0);
    if short.trim().is_empty() {
        short = format!("… {} lines", text.split('\n').count());
    }
    let is_clearly_shorter = short.len() < text.len() - text.len() / 8;
    is_clearly_shorter.then_some(short)
}

/// The bytes that a text is condensed to where nothing else says how many: a fifth, and what its errors take.
pub fn usual_room(text: &str) -> usize {
    usual_room_as(text, kind_of(text))
}

/// The same for a text that is known to be of a kind.
pub(crate) fn usual_room_as(text: &str, kind: Kind) -> usize {
    let room = (text.len() / 5).clamp(LEAST, MOST);
    let has_errors = match kind {
        Kind::Log | Kind::Trace | Kind::Tests | Kind::Json | Kind::Table | Kind::Dense => true,
        // In these the words stand for other things.
        Kind::Diff | Kind::Code | Kind::Search | Kind::Listing | Kind::Html | Kind::Prose => false,
    };
    if !has_errors {
        return room;
    }
    (room + log::n_error_bytes(text)).min(text.len() / 2).clamp(room, MOST)
}

/// A text is condensed to at least so many bytes.
const LEAST: usize = 160;
/// And to no more than this, however long it is.
const MOST: usize = 1_600;

/// How deep a text may lie in another: a log in a string of JSON in a string of JSON.
const DEEPEST: usize = 4;

fn condense_within(text: &str, wish: &Wish<'_>, depth: usize) -> String {
    if text.len() <= wish.room {
        return text.trim_end().to_owned();
    }
    let frame = frame::split(text);
    if frame.len() > wish.room / 2 {
        return body_within(text, wish, depth);
    }
    let room = wish.room - frame.len();
    let inner = Wish { room, ..*wish };
    frame.around(&body_within(frame.body, &inner, depth))
}

fn body_within(text: &str, wish: &Wish<'_>, depth: usize) -> String {
    if text.len() <= wish.room {
        return text.trim_end().to_owned();
    }
    if let (true, Some(plain)) = (depth < DEEPEST, escaped::unescape(text)) {
        return condense_within(&plain, wish, depth + 1);
    }
    let kind = wish.kind.unwrap_or_else(|| kind_of(text));
    // Many tools put their output into JSON: what is said of it is said of what they put there.
    let may_be_around = wish.kind.is_some_and(|kind| kind != Kind::Json) && kind_of(text) == Kind::Json;
    if may_be_around && let Some(short) = json::condense_around(text, wish, depth) {
        return short;
    }
    // A file with many comments looks like prose, one with many names like a listing: its name tells more.
    let is_guess = wish.kind.is_none();
    let may_be_code = is_guess && matches!(kind, Kind::Log | Kind::Listing | Kind::Table | Kind::Prose);
    if may_be_code && let Some(outline) = code::outlined(text, wish) {
        return outline;
    }
    match kind {
        Kind::Json => json::condense(text, wish, depth).unwrap_or_else(|| log::condense(text, wish)),
        Kind::Log => log::condense(text, wish),
        Kind::Trace => trace::condense(text, wish),
        Kind::Tests => runs::condense(text, wish),
        Kind::Diff => diff::condense(text, wish),
        Kind::Code => code::condense(text, wish),
        Kind::Search => search::condense(text, wish),
        Kind::Listing => listing::condense(text, wish),
        Kind::Table => table::condense(text, wish),
        Kind::Html => html::condense(text, wish),
        Kind::Prose => prose::condense(text, wish),
        Kind::Dense => dense::condense(text, wish),
    }
}
