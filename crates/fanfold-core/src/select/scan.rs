//! Scans an entry once: its script, the lines of the script and their atoms.
//!
//! Used to see what is visible in the view, and to choose the lines of folded entries that are worth keeping.

use std::ops::Range;

use memchr::{memchr_iter, memmem, memrchr2};

use crate::actions::tool_rule::ToolRule;
use crate::actions::{Action, describe_with_failure, parse_action_with_rules};
use crate::model::parallel::{ParallelMap, parallel_map};
use crate::model::script::{EntryPart, each_part};
use crate::model::transcript::{Call, Entry};
use crate::select::scorer::{AtomId, AtomIds, Lexicon};
use crate::text::atoms::{Atom, AtomKind, each_atom};
use crate::text::compact_json::CompactJson;
use crate::text::words::{Word, last_words};

/// A scanned entry, with atoms numbered by the session's lexicon.
#[derive(Debug, Clone)]
pub(crate) struct Scan {
    /// The entry rendered as text.
    pub(crate) script: String,
    lines: Vec<LineSpan>,
    /// The atoms of all lines, in line order.
    pub(crate) atoms: Vec<AtomId>,
    /// The argument lines that differ from the script, unescaped and in compact JSON, in line order.
    normalized: String,
    pub(crate) calls: Vec<CallScan>,
}

#[derive(Debug, Clone, Copy)]
struct LineSpan {
    at: u32,
    len: u32,
    atoms_end: u32,
    part: EntryPart,
    /// The end of the line in `normalized`, plus one; zero if the line is the same in the script. It begins where the
    /// previous normalized line ends.
    normalized_end: u32,
}

/// A line of a scanned entry. Most callers read only its metadata, not its text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanLine<'a> {
    scan: &'a Scan,
    span: &'a LineSpan,
    /// The offset of the line in `normalized`.
    normalized_at: u32,
    pub(crate) atoms: &'a [AtomId],
}

impl<'a> ScanLine<'a> {
    /// The part of the entry that the line belongs to.
    pub(crate) fn part(&self) -> EntryPart {
        self.span.part
    }

    /// The normalized text of the line.
    pub(crate) fn text(&self) -> &'a str {
        let LineSpan { at, len, normalized_end, .. } = *self.span;
        match normalized_end.checked_sub(1) {
            None => &self.scan.script[at as usize..(at + len) as usize],
            Some(end) => &self.scan.normalized[self.normalized_at as usize..end as usize],
        }
    }
}

/// A call of a scanned entry.
#[derive(Debug, Clone)]
pub(crate) struct CallScan {
    pub(crate) deed: Action,
    /// The description of the call in one line.
    pub(crate) line: String,
    pub(crate) has_failed: bool,
}

/// A scanned entry, with atoms numbered within the entry.
#[derive(Debug, Clone)]
pub(crate) struct LocalScan {
    scan: Scan,
    /// The distinct atoms of the entry.
    local_atoms: Vec<LocalAtom>,
}

/// An atom and its last words.
pub(crate) type LocalAtom = (Atom, [Word; 3]);

/// Reusable buffers for scanning entries on one thread.
#[derive(Default)]
struct EntryScanner {
    ids: AtomIds,
    compact: CompactJson,
    lines: Vec<LineSpan>,
    atoms: Vec<AtomId>,
    local_atoms: Vec<LocalAtom>,
}

/// Scans entries, in parallel if there is much text.
pub(crate) fn scan_entries(
    entries: &[&Entry],
    rules: &[ToolRule],
    parallel: &dyn ParallelMap,
) -> Vec<LocalScan> {
    const MUCH: usize = 32_000;
    let sizes: Vec<usize> = entries.iter().map(|entry| text_len(entry)).collect();
    let size: usize = sizes.iter().sum();
    if size < MUCH || parallel.n_threads() < 2 {
        return scan_in_order(entries, rules);
    }
    let shares = shares(&sizes, parallel.n_threads());
    let shares: Vec<_> = shares.into_iter().map(|share| &entries[share]).collect();
    parallel_map(parallel, shares, |share| scan_in_order(share, rules)).into_iter().flatten().collect()
}

/// Scans one entry.
pub(crate) fn scan_entry(entry: &Entry, rules: &[ToolRule]) -> LocalScan {
    EntryScanner::default().scan(entry, rules)
}

fn scan_in_order(entries: &[&Entry], rules: &[ToolRule]) -> Vec<LocalScan> {
    let mut scanner = EntryScanner::default();
    entries.iter().map(|entry| scanner.scan(entry, rules)).collect()
}

