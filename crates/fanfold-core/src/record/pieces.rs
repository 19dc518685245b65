//! The pieces of folded steps that a record may contain besides outcome lines: statements, edits, errors, result lines.

use crate::facts::results::{ResultLine, result_lines};
use crate::facts::{CallFacts, CallKind, StepFacts};
use crate::model::transcript::{Entry, EntryId, Transcript};
use crate::record::choice::likely;
use crate::record::kinds::{
    INSERTED, LineValue, SMALL, inserted_lines, is_small, value_lines, value_written,
};
use crate::record::standing::{SAME_RESULT, Standing};
use crate::select::scorer::{AtomId, Lexicon, Relevance};
use crate::text::atoms::each_atom;
use crate::text::condense::is_definition;

/// The kind of a piece. Room is given to the kinds in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PieceKind {
    Statement,
    Edit,
    Error,
    Line,
}

/// The part of a step that a piece is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PiecePart {
    /// A text of the agent, by its index.
    Text(u16),
    /// The errors of a call.
    Errors(u16),
    /// A hunk of a call.
    Hunk(u16, u16),
    /// The lines that a call wrote.
    Written(u16),
    /// The result of a call.
    Result(u16),
}

/// A piece of a step. Pieces without a value fill gaps between others.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    /// The index of the step among the steps of the record.
    pub(crate) step: usize,
    pub(crate) part: PiecePart,
    /// Its position in the part; consecutive pieces have consecutive positions.
    pub(crate) position: u32,
    pub(crate) kind: PieceKind,
    pub(crate) text: &'a str,
    /// `- ` or `+ ` before an edited line.
    pub(crate) sign: &'static str,
    /// The number of the line in its file.
    pub(crate) number: Option<u32>,
    /// The value of the piece as a whole, and the weight of the values of its atoms.
    pub(crate) score: f32,
    pub(crate) weight: f32,
    /// True if nothing follows in its part.
    pub(crate) is_last: bool,
    /// True for a line of code that begins no definition.
    pub(crate) is_code: bool,
    pub(crate) atoms: Vec<AtomId>,
}

/// Lists the pieces of steps.
pub(crate) struct PieceCollector<'a, 'l> {
    lexicon: &'l Lexicon,
    relevance: &'l Relevance,
    pub(crate) pieces: Vec<Piece<'a>>,
}

/// A step with the texts that pieces are taken from.
pub(crate) struct StepSource<'a> {
    pub(crate) number: u32,
    pub(crate) facts: &'a StepFacts,
    /// The unwrapped result of each call.
    pub(crate) results: &'a [String],
}

impl<'a, 'l> PieceCollector<'a, 'l> {
    pub(crate) fn new(lexicon: &'l Lexicon, relevance: &'l Relevance) -> PieceCollector<'a, 'l> {
        PieceCollector { lexicon, relevance, pieces: Vec::new() }
    }

    /// Adds the pieces of a step. `freshness` grows from 0.8 for the oldest to 1.2 for the newest step.
    pub(crate) fn add(&mut self, step: usize, source: &StepSource<'a>, standing: &Standing, freshness: f32) {
        for (i, text) in source.facts.texts.iter().enumerate() {
            for (position, statement) in text.statements.iter().enumerate().filter(|(_, it)| it.value > 0.0) {
                let part = PiecePart::Text(i as u16);
                let score = 6.0 * statement.value * freshness;
                let text = &text.text[statement.range.clone()];
                self.push(Piece {
                    score,
                    weight: 0.7,
                    ..new_piece(step, part, position, PieceKind::Statement, text)
                });
            }
        }
        // A repeated change is one line.
        let calls = source.facts.calls.iter().enumerate().filter(|(_, call)| !call.repeats_previous);
        for (i, call) in calls {
            let note = standing.note(source.number, i);
            let is_gone = note.is_some();
            let is_elsewhere =
                note.is_some_and(|note| call.kind == CallKind::Read || note.starts_with(SAME_RESULT));
            self.add_errors(step, i as u16, call, freshness);
            // The change that a script made stands, although the script is deleted.
            let changes_files = !call.script_targets.is_empty();
            if changes_files || !is_gone && !call.has_failed {
                self.add_edits(step, i as u16, call, freshness);
            }
            let shows_result = !matches!(call.kind, CallKind::Edit | CallKind::Write | CallKind::Plan)
                || !call.then.is_empty();
            if shows_result && !is_elsewhere && !call.is_refused && call.single_line.is_none() {
                let text = source.results.get(i).map_or("", String::as_str);
                self.add_lines(step, i as u16, call, text, &result_lines(text, call.first_line));
            }
        }
    }

    fn add_errors(&mut self, step: usize, i: u16, call: &'a CallFacts, freshness: f32) {
        // The first error is in the outcome line.
        let message = |error: &str| error.trim_start_matches(['E', ' ']).to_owned();
        let is_repeated = |at: usize| {
            let own = message(&call.errors[at]);
            call.errors[..at].iter().any(|error| error.contains(&own))
        };
        for (position, error) in call.errors.iter().enumerate().skip(1) {
            if is_repeated(position) {
                continue;
            }
            // Errors stand apart in the result.
            let piece = new_piece(step, PiecePart::Errors(i), 2 * position, PieceKind::Error, error);
            self.push(Piece { score: 5.0 * freshness, is_last: false, ..piece });
        }
    }

