//! Finds the paths, errors and ids in a chunk that later work needs most.

use std::collections::BTreeMap;

use crate::select::scorer::Lexicon;
use crate::summary::material::Chunk;
use crate::summary::quotes::normalize;
use crate::text::atoms::{AtomKind, each_atom};
use crate::text::condense::severity::{Severity, head, severity_of};

/// A path, an error or an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) kind: ReferenceKind,
    /// The text in the originals.
    pub(crate) text: String,
}

/// The kind of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReferenceKind {
    Path,
    Error,
    Id,
}

/// The maximum length of an error in bytes.
const LONGEST: usize = 160;

/// The `most` most important references of a chunk.
pub(crate) fn critical(chunk: &Chunk, lexicon: &Lexicon, most: usize) -> Vec<Reference> {
    let (mut paths, mut ids) = (BTreeMap::new(), BTreeMap::new());
    let mut errors: Vec<String> = Vec::new();
    let mut is_result = false;
    for line in chunk.text.lines() {
        let trimmed = line.trim();
        if let Some(label) = label_in(trimmed) {
            is_result = label.starts_with("call ");
        } else if is_result && severity_of(trimmed) == Severity::Error {
            // In a JSON dump, the next string is not part of the error.
            let error = trimmed.split("\", \"").next().unwrap_or(trimmed);
            let error = head(error, LONGEST).trim_end().to_owned();
            errors.retain(|known| *known != error);
            errors.push(error);
        }
        each_atom(line, |atom, range| {
            let text = &line[range];
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
        // Changed files are the most important ones.
        paths.insert(path.clone(), 1.0);
    }
    let (n_errors, n_ids) = (most / 4, most / 4);
    let n_paths = most - n_errors - n_ids;
    let reference = |kind: ReferenceKind| move |text: String| Reference { kind, text };
    let mut out: Vec<Reference> = best(paths, n_paths).map(reference(ReferenceKind::Path)).collect();
    // The newest errors are the most likely to persist.
    out.extend(errors.into_iter().rev().take(n_errors).map(reference(ReferenceKind::Error)));
    out.extend(best(ids, n_ids).map(reference(ReferenceKind::Id)));
    out
}

/// The texts with the highest probability, in a deterministic order.
fn best(found: BTreeMap<String, f32>, most: usize) -> impl Iterator<Item = String> {
    let mut found: Vec<(String, f32)> = found.into_iter().collect();
    found.sort_by(|(one, a), (other, b)| b.total_cmp(a).then_with(|| one.cmp(other)));
    found.into_iter().take(most).map(|(text, _)| text)
}

/// The text of a label line, which gives the author of the following lines.
fn label_in(line: &str) -> Option<&str> {
    let (number, label) = line.strip_prefix('[').and_then(|rest| rest.split_once("] "))?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(label)
}

fn is_path(text: &str) -> bool {
    text.len() >= 4 && text.contains(['/', '.']) && !text.ends_with('/')
}

impl Reference {
    /// Returns whether the reference appears in a text. The file name is enough for a path, and most of the words for
    /// an error.
    pub(crate) fn appears_in(&self, text: &str) -> bool {
        if text.contains(&self.text) {
            return true;
        }
        match self.kind {
            ReferenceKind::Id => false,
            ReferenceKind::Path => {
                let name = self.text.rsplit('/').next().unwrap_or_default();
                name.len() >= 5 && name.contains('.') && text.contains(name)
            }
            ReferenceKind::Error => {
                let error = normalize(&self.text);
                let words: Vec<&str> = error.split(' ').filter(|word| word.len() > 2).collect();
                let has_most_words = |line: &str| {
                    let line = normalize(line);
                    let n_found = words.iter().filter(|word| line.contains(**word)).count();
                    n_found * 5 >= words.len() * 3
                };
                words.len() > 1 && text.lines().any(has_most_words)
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
    fn changed_files_and_errors_come_first() {
        let text = "[3] call [bash] ran `cargo test` → exit 101\nerror: no field `width` on type `Header`\n\
                    src/lib.rs and docs/other.md were read\nticket ABC-4711 at 88123\n";
        let changed = vec!["src/header.rs".to_owned()];
        let chunk = Chunk { text: text.to_owned(), last: EntryId(3), whole: Tokens(9), changed };
        let found = critical(&chunk, &Lexicon::default(), 8);
        let of = |kind: ReferenceKind| -> Vec<&str> {
            found.iter().filter(|one| one.kind == kind).map(|one| one.text.as_str()).collect()
        };
        assert_eq!(of(ReferenceKind::Path)[0], "src/header.rs");
        assert_eq!(of(ReferenceKind::Error), ["error: no field `width` on type `Header`"]);
        assert!(of(ReferenceKind::Path).contains(&"src/lib.rs"));
    }

    #[test]
    fn references_may_be_paraphrased() {
        let reference = |kind, text: &str| Reference { kind, text: text.to_owned() };
        assert!(reference(ReferenceKind::Path, "src/parse/header.rs").appears_in("- header.rs was edited"));
        assert!(!reference(ReferenceKind::Path, "src/a.rs").appears_in("- b.rs was edited"));
        let error = reference(ReferenceKind::Error, "error[E0609]: no field `width` on type `Header`");
        assert!(error.appears_in("- failed with: no field width on the type Header (E0609)"));
        assert!(!error.appears_in("- it failed\n- no idea\n- width"));
        assert!(!reference(ReferenceKind::Id, "88123").appears_in("8812"));
    }
}