/// Splits a list into runs of about equal total size.
fn shares(sizes: &[usize], n: usize) -> Vec<Range<usize>> {
    let most = sizes.iter().sum::<usize>().div_ceil(n);
    let mut shares = Vec::with_capacity(n);
    let (mut from, mut sum) = (0, 0);
    for (i, size) in sizes.iter().enumerate() {
        sum += size;
        if sum >= most {
            shares.push(from..i + 1);
            (from, sum) = (i + 1, 0);
        }
    }
    if from < sizes.len() {
        shares.push(from..sizes.len());
    }
    shares
}

/// The bytes of the texts in an entry, without labels.
fn text_len(entry: &Entry) -> usize {
    match entry {
        Entry::Prompt(prompt) => prompt.body.original().len(),
        Entry::Step(step) => {
            let result =
                |call: &Call| call.result.as_ref().map_or(0, |outcome| outcome.body.original().len());
            let calls = step.calls.iter().map(|call| call.arguments.original().len() + result(call));
            step.text.original().len() + calls.sum::<usize>()
        }
    }
}

impl EntryScanner {
    fn scan(&mut self, entry: &Entry, rules: &[ToolRule]) -> LocalScan {
        let size = text_len(entry);
        let (mut script, mut normalized) = (String::with_capacity(size + size / 16 + 32), String::new());
        let EntryScanner { ids, compact, lines, atoms, local_atoms } = self;
        lines.clear();
        atoms.clear();
        local_atoms.clear();
        let calls = entry.step().map_or(&[][..], |step| &step.calls);
        let calls: Vec<CallScan> = calls.iter().map(|call| CallScan::new(call, rules)).collect();
        ids.clear();
        each_part(entry, |part, label, text| {
            let from = script.len();
            let is_arguments = matches!(part, EntryPart::Arguments(_));
            // Normalize the spacing, so that the lines do not depend on how a client prints JSON.
            let is_compacted = is_arguments && compact.read(label, text);
            script.push_str(label);
            script.push_str(text);
            if !text.ends_with('\n') {
                script.push('\n');
            }
            let text = if is_compacted { compact.text() } else { &script[from..] };
            each_line(text, |at, line| {
                let first = atoms.len();
                each_atom(line, |atom, range| {
                    let id = *ids.entry(atom).or_insert_with(|| {
                        let range = at + range.start..at + range.end;
                        local_atoms.push((atom, words_of(atom, text.as_bytes(), range)));
                        local_atoms.len() as AtomId - 1
                    });
                    if !atoms[first..].contains(&id) {
                        atoms.push(id);
                    }
                });
                let is_escaped = is_arguments && line.contains('\\');
                let is_normalized = is_escaped || is_compacted;
                if is_escaped {
                    unescape(line, &mut normalized);
                } else if is_compacted {
                    normalized.push_str(line);
                }
                let normalized_end = if is_normalized { normalized.len() as u32 + 1 } else { 0 };
                let at = if is_compacted { compact.original(at) } else { at };
                let (at, len, atoms_end) = ((from + at) as u32, line.len() as u32, atoms.len() as u32);
                lines.push(LineSpan { at, len, atoms_end, part, normalized_end });
            });
        });
        let (lines, atoms) = (lines.clone(), atoms.clone());
        let scan = Scan { script, lines, atoms, normalized, calls };
        LocalScan { scan, local_atoms: local_atoms.clone() }
    }
}

impl LocalScan {
    /// Replaces the entry's own atom numbers by those of the lexicon.
    pub(crate) fn into_scan(self, lexicon: &mut Lexicon) -> Scan {
        let LocalScan { mut scan, local_atoms } = self;
        let ids = lexicon.ids_of(&local_atoms);
        scan.atoms.iter_mut().for_each(|atom| *atom = ids[*atom as usize]);
        scan
    }
}

/// The last words of an atom in a text.
pub(crate) fn words_of(atom: Atom, text: &[u8], range: Range<usize>) -> [Word; 3] {
    // A number contains no words.
    if atom.kind() == AtomKind::Number { [0; 3] } else { last_words(text, range) }
}

impl CallScan {
    fn new(call: &Call, rules: &[ToolRule]) -> CallScan {
        let deed = parse_action_with_rules(rules, call);
        let (line, has_failed) = describe_with_failure(call, &deed);
        CallScan { deed, line, has_failed }
    }
}

