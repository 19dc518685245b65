//! What a recorded reply took from what it had been sent: its *atoms*.
//!
//! An atom is a text that a model can hardly write by chance, and that a wrong or missing view would break: a path, a
//! URL, an identifier, an id or number of four or more characters, a short quoted text, the name of an error. Beside
//! them stand the longer lines that a call's arguments repeat word for word.

mod scan; //  finds them in a text
mod paths; // URLs, paths, files
mod names; // numbers, ids, identifiers
mod known; // what models know anyway

use rustc_hash::{FxHashMap, FxHashSet};

pub use known::Known;

use crate::message::Message;
use crate::text::{n_chars, plain};

/// What kind of atom it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
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
    /// A longer line of a call's arguments; measured apart from the rest.
    Line,
}

impl Class {
    /// The word for it in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Class::Url => "url",
            Class::Path => "path",
            Class::Quoted => "quoted",
            Class::Id => "id",
            Class::Ident => "ident",
            Class::Error => "error",
            Class::Line => "line",
        }
    }

    /// Whether it explains itself wherever it stands.
    pub(crate) fn is_clear(self) -> bool {
        matches!(self, Class::Url | Class::Path)
    }
}

/// A huge call must not outweigh everything else.
const MOST_PER_REPLY: usize = 400;

/// The atoms of a reply, each once, in the order of finding, then its lines.
pub(crate) fn atoms_of(reply: &Message, known: &Known) -> Vec<(String, Class)> {
    let mut parts = vec![reply.content.as_str()];
    let calls: Vec<String> = reply.calls.iter().map(|call| call.values()).collect();
    parts.extend(calls.iter().map(String::as_str));
    parts.retain(|part| !part.is_empty());
    let text = plain(&parts.join("\n"));
    let mut basket = Basket { known, taken: FxHashMap::default(), order: Vec::new() };
    scan::each_atom(&text, |atom, class| basket.add(atom, class));
    let Basket { mut taken, mut order, .. } = basket;
    for line in lines_of(&calls) {
        if taken.insert(line.clone(), Class::Line).is_none() {
            order.push((line, Class::Line));
        }
    }
    order
}

struct Basket<'k> {
    known: &'k Known,
    taken: FxHashMap<String, Class>,
    order: Vec<(String, Class)>,
}

impl Basket<'_> {
    fn add(&mut self, found: &str, class: Class) {
        let atom = found.trim().trim_matches(['.', ',', ';', ':', '!', '?']);
        let is_short = n_chars(atom) < 4;
        if is_short || self.order.len() >= MOST_PER_REPLY || self.taken.contains_key(atom) {
            return;
        }
        if !self.known.has(atom) {
            self.taken.insert(atom.to_owned(), class);
            self.order.push((atom.to_owned(), class));
        }
    }
}

/// The longer lines of calls' arguments: copied, if they stand word for word in what was said before.
fn lines_of(calls: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut seen = FxHashSet::default();
    for call in calls {
        let call = plain(call);
        for line in call.split('\n').map(str::trim) {
            let is_fit = (30..=400).contains(&n_chars(line)) && has_words(line);
            if is_fit && lines.len() < MOST_PER_REPLY && seen.insert(line.to_owned()) {
                lines.push(line.to_owned());
            }
        }
    }
    lines
}

/// Whether there are three runs of two or more letters.
fn has_words(line: &str) -> bool {
    let runs = line.as_bytes().split(|byte| !byte.is_ascii_alphabetic());
    runs.filter(|run| run.len() >= 2).nth(2).is_some()
}
