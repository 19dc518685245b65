//! An entry taken apart once: its script, the lines of it and their atoms.
//!
//! Both questions of a fold need it: what stays in view, and which lines of what goes are worth keeping.

use std::ops::Range;

use memchr::{memchr_iter, memmem, memrchr2};

use crate::atoms::{Atom, AtomKind, each_atom};
use crate::copies::{LineHash, hash_of_unnumbered, is_copyable, without_number};
use crate::deed::{Deed, deed_by, line_and_failure, source_of};
use crate::draft::SLICE;
use crate::handle::Hash;
use crate::parallel::{ParallelMap, parallel_map};
use crate::policy::ToolRule;
use crate::recall::each_piece;
use crate::slices::slices;
use crate::spacing::Respaced;
use crate::tokens::Tokens;
use crate::transcript::{Call, Entry};
use crate::value::{AtomId, AtomIds, Lexicon};
use crate::words::{Word, last_words};

/// An entry taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Scan {
    /// The entry written out as text.
    pub(crate) script: String,
    /// The hash of the script, if it is one stretch.
    pub(crate) hash: Option<Hash>,
    /// Where it is cut, if it is longer, with the hash of each slice.
    pub(crate) slices: Vec<(Range<usize>, Hash)>,
    lines: Vec<LineSpan>,
    /// The atoms of all lines, one line after another.
    pub(crate) atoms: Vec<AtomId>,
    /// Lines of arguments as they are told, one after another.
    plain: String,
    pub(crate) calls: Vec<CallScan>,
}

#[derive(Debug, Clone, Copy)]
struct LineSpan {
    at: u32,
    len: u32,
    atoms_end: u32,
    piece: Piece,
    /// Behind where its plain form ends, if it was escaped or spaced otherwise: it begins where the one before ends. Zero if
    /// neither.
    behind_plain: u32,
    /// Where it begins as code, if it is of a file that was looked at: with its indentation, behind its number.
    code_at: u32,
    /// What it says, if it is so and says enough to be copied; zero if not.
    hash: LineHash,
}

/// Whose words a line is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// What a person said, or the agent: its text, its reasoning.
    Said,
    /// The arguments of a call.
    Asked(u16),
    /// The result of a call.
    Result(u16),
}

/// A line of an entry. Most are not looked at, only at what is known of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanLine<'a> {
    scan: &'a Scan,
    span: &'a LineSpan,
    /// Where its plain form begins, if it has one.
    plain_at: u32,
    pub(crate) atoms: &'a [AtomId],
}

impl<'a> ScanLine<'a> {
    /// Where it begins in the script.
    pub(crate) fn at(&self) -> usize {
        self.span.at as usize
    }

    /// Whose words it is from.
    pub(crate) fn piece(&self) -> Piece {
        self.span.piece
    }

    /// As it is told.
    pub(crate) fn text(&self) -> &'a str {
        let LineSpan { at, len, behind_plain, .. } = *self.span;
        match behind_plain.checked_sub(1) {
            None => &self.scan.script[at as usize..(at + len) as usize],
            Some(end) => &self.scan.plain[self.plain_at as usize..end as usize],
        }
    }

    /// As code, if it is of a file that was looked at: with its indentation, without its number.
    pub(crate) fn code(&self) -> &'a str {
        let LineSpan { at, len, code_at, .. } = *self.span;
        &self.scan.script[code_at as usize..(at + len) as usize]
    }

    /// What it says, if it is code and says enough to be copied; zero if not.
    pub(crate) fn hash(&self) -> LineHash {
        self.span.hash
    }
}

/// A call of an entry.
#[derive(Debug, Clone)]
pub(crate) struct CallScan {
    pub(crate) deed: Deed,
    /// What it did and how that ended, in our words.
    pub(crate) line: String,
    pub(crate) has_failed: bool,
    /// What its lines are from, in a word or two.
    pub(crate) source: String,
}

/// An entry taken apart, its atoms not yet known by their numbers in the session but by those among its own.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    scan: Scan,
    /// Its atoms, each once.
    own: Vec<OwnAtom>,
}

/// An atom of an entry, and its last words.
pub(crate) type OwnAtom = (Atom, [Word; 3]);

/// What one thread takes entries apart with. Lists grow here, and leave it at their length.
#[derive(Default)]
struct Bench {
    ids: AtomIds,
    respaced: Respaced,
    lines: Vec<LineSpan>,
    atoms: Vec<AtomId>,
    own: Vec<OwnAtom>,
}

