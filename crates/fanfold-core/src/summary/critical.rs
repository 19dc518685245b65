//! What must not be missing in a summary: the paths, errors and ids of what it is about that later work needs most.

use std::collections::BTreeMap;

use crate::select::scorer::Lexicon;
use crate::summary::material::Chunk;
use crate::summary::quotes::normal;
use crate::text::atoms::{AtomKind, each_atom};
use crate::text::condense::signs::{Severity, head, severity_of};

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) kind: Kind,
    /// As it stands in the originals.
    pub(crate) text: String,
}

/// What it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Path,
    Error,
    Id,
}

/// Of an error so many bytes are asked for.
const LONGEST: usize = 160;

/// The most important ones of a chunk, at most so many.
pub(crate) fn critical(chunk: &Chunk, lexicon: &Lexicon, most: usize) -> Vec<Reference> {
    let (mut paths, mut ids) = (BTreeMap::new(), BTreeMap::new());
    let mut errors: Vec<String> = Vec::new();
    let mut is_result = false;
    for line in chunk.text.lines() {
        let said = line.trim();
        if let Some(whose) = label_in(said) {
            is_result = whose.starts_with("call ");
        } else if is_result && severity_of(said) == Severity::Error {
            // What a dump puts behind a line is no part of it.
            let error = said.split("\", \"").next().unwrap_or(said);
            let error = head(error, LONGEST).trim_end().to_owned();
            errors.retain(|known| *known != error);
            errors.push(error);
        }
        each_atom(line, |atom, place| {
            let text = &line[place];
            let found = match atom.kind() {
                AtomKind::Path if is_path(text) => &mut paths,
                AtomKind::Number if text.len() >= 4 => &mut ids,
                _ => return,
            };
            let chance = lexicon.chance_of(atom).map_or(0.0, |(_, chance)| chance);
            found.entry(text.to_owned()).or_insert(chance);
        });
    }
    for path in &chunk.changed {
        // What was changed is what the work was.
        paths.insert(path.clone(), 1.0);
    }
    let (n_errors, n_ids) = (most / 4, most / 4);
    let n_paths = most - n_errors - n_ids;
    let reference = |kind: Kind| move |text: String| Reference { kind, text };
    let mut out: Vec<Reference> = best(paths, n_paths).map(reference(Kind::Path)).collect();
    // The newest errors are those that may still stand.
    out.extend(errors.into_iter().rev().take(n_errors).map(reference(Kind::Error)));
    out.extend(best(ids, n_ids).map(reference(Kind::Id)));
    out
}

/// Those with the best chances; the order does not depend on anything else.
fn best(found: BTreeMap<String, f32>, most: usize) -> impl Iterator<Item = String> {
    let mut found: Vec<(String, f32)> = found.into_iter().collect();
    found.sort_by(|(one, a), (other, b)| b.total_cmp(a).then_with(|| one.cmp(other)));
    found.into_iter().take(most).map(|(text, _)| text)
}

/// What stands in a line that was put before others to say whose they are.
fn label_in(line: &str) -> Option<&str> {
    let (number, whose) = line.strip_prefix('[').and_then(|rest| rest.split_once("] "))?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(whose)
}

fn is_path(text: &str) -> bool {
    text.len() >= 4 && text.contains(['/', '.']) && !text.ends_with('/')
}

impl Reference {
    /// Whether it stands in a text. A file may be called by its name alone, and of an error most words are enough.
    pub(crate) fn stands_in(&self, text: &str) -> bool {
        if text.contains(&self.text) {
            return true;
        }
        match self.kind {
            Kind::Id => false,
            Kind::Path => {
                let name = self.text.rsplit('/').next().unwrap_or_default();
                name.len() >= 5 && name.contains('.') && text.contains(name)
            }
            Kind::Error => {
                let wanted = normal(&self.text);
                let words: Vec<&str> = wanted.split(' ').filter(|word| word.len() > 2).collect();
                let is_told = |line: &str| {
                    let line = normal(line);
                    let n_found = words.iter().filter(|word| line.contains(**word)).count();
                    n_found * 5 >= words.len() * 3
                };
                words.len() > 1 && text.lines().any(is_told)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tokens::Tokens;
    use crate::model::transcript::EntryId;

    #[test]
    fn what_was_changed_and_what_failed_comes_first() {
        let text = "[3] call [bash] ran `cargo test` → exit 101\nerror: no field `width` on type `Header`\n\
                    src/lib.rs and docs/other.md were read\nticket ABC-4711 at 88123\n";
        let changed = vec!["src/header.rs".to_owned()];
        let chunk = Chunk { text: text.to_owned(), last: EntryId(3), whole: Tokens(9), changed };
        let found = critical(&chunk, &Lexicon::default(), 8);
        let of = |kind: Kind| -> Vec<&str> {
            found.iter().filter(|one| one.kind == kind).map(|one| one.text.as_str()).collect()
        };
        assert_eq!(of(Kind::Path)[0], "src/header.rs");
        assert_eq!(of(Kind::Error), ["error: no field `width` on type `Header`"]);
        assert!(of(Kind::Path).contains(&"src/lib.rs"));
    }

    #[test]
    fn a_reference_may_be_told_in_other_words() {
        let reference = |kind, text: &str| Reference { kind, text: text.to_owned() };
        assert!(reference(Kind::Path, "src/parse/header.rs").stands_in("- header.rs was edited"));
        assert!(!reference(Kind::Path, "src/a.rs").stands_in("- b.rs was edited"));
        let error = reference(Kind::Error, "error[E0609]: no field `width` on type `Header`");
        assert!(error.stands_in("- failed with: no field width on the type Header (E0609)"));
        assert!(!error.stands_in("- it failed\n- no idea\n- width"));
        assert!(!reference(Kind::Id, "88123").stands_in("8812"));
    }
}
