//! An entry taken apart once: its script, the lines of it and their atoms.
//!
//! Both questions of a fold need it: what stays in view, and which lines of what goes are worth keeping.

use crate::choice::each_line;
use crate::handle::Hash;
use crate::recall::write_script;
use crate::transcript::Entry;
use crate::value::atoms;

/// An entry taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Scan {
    /// The entry written out as text.
    pub(crate) script: String,
    /// The hash of the script.
    pub(crate) hash: Hash,
    lines: Vec<ScanLine>,
    /// The atoms of all lines, one line after another.
    pub(crate) atoms: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct ScanLine {
    at: usize,
    len: usize,
    atoms_end: usize,
}

impl Scan {
    pub(crate) fn of(entry: &Entry) -> Scan {
        let mut script = String::new();
        write_script(entry, &mut script);
        let (mut lines, mut found) = (Vec::new(), Vec::new());
        each_line(&script, |at, line| {
            atoms(line, |hash| found.push(hash));
            lines.push(ScanLine { at, len: line.len(), atoms_end: found.len() });
        });
        let hash = Hash::of(script.as_bytes());
        Scan { script, hash, lines, atoms: found }
    }

    /// The lines: where each begins, its text and its atoms.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str, &[u64])> {
        let mut from = 0;
        self.lines.iter().map(move |line| {
            let atoms = &self.atoms[from..line.atoms_end];
            from = line.atoms_end;
            (line.at, &self.script[line.at..line.at + line.len], atoms)
        })
    }
}