/// Takes entries apart, side by side where there is much to do. What comes out does not depend on that.
pub(crate) fn take_apart(
    entries: &[(&Entry, Tokens)],
    rules: &[ToolRule],
    parallel: &dyn ParallelMap,
) -> Vec<Parts> {
    const MUCH: usize = 32_000;
    let sizes: Vec<usize> = entries.iter().map(|(entry, _)| size_of(entry)).collect();
    let size: usize = sizes.iter().sum();
    if size < MUCH || parallel.n_threads() < 2 {
        return take_apart_here(entries, rules);
    }
    let shares = shares(&sizes, parallel.n_threads());
    let shares: Vec<_> = shares.into_iter().map(|share| &entries[share]).collect();
    parallel_map(parallel, shares, |share| take_apart_here(share, rules)).into_iter().flatten().collect()
}

/// Takes one entry apart.
pub(crate) fn take_one_apart((entry, tokens): (&Entry, Tokens), rules: &[ToolRule]) -> Parts {
    Bench::default().parts_of((entry, tokens), rules)
}

/// Takes entries apart one after another.
fn take_apart_here(entries: &[(&Entry, Tokens)], rules: &[ToolRule]) -> Vec<Parts> {
    let mut bench = Bench::default();
    entries.iter().map(|entry| bench.parts_of(*entry, rules)).collect()
}

/// Cuts a list into runs of about the same size.
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

/// About how many bytes there are in an entry.
fn size_of(entry: &Entry) -> usize {
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

impl Bench {
    /// Takes an entry apart.
    fn parts_of(&mut self, (entry, tokens): (&Entry, Tokens), rules: &[ToolRule]) -> Parts {
        let size = size_of(entry);
        let (mut script, mut plain) = (String::with_capacity(size + size / 16 + 32), String::new());
        let Bench { ids, respaced, lines, atoms, own } = self;
        lines.clear();
        atoms.clear();
        own.clear();
        let calls = entry.step().map_or(&[][..], |step| &step.calls);
        let calls: Vec<CallScan> = calls.iter().map(|call| CallScan::of(call, rules)).collect();
        ids.clear();
        each_piece(entry, |piece, label, text| {
            let from = script.len();
            let is_asked = matches!(piece, Piece::Asked(_));
            let is_code = matches!(piece, Piece::Result(call) if calls[usize::from(call)].deed.shows_file());
            // How arguments are printed is their client's affair: they are told in one spacing.
            let is_respaced = is_asked && respaced.read(label, text);
            script.push_str(label);
            script.push_str(text);
            if !text.ends_with('\n') {
                script.push('\n');
            }
            let text = if is_respaced { respaced.text() } else { &script[from..] };
            each_line(text, |at, line| {
                let first = atoms.len();
                each_atom(line, |atom, range| {
                    let id = *ids.entry(atom).or_insert_with(|| {
                        let range = at + range.start..at + range.end;
                        own.push((atom, words_of(atom, text.as_bytes(), range)));
                        own.len() as AtomId - 1
                    });
                    if !atoms[first..].contains(&id) {
                        atoms.push(id);
                    }
                });
                let is_escaped = is_asked && line.contains('\\');
                let is_plain = is_escaped || is_respaced;
                if is_escaped {
                    unescape(line, &mut plain);
                } else if is_respaced {
                    plain.push_str(line);
                }
                let behind_plain = if is_plain { plain.len() as u32 + 1 } else { 0 };
                let code = if is_code { code_of(text, at, line) } else { line };
                let hash = if is_code && is_copyable(code) { hash_of_unnumbered(code) } else { 0 };
                let code_at = (from + at + line.len() - code.len()) as u32;
                let at = if is_respaced { respaced.original(at) } else { at };
                let (at, len, atoms_end) = ((from + at) as u32, line.len() as u32, atoms.len() as u32);
                lines.push(LineSpan { at, len, atoms_end, piece, behind_plain, code_at, hash });
            });
        });
        let (lines, atoms) = (lines.clone(), atoms.clone());
        // What it costs tells whether it is named whole or in slices.
        let is_one = tokens <= SLICE;
        let hash = is_one.then(|| Hash::of(script.as_bytes()));
        let cut = if is_one { Vec::new() } else { slices(&script, tokens, SLICE) };
        let slices =
            cut.into_iter().map(|bytes| (bytes.clone(), Hash::of(script[bytes].as_bytes()))).collect();
        let scan = Scan { script, hash, slices, lines, atoms, plain, calls };
        Parts { scan, own: own.clone() }
    }
}

impl Parts {
    /// The entry with its atoms known by their numbers in the session.
    pub(crate) fn known_by(self, lexicon: &mut Lexicon) -> Scan {
        let Parts { mut scan, own, .. } = self;
        let ids = lexicon.ids_of(&own);
        scan.atoms.iter_mut().for_each(|atom| *atom = ids[*atom as usize]);
        scan
    }
}

/// The last words of an atom that stands in a text.
pub(crate) fn words_of(atom: Atom, text: &[u8], range: Range<usize>) -> [Word; 3] {
    // There are no words in a number.
    if atom.kind() == AtomKind::Number { [0; 3] } else { last_words(text, range) }
}

impl CallScan {
    fn of(call: &Call, rules: &[ToolRule]) -> CallScan {
        let deed = deed_by(rules, call);
        let (line, has_failed) = line_and_failure(call, &deed);
        let source = source_of(call, &deed);
        CallScan { deed, line, has_failed, source }
    }
}

impl Scan {
    /// How many lines there are.
    pub(crate) fn n_lines(&self) -> usize {
        self.lines.len()
    }

    /// The lines, in their order.
    pub(crate) fn lines(&self) -> impl Iterator<Item = ScanLine<'_>> {
        let (mut from, mut plain_at) = (0, 0);
        self.lines.iter().map(move |span| {
            let atoms = &self.atoms[from as usize..span.atoms_end as usize];
            from = span.atoms_end;
            let line = ScanLine { scan: self, span, plain_at, atoms };
            plain_at = span.behind_plain.checked_sub(1).unwrap_or(plain_at);
            line
        })
    }

    /// The atoms of what was said, and of each result.
    pub(crate) fn pieces(&self) -> Vec<(Piece, &[AtomId])> {
        let mut from = 0;
        let runs = self.lines.chunk_by(|before, after| before.piece == after.piece);
        let mut pieces = Vec::new();
        for run in runs {
            let end = run[run.len() - 1].atoms_end as usize;
            pieces.push((run[0].piece, &self.atoms[from..end]));
            from = end;
        }
        pieces
    }
}

