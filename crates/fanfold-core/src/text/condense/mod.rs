//! Condensers: shorten a text according to its kind.
//!
//! All condensers choose lines of the original, keep their order and mark the gaps, so that the output reads like the
//! original with parts left out. The header of each file explains its choice.

pub(crate) mod severity; // finds lines that report a failure
mod lines; //               chooses lines within a room
mod envelope; //            the envelope that a harness puts around a result
mod kind; //                detects the kind of a text
mod written; //             tool inputs: commands with scripts, files, patches

#[cfg(test)]
mod check; //               shared test code
#[cfg(test)]
mod examples; //            runs the examples of the headers

/// Documents and data.
mod documents {
    pub(crate) mod json;
    pub(crate) mod table;
    pub(crate) mod html;
    pub(crate) mod prose;
    pub(crate) mod dense;
    pub(crate) mod escaped;
}
/// Output of programs.
mod output {
    pub(crate) mod log;
    pub(crate) mod trace;
    pub(crate) mod runs;
    pub(crate) mod search;
    pub(crate) mod listing;
}
/// Source code and patches.
mod source {
    pub(crate) mod code;
    pub(crate) mod diff;
    pub(crate) mod outline;
    #[cfg(feature = "outline")]
    mod parse;
    #[cfg(feature = "outline")]
    mod grammar;
}

pub use kind::detect_kind;
pub(crate) use kind::{Condenser, Sample};
pub(crate) use source::code::is_definition;
pub(crate) use source::outline::CachedOutlines;
pub(crate) use source::outline::Outlines;
pub use written::condense_input;

use documents::{dense, escaped, html, json, prose, table};
use output::{listing, log, runs, search, trace};
use source::{code, diff};

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContentKind {
    /// Structured program output.
    Json,
    /// Program output, and any text with lines that is of no other kind.
    Log,
    /// A stack trace.
    Trace,
    /// Test runner output.
    Tests,
    /// A patch.
    Diff,
    /// A source file.
    Code,
    /// Hits of grep.
    Search,
    /// File names.
    Listing,
    /// A table.
    Table,
    /// A web page.
    Html,
    /// Prose.
    Prose,
    /// Encoded or minified data.
    Dense,
}

/// One condenser per kind, in the order of detection.
const CONDENSERS: [Condenser; 12] = [
    json::CONDENSER,
    html::CONDENSER,
    dense::CONDENSER,
    diff::CONDENSER,
    runs::CONDENSER,
    trace::CONDENSER,
    search::CONDENSER,
    listing::CONDENSER,
    table::CONDENSER,
    log::CONDENSER,
    prose::CONDENSER,
    code::CONDENSER,
];

impl ContentKind {
    /// All kinds.
    pub const ALL: [ContentKind; CONDENSERS.len()] = {
        let mut all = [ContentKind::Log; CONDENSERS.len()];
        let mut i = 0;
        while i < all.len() {
            all[CONDENSERS[i].kind as usize] = CONDENSERS[i].kind;
            i += 1;
        }
        all
    };

    /// The name in settings.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// How to condense a text.
#[derive(Clone, Copy)]
pub struct CondenseOptions<'a> {
    /// The maximum size in bytes.
    pub room: usize,
    /// The kind of the text; detected if `None`.
    pub kind: Option<ContentKind>,
    /// How likely later work needs a line: 0 for an ordinary line, 1 for each name that is in use.
    pub value: &'a dyn Fn(&str) -> f32,
    /// The file that the text shows, if any.
    pub file: Option<FileExcerpt<'a>>,
    /// A cache of outlines; without one, outlines are computed each time.
    pub outlines: Option<&'a Outlines>,
}

/// The part of a file that a text shows.
#[derive(Clone, Copy)]
pub struct FileExcerpt<'a> {
    /// The path; its extension determines the language.
    pub path: &'a str,
    /// The line number of the first line, if known.
    pub first_line: Option<u32>,
    /// True if a line was edited. Definitions around edited lines are kept whole if there is room.
    pub is_edited: &'a dyn Fn(&str) -> bool,
}

impl<'a> CondenseOptions<'a> {
    /// Options for a text of unknown origin.
    pub fn new(room: usize, value: &'a dyn Fn(&str) -> f32) -> CondenseOptions<'a> {
        CondenseOptions { room, kind: None, value, file: None, outlines: None }
    }
}

/// Condenses a text. Returns `None` if it fits the room or would not become clearly shorter.
pub fn condense(text: &str, options: &CondenseOptions<'_>) -> Option<String> {
    if text.len() <= options.room {
        return None;
    }
    let mut short = condense_within(text, options, 0);
    if short.trim().is_empty() {
        short = format!("… {} lines", text.split('\n').count());
    }
    is_clearly_shorter(&short, text).then_some(short)
}

fn is_clearly_shorter(short: &str, text: &str) -> bool {
    short.len() < text.len() - text.len() / 8
}

/// The default size of a condensed text: a fifth of the original and room for its error lines.
pub fn default_room(text: &str) -> usize {
    default_room_for(text, detect_kind(text))
}

/// The default size for a text of a known kind.
pub(crate) fn default_room_for(text: &str, kind: ContentKind) -> usize {
    let room = (text.len() / 5).clamp(LEAST, MOST);
    if !Condenser::for_kind(kind).has_errors {
        return room;
    }
    (room + log::n_error_bytes(text)).min(text.len() / 2).clamp(room, MOST)
}

/// The minimum default size.
const LEAST: usize = 160;
/// The maximum default size.
const MOST: usize = 1_600;

/// The maximum nesting of texts, such as a log in a JSON string in a JSON string.
const DEEPEST: usize = 4;

fn condense_within(text: &str, options: &CondenseOptions<'_>, depth: usize) -> String {
    if text.len() <= options.room {
        return text.trim_end().to_owned();
    }
    let envelope = envelope::split(text);
    if envelope.len() > options.room / 2 {
        return body_within(text, options, depth);
    }
    let room = options.room - envelope.len();
    let inner = CondenseOptions { room, ..*options };
    envelope.wrap(&body_within(envelope.body, &inner, depth))
}

fn body_within(text: &str, options: &CondenseOptions<'_>, depth: usize) -> String {
    if text.len() <= options.room {
        return text.trim_end().to_owned();
    }
    if let (true, Some(plain)) = (depth < DEEPEST, escaped::unescape(text)) {
        return condense_within(&plain, options, depth + 1);
    }
    let kind = options.kind.unwrap_or_else(|| detect_kind(text));
    // Many tools wrap their output in JSON. A configured kind applies to the wrapped text.
    let may_be_wrapped =
        options.kind.is_some_and(|kind| kind != ContentKind::Json) && detect_kind(text) == ContentKind::Json;
    if may_be_wrapped && let Some(short) = json::condense_wrapped(text, options, depth) {
        return short;
    }
    let condenser = Condenser::for_kind(kind);
    // A file with many comments looks like prose, and one with many names like a listing. Its path is more reliable.
    let may_be_code = options.kind.is_none() && condenser.may_be_code;
    if may_be_code && let Some(outline) = code::condense_to_outline(text, options) {
        return outline;
    }
    (condenser.condense)(text, options, depth)
}
