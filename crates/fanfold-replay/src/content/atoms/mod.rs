//! Finds the *atoms* of a recorded reply: the texts that it must have taken from its input.
//!
//! An atom is a text that a model can hardly write by chance: a path, a URL, an identifier, an id or number of four or
//! more characters, a short quoted text, the name of an error. Longer lines that a call's arguments repeat verbatim are
//! measured separately.

mod scan; //             finds atoms in a text
mod paths; //            URLs, paths, files
mod names; //            numbers, ids, identifiers
mod common_knowledge; // texts that models know without reading them

use rustc_hash::{FxHashMap, FxHashSet};

pub use common_knowledge::CommonKnowledge;

use super::message::ChatMessage;
use super::text::{n_chars, unescape};

/// The kind of an atom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AtomClass {
    /// A URL.
    Url,
    /// A path or the name of a file.
    Path,
    /// A short text in quotes.
    Quoted,
    /// A number, or letters and digits mixed.
    Id,
    /// An identifier.
    Ident,
    /// The name of an error.
    Error,
    /// A longer line of a call's arguments; measured separately.
    Line,
}

impl AtomClass {
    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            AtomClass::Url => "url",
            AtomClass::Path => "path",
            AtomClass::Quoted => "quoted",
            AtomClass::Id => "id",
            AtomClass::Ident => "ident",
            AtomClass::Error => "error",
            AtomClass::Line => "line",
        }
    }

    /// True if it is meaningful without its surrounding text.
    pub(crate) fn is_self_contained(self) -> bool {
        matches!(self, AtomClass::Url | AtomClass::Path)
    }
}

/// Limits the weight of a single huge call.
const MAX_PER_REPLY: usize = 400;

/// The distinct atoms of a reply in the order they are found, then its lines.
pub(crate) fn find_atoms(reply: &ChatMessage, known: &CommonKnowledge) -> Vec<(String, AtomClass)> {
    let mut parts = vec![reply.content.as_str()];
    let calls: Vec<String> = reply.calls.iter().map(|call| call.values()).collect();
    parts.extend(calls.iter().map(String::as_str));
    parts.retain(|part| !part.is_empty());
    let text = unescape(&parts.join("\n"));
    let mut collector = AtomCollector { known, classes: FxHashMap::default(), order: Vec::new() };
    scan::each_atom(&text, |atom, class| collector.add(atom, class));
    let AtomCollector { mut classes, mut order, .. } = collector;
    for line in lines_of(&calls) {
        if classes.insert(line.clone(), AtomClass::Line).is_none() {
            order.push((line, AtomClass::Line));
        }
    }
    order
}

struct AtomCollector<'k> {
    known: &'k CommonKnowledge,
    classes: FxHashMap<String, AtomClass>,
    order: Vec<(String, AtomClass)>,
}

impl AtomCollector<'_> {
    fn add(&mut self, found: &str, class: AtomClass) {
        let atom = found.trim().trim_matches(['.', ',', ';', ':', '!', '?']);
        let is_short = n_chars(atom) < 4;
        if is_short || self.order.len() >= MAX_PER_REPLY || self.classes.contains_key(atom) {
            return;
        }
        if !self.known.contains(atom) {
            self.classes.insert(atom.to_owned(), class);
            self.order.push((atom.to_owned(), class));
        }
    }
}

/// The longer lines in the arguments of calls.
fn lines_of(calls: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut seen = FxHashSet::default();
    for call in calls {
        let call = unescape(call);
        for line in call.split('\n').map(str::trim) {
            let is_long_enough = (30..=400).contains(&n_chars(line)) && has_words(line);
            if is_long_enough && lines.len() < MAX_PER_REPLY && seen.insert(line.to_owned()) {
                lines.push(line.to_owned());
            }
        }
    }
    lines
}

/// True if there are three runs of two or more letters.
fn has_words(line: &str) -> bool {
    let runs = line.as_bytes().split(|byte| !byte.is_ascii_alphabetic());
    runs.filter(|run| run.len() >= 2).nth(2).is_some()
}