/// A line with the blanks before it and without its number: code is copied with its indentation.
fn code_of<'a>(text: &'a str, at: usize, line: &str) -> &'a str {
    let before = text.as_bytes()[..at].iter().rev();
    let n_blanks = before.take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    without_number(&text[at - n_blanks..at + line.len()])
}

/// Undoes the escapes of a string in JSON.
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

/// Calls back with each line of a text worth keeping and where it begins, trimmed; long ones in pieces.
fn each_line<'a>(text: &'a str, mut found: impl FnMut(usize, &'a str)) {
    const LONGEST: usize = 200;
    const PIECE: usize = 160;
    const SHORTEST: usize = 4;
    let start = text.as_ptr() as usize;
    let mut add = |line: &'a str| {
        let mut rest = line.trim_ascii();
        while rest.len() > LONGEST {
            let mut cut = rest.floor_char_boundary(PIECE);
            if let Some(space) = memrchr2(b' ', b',', &rest.as_bytes()[..cut]).filter(|at| *at > PIECE / 2) {
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
        // One long line with its line ends escaped: a JSON dump of a file or an output.
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
    fn lines_know_where_they_begin() {
        let long = "word ".repeat(100);
        let dump = format!("{{\"output\": \"{}\\nsecond line of it\"}}", "x y ".repeat(90));
        for text in ["one line\n\n  another one \n", &long, &dump, "ünï\ncödé, and more of it"] {
            each_line(text, |at, line| assert!(text[at..].starts_with(line), "{line}"));
        }
    }

    /// Lines of arguments are told in one spacing, and stand where they stood in the script as it came.
    #[test]
    fn lines_of_arguments_know_where_they_stood() {
        let fields = (0..90).map(|i| (format!("field_{i}"), format!("value {i}").into()));
        let arguments = serde_json::Value::Object(fields.collect());
        let scanned = |arguments: String| {
            let mut entries =
                crate::notation::parse("call    store {}\nresult  stored it").expect("notation");
            if let Entry::Step(step) = &mut entries[0] {
                step.calls[0].arguments = crate::transcript::Body::text(arguments);
            }
            take_one_apart((&entries[0], Tokens(900)), &[]).known_by(&mut Lexicon::default())
        };
        let tight = scanned(arguments.to_string());
        let wide = scanned(serde_json::to_string_pretty(&arguments).expect("JSON"));
        assert!(tight.n_lines() > 10 && tight.n_lines() == wide.n_lines());
        for (one, other) in tight.lines().zip(wide.lines()) {
            assert_eq!((one.text(), one.atoms, one.piece()), (other.text(), other.atoms, other.piece()));
            for (line, scan) in [(one, &tight), (other, &wide)] {
                let begin = line.text().split(':').next().unwrap_or_default();
                assert!(scan.script[line.at()..].starts_with(begin), "{begin} at {}", line.at());
            }
        }
    }
}
