//! Lines of folded entries that may be kept in a segment, and the worth of each line as a whole.

use std::sync::Arc;

use crate::actions::Action;
use crate::actions::tool_rule::ToolRule;
use crate::model::script::EntryPart;
use crate::model::tokens::Tokens;
use crate::model::transcript::{EntryId, Transcript};
use crate::select::analysis::Analysis;
use crate::select::chooser::{CandidateKind, CandidateLine};
use crate::select::scan::{Scan, ScanLine, words_of};
use crate::select::scorer::{AtomId, Lexicon, Relevance};
use crate::text::atoms::each_atom;
use crate::text::condense::severity::{Severity, severity_of};
use crate::text::copied_lines::{FoldedLines, LineHash};

/// A folded entry that lines are taken from.
pub(crate) struct EntrySource {
    entry: EntryId,
    pub(crate) scan: Arc<Scan>,
    calls: Vec<SourceCall>,
    has_failures: bool,
    is_user: bool,
}

/// A call of a folded entry.
struct SourceCall {
    /// The atoms of the line that describes the call.
    atoms: Vec<AtomId>,
    /// The probability that a line of its result is copied while the result is new.
    copied: f32,
}

/// Scans the entries.
pub(crate) fn sources(
    analysis: &mut Analysis,
    transcript: &Transcript,
    rules: &[ToolRule],
    entries: &[EntryId],
) -> Vec<EntrySource> {
    let mut found: Vec<EntrySource> = Vec::with_capacity(entries.len());
    for &id in entries {
        let scan = analysis.scan(transcript, rules, id);
        let lexicon = Arc::make_mut(&mut analysis.lexicon);
        let step = transcript.entry(id).step();
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
        let is_user = transcript.entry(id).is_user();
        found.push(EntrySource { entry: id, scan, calls, has_failures, is_user });
    }
    found
}

/// The probability that a line of a new result is copied verbatim: highest for short excerpts of files, zero for
/// everything that does not show a file.
fn chance_of_copy(deed: &Action, size: Tokens) -> f32 {
    if deed.shows_file() { 0.2 / (1.0 + size.0 as f32 / 1000.0) } else { 0.0 }
}

/// The candidate lines of entries in order, with a worth of zero.
pub(crate) fn lines_of<'a>(sources: &'a [EntrySource], relevance: &Relevance) -> Vec<CandidateLine<'a>> {
    let n_lines = |source: &EntrySource| source.calls.len() + source.scan.n_lines();
    let mut out = Vec::with_capacity(sources.iter().map(n_lines).sum());
    for source in sources {
        let actions = source.scan.calls.iter().zip(&source.calls);
        out.extend(actions.map(|(call, SourceCall { atoms, .. })| CandidateLine {
            entry: source.entry,
            at: 0,
            text: &call.line,
            atoms,
            source: &call.source,
            kind: CandidateKind::Action,
            worth: 0.0,
            copied: 0.0,
            hash: 0,
            cost: None,
        }));
        let lines = source.scan.lines().enumerate().map(|(i, line)| source.line(&line, i == 0));
        // A line without atoms is never chosen, unless something else gives it a value.
        let may_stay = |line: &CandidateLine<'_>| {
            let has_value = line.kind != CandidateKind::Other || line.copied > 0.0;
            !line.atoms.is_empty() || has_value || !relevance.focus.is_empty()
        };
        out.extend(lines.filter(is_not_blank).filter(may_stay));
    }
    out
}

/// The candidate lines of one result in order, with a worth of zero.
pub(crate) fn lines_of_result<'a>(source: &'a EntrySource, call: u16) -> Vec<CandidateLine<'a>> {
    let of_result = source.scan.lines().filter(|line| line.part() == EntryPart::Result(call));
    of_result.map(|line| source.line(&line, false)).filter(is_not_blank).collect()
}

/// Returns whether a line is not blank.
fn is_not_blank(line: &CandidateLine<'_>) -> bool {
    !line.text.trim_ascii().is_empty()
}

impl EntrySource {
    fn line<'a>(&'a self, line: &ScanLine<'a>, is_first: bool) -> CandidateLine<'a> {
        let is_failure = self.has_failures && severity_of(line.text()) == Severity::Error;
        let kind = match (self.is_user, is_first, is_failure) {
            (true, true, _) => CandidateKind::User,
            (_, _, true) => CandidateKind::Failure,
            _ => CandidateKind::Other,
        };
        let (copied, source) = match line.part() {
            EntryPart::Result(call) => (self.calls[usize::from(call)].copied, self.name_of(call)),
            EntryPart::Arguments(call) => (0.0, self.name_of(call)),
            EntryPart::Text => (0.0, ""),
        };
        let text = if copied > 0.0 { line.code() } else { line.text() };
        let is_copied = copied > 0.0 && line.hash() != 0;
        let (copied, hash) = if is_copied { (copied, line.hash()) } else { (0.0, 0) };
        let (entry, at, atoms) = (self.entry, line.at(), line.atoms);
        CandidateLine { entry, at, text, atoms, source, kind, worth: 0.0, copied, hash, cost: None }
    }

    fn name_of(&self, call: u16) -> &str {
        &self.scan.calls[usize::from(call)].source
    }
}

/// Computes the worth of lines as a whole. Lines that are still visible need not be copied from here.
pub(crate) fn weigh(
    lines: &mut [CandidateLine<'_>],
    relevance: &Relevance,
    lexicon: &Lexicon,
    folded: &FoldedLines,
    is_visible: impl Fn(LineHash) -> bool,
) {
    for line in lines {
        let own = line.kind.worth();
        line.worth = own + relevance.n_focus_words(line.text) as f32 * 0.1;
        if line.copied > 0.0 && !is_visible(line.hash) {
            // The older a line is, the more likely its file has changed since.
            let thousands = lexicon.age(line.entry) as f32 / 1000.0;
            line.worth += line.copied * (lexicon.written.weight(line.hash) * folded.weight(line.hash))
                / (1.0 + 0.3 * thousands);
        }
    }
}