impl Scan {
    /// The lines in order.
    pub(crate) fn lines(&self) -> impl Iterator<Item = ScanLine<'_>> {
        let (mut from, mut normalized_at) = (0, 0);
        self.lines.iter().map(move |span| {
            let atoms = &self.atoms[from as usize..span.atoms_end as usize];
            from = span.atoms_end;
            let line = ScanLine { scan: self, span, normalized_at, atoms };
            normalized_at = span.normalized_end.checked_sub(1).unwrap_or(normalized_at);
            line
        })
    }

    /// The atoms of each run of lines with the same part.
    pub(crate) fn parts(&self) -> Vec<(EntryPart, &[AtomId])> {
        let mut from = 0;
        let runs = self.lines.chunk_by(|before, after| before.part == after.part);
        let mut parts = Vec::new();
        for run in runs {
            let end = run[run.len() - 1].atoms_end as usize;
            parts.push((run[0].part, &self.atoms[from..end]));
            from = end;
        }
        parts
    }
}

/// Appends a line of a JSON string without its escapes, trimmed.
fn unescape(line: &str, out: &mut String) {
    let start = out.len();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n' | 't' | 'r')) => out.push(' '),
            ('\\', Some(escaped)) => out.push(escaped),
            (c, _) => out.push(c),
        }
    }
    let n_blank = out[start..].len() - out[start..].trim_start().len();
    out.drain(start..start + n_blank);
    out.truncate(out.trim_end().len().max(start));
}

/// Calls back with each trimmed line and its offset. Skips very short lines and splits long ones.
fn each_line<'a>(text: &'a str, mut found: impl FnMut(usize, &'a str)) {
    const LONGEST: usize = 200;
    const CUT: usize = 160;
    const SHORTEST: usize = 4;
    let start = text.as_ptr() as usize;
    let mut add = |line: &'a str| {
        let mut rest = line.trim_ascii();
        while rest.len() > LONGEST {
            let mut cut = rest.floor_char_boundary(CUT);
            if let Some(space) = memrchr2(b' ', b',', &rest.as_bytes()[..cut]).filter(|at| *at > CUT / 2) {
                cut = space + 1;
            }
            found(rest.as_ptr() as usize - start, rest[..cut].trim_ascii());
            rest = rest[cut..].trim_ascii_start();
        }
        if rest.len() >= SHORTEST {
            found(rest.as_ptr() as usize - start, rest);
        }
    };
    let mut from = 0;
    for end in memchr_iter(b'\n', text.as_bytes()).chain([text.len()]) {
        let line = &text[from..end];
        from = end + 1;
        // A JSON dump of a file or an output is one long line with escaped line ends.
        let mut begin = 0;
        if line.len() > LONGEST {
            for end in memmem::find_iter(line.as_bytes(), b"\\n") {
                add(&line[begin..end]);
                begin = end + 2;
            }
        }
        add(&line[begin..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_reports_offsets() {
        let long = "word ".repeat(100);
        let dump = format!("{{\"output\": \"{}\\nsecond line of it\"}}", "x y ".repeat(90));
        for text in ["one line\n\n  another one \n", &long, &dump, "ünï\ncödé, and more of it"] {
            each_line(text, |at, line| assert!(text[at..].starts_with(line), "{line}"));
        }
    }

    /// Lines are the same for every spacing of the arguments, and their offsets point into the original script.
    #[test]
    fn lines_do_not_depend_on_json_spacing() {
        let fields = (0..90).map(|i| (format!("field_{i}"), format!("value {i}").into()));
        let arguments = serde_json::Value::Object(fields.collect());
        let scan_of = |arguments: String| {
            let mut entries =
                crate::notation::parse("call    store {}\nresult  stored it").expect("notation");
            if let Entry::Step(step) = &mut entries[0] {
                step.calls[0].arguments = crate::model::transcript::Body::text(arguments);
            }
            scan_entry(&entries[0], &[]).into_scan(&mut Lexicon::default())
        };
        let tight = scan_of(arguments.to_string());
        let wide = scan_of(serde_json::to_string_pretty(&arguments).expect("JSON"));
        assert!(tight.lines.len() > 10 && tight.lines.len() == wide.lines.len());
        for (one, other) in tight.lines().zip(wide.lines()) {
            assert_eq!((one.text(), one.atoms, one.part()), (other.text(), other.atoms, other.part()));
            for (line, scan) in [(one, &tight), (other, &wide)] {
                let begin = line.text().split(':').next().unwrap_or_default();
                assert!(scan.script[line.span.at as usize..].starts_with(begin), "{begin}");
            }
        }
    }
}