    fn add_edits(&mut self, step: usize, i: u16, call: &'a CallFacts, freshness: f32) {
        const MAX_HUNKS: usize = 40;
        const MAX_LINES: usize = 80;
        for (h, hunk) in call.hunks.iter().enumerate().take(MAX_HUNKS) {
            let lines = hunk
                .removed
                .iter()
                .map(|line| ("- ", line))
                .chain(hunk.added.iter().map(|line| ("+ ", line)));
            let is_small = hunk.removed.len() + hunk.added.len() <= 7;
            let n_lines = hunk.removed.len() + hunk.added.len();
            for (position, (sign, line)) in lines.enumerate().take(MAX_LINES) {
                let is_last = position + 1 == n_lines;
                let is_named = is_definition(line);
                let (score, weight) = match (is_small, sign) {
                    (true, _) => (2.5, 1.0),
                    (false, "+ ") if is_named => (4.0, 1.0),
                    (false, "+ ") => (1.5, 1.0),
                    (false, _) => (0.4, 0.3),
                };
                let part = PiecePart::Hunk(i, h as u16);
                let piece = new_piece(step, part, position, PieceKind::Edit, line.trim_end());
                // A bracket alone tells nothing.
                if !line.contains(char::is_alphanumeric) {
                    self.pieces.push(Piece { sign, is_last, weight: 0.0, ..piece });
                    continue;
                }
                self.push(Piece { sign, score: score * freshness, weight, is_last, ..piece });
            }
        }
        let has_script = matches!(call.kind, CallKind::Write | CallKind::Run);
        let inserted = inserted_lines(call);
        for (position, line) in call.written.iter().enumerate().filter(|_| has_script) {
            let is_last = position + 1 == call.written.len();
            let is_inserted = inserted.get(position).copied().unwrap_or_default();
            let value = if is_inserted { INSERTED } else { value_written(line, call) };
            let piece = new_piece(step, PiecePart::Written(i), position, PieceKind::Edit, line.trim_end());
            let is_code = value.is_code;
            let piece =
                Piece { sign: "+ ", score: value.score, weight: value.weight, is_code, is_last, ..piece };
            match value {
                LineValue::NONE => self.pieces.push(piece),
                _ => self.push(piece),
            }
        }
    }

    /// Adds the lines of a result. `text` is the unwrapped result that the lines are from.
    pub(crate) fn add_lines(
        &mut self,
        step: usize,
        i: u16,
        call: &CallFacts,
        text: &'a str,
        lines: &[ResultLine<'a>],
    ) {
        let part = PiecePart::Result(i);
        if let (true, Some(whole)) = (is_small(call, lines), joined(text, lines)) {
            let piece = new_piece(step, part, 0, PieceKind::Line, whole);
            // The words of a person count most.
            let score = if call.is_answer { whole.len() as f32 } else { SMALL };
            self.push(Piece { number: lines[0].number, score, ..piece });
            return;
        }
        for (position, (line, value)) in lines.iter().zip(value_lines(call, lines)).enumerate() {
            let is_last = position + 1 == lines.len();
            let piece = new_piece(step, part, position, PieceKind::Line, line.text);
            let is_code = value.is_code;
            let piece = Piece {
                number: line.number,
                score: value.score,
                weight: value.weight,
                is_code,
                is_last,
                ..piece
            };
            match value {
                LineValue::NONE => self.pieces.push(piece),
                _ => self.push(piece),
            }
        }
    }

    fn push(&mut self, mut piece: Piece<'a>) {
        each_atom(piece.text, |atom, _| {
            if let Some(id) = self.lexicon.find(atom)
                && !piece.atoms.contains(&id)
            {
                piece.atoms.push(id);
            }
        });
        let n_focus = self.relevance.n_focus_words(piece.text);
        let named = if self.relevance.is_named(piece.text) { NAMED } else { 0.0 };
        piece.score += (n_focus as f32 * FOCUS + named) / likely(piece.kind);
        self.pieces.push(piece);
    }
}

/// The probability of use that a word of the topic counts as, which the user wants to keep, and a name that the user
/// mentioned last.
const FOCUS: f32 = 0.12;
const NAMED: f32 = 0.04;

fn new_piece(step: usize, part: PiecePart, position: usize, kind: PieceKind, text: &str) -> Piece<'_> {
    let position = position as u32;
    Piece {
        step,
        part,
        position,
        kind,
        text,
        sign: "",
        number: None,
        score: 0.0,
        weight: 1.0,
        is_last: true,
        is_code: false,
        atoms: Vec::new(),
    }
}

/// The text from the first line to the last.
fn joined<'a>(text: &'a str, lines: &[ResultLine<'a>]) -> Option<&'a str> {
    let at = |line: &ResultLine<'a>| line.text.as_ptr() as usize - text.as_ptr() as usize;
    let (first, last) = (lines.first()?, lines.last()?);
    // Line numbers of the tool stand between the lines.
    let has_numbers = lines.iter().any(|line| line.number.is_some()) && lines.len() > 1;
    let whole = text.get(at(first)..at(last) + last.text.len())?;
    let n_lines = lines.iter().filter(|line| !line.continues).count();
    let is_plain = whole.lines().filter(|line| !line.trim().is_empty()).count() == n_lines;
    (is_plain && !has_numbers || lines.len() == 1).then_some(whole)
}

/// The unwrapped results of a step's calls.
pub(crate) fn unwrapped_results(transcript: &Transcript, id: EntryId) -> Vec<String> {
    let Entry::Step(step) = transcript.entry(id) else { return Vec::new() };
    let result = |call: &crate::model::transcript::Call| {
        let raw = call.result.as_ref().map_or("", |outcome| outcome.body.as_str());
        crate::facts::results::unwrap_result(raw).into_owned()
    };
    step.calls.iter().map(result).collect()
}
