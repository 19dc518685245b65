//! Lines of entries that could stay in view, and what each is worth as a whole.

use std::sync::Arc;

use crate::atoms::each_atom;
use crate::choice::{Line, LineOf};
use crate::condense::signs::{Sign, sign_of};
use crate::copies::LineHash;
use crate::deed::Deed;
use crate::draft::Draft;
use crate::scan::{Piece, Scan, ScanLine, words_of};
use crate::tokens::Tokens;
use crate::transcript::EntryId;
use crate::value::{AtomId, Lexicon, Worth};

/// What the lines of an entry are taken from.
pub(crate) struct Source {
    entry: EntryId,
    pub(crate) scan: Arc<Scan>,
    calls: Vec<SourceCall>,
    has_failures: bool,
    is_user: bool,
}

/// A call of an entry.
struct SourceCall {
    /// The atoms of what it did, in our words.
    atoms: Vec<AtomId>,
    /// How likely a line of its result is to be copied, were it new.
    copied: f32,
}

/// Takes entries apart.
pub(crate) fn sources(draft: &mut Draft<'_>, entries: &[EntryId]) -> Vec<Source> {
    let mut found: Vec<Source> = Vec::with_capacity(entries.len());
    for &id in entries {
        let scan = draft.scan(id);
        let lexicon = Arc::make_mut(&mut draft.ledger.lexicon);
        let step = draft.transcript.entry(id).step();
        let calls = scan.calls.iter().enumerate().map(|(i, call)| {
            let mut atoms = Vec::new();
            each_atom(&call.line, |atom, range| {
                atoms.push(lexicon.id_of(atom, words_of(atom, call.line.as_bytes(), range)));
            });
            let result = step.and_then(|step| step.calls[i].result.as_ref());
            let size = result.map_or(Tokens::ZERO, |result| result.body.tokens());
            SourceCall { atoms, copied: chance_of_copy(&call.deed, size) }
        });
        let calls = calls.collect();
        let has_failures = scan.calls.iter().any(|call| call.has_failed);
        let is_user = draft.transcript.entry(id).is_user();
        found.push(Source { entry: id, scan, calls, has_failures, is_user });
    }
    found
}

/// How likely a line of a new result is to be copied word for word: the text of a file that was looked at is, most of all
/// where little was looked at; what a search or a command printed is not.
fn chance_of_copy(deed: &Deed, size: Tokens) -> f32 {
    if deed.shows_file() { 0.2 / (1.0 + size.0 as f32 / 1000.0) } else { 0.0 }
}

/// The lines of entries that could stand in a segment, in their order; what they are worth is not yet known.
pub(crate) fn lines_of<'a>(sources: &'a [Source], worth: &Worth) -> Vec<Line<'a>> {
    let n_lines = |source: &Source| source.calls.len() + source.scan.n_lines();
    let mut out = Vec::with_capacity(sources.iter().map(n_lines).sum());
    for source in sources {
        let deeds = source.scan.calls.iter().zip(&source.calls);
        out.extend(deeds.map(|(call, SourceCall { atoms, .. })| Line {
            entry: source.entry,
            at: 0,
            text: &call.line,
            atoms,
            source: &call.source,
            is: LineOf::Deed,
            worth: 0.0,
            copied: 0.0,
            hash: 0,
            cost: None,
        }));
        let lines = source.scan.lines().enumerate().map(|(i, line)| source.line(&line, i == 0, worth));
        // Nothing will ever speak for most lines without an atom.
        let may_stay = |line: &Line<'_>| {
            let is_told = line.is != LineOf::Rest || line.copied > 0.0;
            !line.atoms.is_empty() || is_told || !worth.focus.is_empty()
        };
        out.extend(lines.filter(says_something).filter(may_stay));
    }
    out
}

/// The lines of one result, in their order; what they are worth is not yet known.
pub(crate) fn lines_of_result<'a>(source: &'a Source, call: u16, worth: &Worth) -> Vec<Line<'a>> {
    let of_result = source.scan.lines().filter(|line| line.piece() == Piece::Result(call));
    of_result.map(|line| source.line(&line, false, worth)).filter(says_something).collect()
}

/// Whether there is anything in a line beside the number that a reading tool put before it.
fn says_something(line: &Line<'_>) -> bool {
    !line.text.trim_ascii().is_empty()
}

impl Source {
    fn line<'a>(&'a self, line: &ScanLine<'a>, is_first: bool, worth: &Worth) -> Line<'a> {
        let is_failure = self.has_failures && sign_of(line.text()) == Sign::Alarm;
        let is = match (self.is_user, is_first, is_failure) {
            (true, true, _) => LineOf::User,
            (_, _, true) => LineOf::Failure,
            _ => LineOf::Rest,
        };
        let (copied, source) = match line.piece() {
            Piece::Result(call) => (self.calls[usize::from(call)].copied, self.name_of(call)),
            Piece::Asked(call) => (0.0, self.name_of(call)),
            Piece::Said => (0.0, ""),
        };
        let text = if copied > 0.0 { line.code() } else { line.text() };
        let is_copied = copied > 0.0 && worth.choice.has_copies && line.hash() != 0;
        let (copied, hash) = if is_copied { (copied, line.hash()) } else { (0.0, 0) };
        let (entry, at, atoms) = (self.entry, line.at(), line.atoms);
        Line { entry, at, text, atoms, source, is, worth: 0.0, copied, hash, cost: None }
    }

    fn name_of(&self, call: u16) -> &str {
        &self.scan.calls[usize::from(call)].source
    }
}

/// Works out what lines are worth as a whole, as things stand now. What stays in view need not be copied from here.
pub(crate) fn weigh(
    lines: &mut [Line<'_>],
    worth: &Worth,
    lexicon: &Lexicon,
    is_there: impl Fn(LineHash) -> bool,
) {
    for line in lines {
        let own = if worth.choice.has_tellings { line.is.worth() } else { 0.0 };
        line.worth = own + worth.about_focus(line.text) as f32 * 0.1;
        if line.copied > 0.0 && !is_there(line.hash) {
            // What was looked at long ago has been changed or left.
            let thousands = lexicon.age(line.entry) as f32 / 1000.0;
            line.worth += line.copied * lexicon.copies.times(line.hash) / (1.0 + 0.3 * thousands);
        }
    }
}
