//! Writes a segment of the record within a budget.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use regex::Regex;

use crate::facts::StepFacts;
use crate::facts::results::unwrap_result;
use crate::model::tokens::Count;
use crate::model::transcript::{Entry, EntryId, Speaker, Transcript};
use crate::record::choice::{ChosenPiece, choose};
use crate::record::layout::{RecordEntry, RecordText, step_lines};
use crate::record::names::PathNames;
use crate::record::pieces::{Piece, PieceCollector, PieceKind, StepSource, unwrapped_results};
use crate::record::rows::{OutcomeLine, RowLevel, RowWriter, coarse_row};
use crate::record::standing::{NumberedStep, Standing};
use crate::record::state::{StateSection, shortened, work_state};
use crate::select::scorer::{AtomId, AtomValues, Lexicon, Relevance};
use crate::text::atoms::each_atom;
use crate::text::words::one_line;

/// The input of a segment.
pub(crate) struct RecordInput<'a> {
    pub(crate) transcript: &'a Transcript,
    pub(crate) counter: &'a dyn Count,
    pub(crate) lexicon: &'a Lexicon,
    pub(crate) relevance: &'a Relevance,
    /// The texts of the record that stay in the view.
    pub(crate) visible: Vec<Arc<str>>,
    /// The entries of the segment, in order.
    pub(crate) entries: &'a [EntryId],
    /// The facts of all steps up to the last entry, in order.
    pub(crate) steps: &'a [NumberedStep],
    /// The instruction how to recall an original; empty if the model cannot.
    pub(crate) recall: &'a str,
    /// True if no other segment stands before this one.
    pub(crate) is_first: bool,
    /// True if this is the newest segment, so that the state follows it.
    pub(crate) is_newest: bool,
}

/// A written segment.
pub(crate) struct WrittenRecord {
    /// A text for each run of entries, with its first entry.
    pub(crate) parts: Vec<(EntryId, String)>,
    /// The steps that each handle in the texts names, first and last.
    pub(crate) handles: Vec<(EntryId, EntryId)>,
    /// The state after the last step, as a text of its own: the next segment replaces it, and this one stays.
    pub(crate) state: Option<String>,
}

/// The share of the budget that outcome lines may take before they are shortened, in per mille.
const ROWS_PERMILLE: usize = 420;

/// Writes a segment of about `budget` tokens.
pub(crate) fn write_record(input: &RecordInput<'_>, values: &mut AtomValues, budget: usize) -> WrittenRecord {
    let standing = Standing::new(input.steps);
    let own = OwnSteps::new(input, budget);
    let sources: Vec<StepSource<'_>> = own.sources();
    let names = PathNames::new(input.steps);
    let state = if input.is_newest { state_text(input, &standing, &mut names.clone()) } else { None };
    let budget = budget.saturating_sub(state.as_ref().map_or(0, |text| count_text(input.counter, text)));
    let rows = OutcomeLines::fit(names, &own, &standing, budget * ROWS_PERMILLE / 1000);
    let mut collector = PieceCollector::new(input.lexicon, input.relevance);
    let n = sources.len().max(1) as f32;
    for (i, source) in sources.iter().enumerate() {
        collector.add(i, source, &standing, 0.8 + 0.4 * i as f32 / n);
    }
    drop_repeated_statements(&mut collector.pieces);
    devalue_repeated_lines(&mut collector.pieces);
    let pieces = collector.pieces;
    let mut spare = budget.saturating_sub(rows.tokens + OVERHEAD * own.n_runs);
    let mut written = None;
    const MAX_ROUNDS: usize = 3;
    for round in 0..MAX_ROUNDS {
        let visible = rows.lines().chain(input.visible.iter().map(|text| &**text));
        let visible: Vec<AtomId> = visible.flat_map(|text| atoms_of(input.lexicon, text)).collect();
        let atoms = pieces.iter().map(|piece| &piece.atoms[..]);
        let values = values.compute(input.lexicon, atoms, input.relevance, [&visible[..]].into_iter());
        let mut chosen = choose(&pieces, values, input.counter, spare);
        let mut text = layout(input, &own, &rows, &pieces, &chosen);
        let mut size = count(input.counter, &text);
        if round + 1 == MAX_ROUNDS || chosen.is_empty() {
            // Drop the pieces with the least value until the text fits.
            chosen.sort_by(|one, other| one.ratio.total_cmp(&other.ratio).then(other.piece.cmp(&one.piece)));
            while size > budget && !chosen.is_empty() {
                let mut over = size - budget;
                let n_dropped = chosen.iter().take_while(|piece| {
                    let is_needed = over > 0;
                    over = over.saturating_sub(piece.tokens);
                    is_needed
                });
                let n_dropped = n_dropped.count();
                chosen.drain(..n_dropped);
                text = layout(input, &own, &rows, &pieces, &chosen);
                size = count(input.counter, &text);
            }
            written = Some(text);
            break;
        }
        let is_close = size <= budget && (budget - size) * 25 < budget;
        written = Some(text);
        if is_close {
            break;
        }
        spare = (spare + budget).saturating_sub(size + if size > budget { 12 } else { 0 });
    }
    let written = written.unwrap_or_else(|| layout(input, &own, &rows, &pieces, &[]));
    WrittenRecord { state, ..written }
}

/// The state after the last step, if there is anything to state.
fn state_text(input: &RecordInput<'_>, standing: &Standing, names: &mut PathNames) -> Option<String> {
    let last = input.steps.last()?.number;
    let sections = work_state(input.steps, standing, names);
    let line = |section: &StateSection| format!("\n  {}: {}", section.title, section.items.join("; "));
    let lines: String = sections.iter().map(line).collect();
    (!lines.is_empty()).then(|| format!("{FENCE}\nState after step {last}{lines}\n{FENCE_END}"))
}

/// The tokens of the fence and the frame of a part.
const OVERHEAD: usize = 14;

fn count(counter: &dyn Count, record: &WrittenRecord) -> usize {
    record.parts.iter().map(|(_, text)| count_text(counter, text)).sum()
}

fn count_text(counter: &dyn Count, text: &str) -> usize {
    (counter.count(text) + counter.frame().message).0 as usize
}

fn atoms_of(lexicon: &Lexicon, text: &str) -> Vec<AtomId> {
    let mut found = Vec::new();
    each_atom(text, |atom, _| found.extend(lexicon.find(atom)));
    found
}

/// Keeps only the last of statements that begin alike.
fn drop_repeated_statements(pieces: &mut Vec<Piece<'_>>) {
    const COMPARED: usize = 80;
    let key = |piece: &Piece<'_>| -> String {
        let words = piece.text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
        words.take(COMPARED).collect()
    };
    let is_statement = |piece: &Piece<'_>| piece.kind == PieceKind::Statement;
    let mut last: BTreeMap<String, (usize, u32)> = BTreeMap::new();
    for piece in pieces.iter().filter(|piece| is_statement(piece)) {
        last.insert(key(piece), (piece.step, piece.position));
    }
    pieces
        .retain(|piece| !is_statement(piece) || last.get(&key(piece)) == Some(&(piece.step, piece.position)));
}

/// Makes all but the newest of equal result lines fillers. Lines of code stay, because they belong to a place in a file.
fn devalue_repeated_lines(pieces: &mut [Piece<'_>]) {
    let mut newer: BTreeSet<&str> = BTreeSet::new();
    for piece in pieces.iter_mut().rev().filter(|piece| piece.kind == PieceKind::Line && !piece.is_code) {
        if !newer.insert(piece.text.trim()) {
            (piece.score, piece.weight) = (0.0, 0.0);
        }
    }
}

/// An entry of the segment.
enum OwnEntry {
    /// The index of a step in `OwnSteps::steps`.
    Step(usize),
    /// A message of the harness after a step, as a line.
    Reply(String),
    /// A message of the harness, the user or the system, as a line.
    Message(String),
}

/// A step of the segment.
struct OwnStep {
    number: u32,
    entry: EntryId,
    facts: Arc<StepFacts>,
    /// The unwrapped result of each call.
    results: Vec<String>,
}

/// The steps of the segment, with the texts that pieces are taken from.
struct OwnSteps {
    steps: Vec<OwnStep>,
    entries: Vec<(EntryId, OwnEntry)>,
    n_runs: usize,
}

impl OwnSteps {
    fn new(input: &RecordInput<'_>, budget: usize) -> OwnSteps {
        // Messages may take half of the budget, at about four bytes a token.
        let is_prompt = |id: &&EntryId| input.transcript.entry(**id).prompt().is_some();
        let n_prompts = input.entries.iter().filter(is_prompt).count();
        let max_bytes = (2 * budget / n_prompts.max(1)).clamp(24, 320);
        let by_entry: BTreeMap<EntryId, &NumberedStep> =
            input.steps.iter().map(|step| (step.entry, step)).collect();
        let mut own = OwnSteps { steps: Vec::new(), entries: Vec::new(), n_runs: 0 };
        let mut before: Option<EntryId> = None;
        for &id in input.entries {
            own.n_runs += usize::from(before.is_none_or(|before| before.0 + 1 != id.0));
            before = Some(id);
            let entry = match (input.transcript.entry(id), by_entry.get(&id)) {
                (Entry::Step(_), Some(step)) => {
                    let results = unwrapped_results(input.transcript, id);
                    let facts = Arc::clone(&step.facts);
                    own.steps.push(OwnStep { number: step.number, entry: id, facts, results });
                    OwnEntry::Step(own.steps.len() - 1)
                }
                (Entry::Prompt(prompt), _) => {
                    let who = match prompt.speaker {
                        Speaker::User => "user",
                        Speaker::System => "system",
                        Speaker::Harness | Speaker::Provider => "harness",
                    };
                    const MAX_HARNESS: usize = 140;
                    let text = unwrap_result(prompt.body.as_str());
                    let notification = notification(&text);
                    let is_plain = who == "harness" && notification.is_none();
                    let max_bytes = if is_plain { max_bytes.min(MAX_HARNESS) } else { max_bytes };
                    let text = notification.unwrap_or_else(|| without_tags(&text));
                    let text = one_line(&text);
                    let line = match text.trim() {
                        "" => format!("{who}: empty"),
                        text => format!("{who}: {}", shortened(text, max_bytes)),
                    };
                    let follows_step = matches!(own.entries.last(), Some((before, OwnEntry::Step(_))) if before.0 + 1 == id.0);
                    match follows_step && who == "harness" {
                        true => OwnEntry::Reply(line),
                        false => OwnEntry::Message(line),
                    }
                }
                (Entry::Step(_), None) => continue,
            };
            own.entries.push((id, entry));
        }
        own
    }

    fn sources(&self) -> Vec<StepSource<'_>> {
        self.steps
            .iter()
            .map(|step| StepSource { number: step.number, facts: &step.facts, results: &step.results })
            .collect()
    }
}

/// The text of a message without tags that only name its parts, such as `<command-args>`.
fn without_tags(text: &str) -> String {
    static TAG: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?s)<command-message>.*?</command-message>|</?command-(?:name|args)>")
            .expect("a pattern")
    });
    TAG.replace_all(text, "").into_owned()
}

/// The summary of a task in the background that has ended, and the beginning of its result.
fn notification(text: &str) -> Option<String> {
    static PARTS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?s)^<task-notification>.*?<summary>(.*?)</summary>(?:\s*<result>(.*?)(?:</result>|$))?")
            .expect("a pattern")
    });
    let parts = PARTS.captures(text.trim_start())?;
    let result = parts.get(2).map_or("", |result| result.as_str().trim());
    Some(if result.is_empty() { parts[1].to_owned() } else { format!("{}: {result}", &parts[1]) })
}

/// The outcome lines of the segment's steps.
struct OutcomeLines {
    by_step: Vec<Vec<OutcomeLine>>,
    /// The number of old steps that share a line, for records with very little room; zero for none.
    coarse: usize,
    /// The first of the newest steps, which have lines of their own even then.
    first_own: usize,
    names: PathNames,
    tokens: usize,
}

impl OutcomeLines {
    /// The longest outcome lines that take at most `room` tokens.
    fn fit(names: PathNames, own: &OwnSteps, standing: &Standing, room: usize) -> OutcomeLines {
        let mut rows =
            OutcomeLines { by_step: Vec::new(), coarse: 0, first_own: 0, names: names.clone(), tokens: 0 };
        for (old, new) in RowLevel::LADDER {
            let mut writer = RowWriter::new(names.clone(), standing);
            let n = own.steps.len();
            let row = |(i, step): (usize, &OwnStep)| {
                writer.rows(step.number, &step.facts, if 2 * i < n { old } else { new })
            };
            rows.by_step = own.steps.iter().enumerate().map(row).collect();
            let n_bytes: usize = rows.lines().map(|row| row.len() + 12).sum();
            rows.names = writer.names;
            rows.tokens = n_bytes * 10 / 36 + 2 * n;
            if rows.tokens <= room && OVERHEAD * own.n_runs <= room {
                return rows;
            }
        }
        rows.share_lines(names, own, standing, room);
        rows
    }

    /// Even the shortest lines take too much room: old steps share lines, and the newest have half of the room.
    fn share_lines(&mut self, names: PathNames, own: &OwnSteps, standing: &Standing, room: usize) {
        const COARSE: usize = 26;
        let mut writer = RowWriter::new(names, standing);
        let steps = own.steps.iter();
        self.by_step = steps.map(|step| writer.rows(step.number, &step.facts, RowLevel::Shortest)).collect();
        self.names = writer.names;
        let cost = |rows: &Vec<OutcomeLine>| rows.iter().map(|row| row.text.len() / 3 + 6).sum::<usize>();
        let mut left = room / 2;
        let mut n_own = 0;
        for rows in self.by_step.iter().rev() {
            let Some(rest) = left.checked_sub(cost(rows)) else { break };
            (left, n_own) = (rest, n_own + 1);
        }
        self.first_own = own.steps.len() - n_own;
        let n_lines = (room / 2 / (COARSE + OVERHEAD)).max(2);
        self.coarse = self.first_own.div_ceil(n_lines).max(2);
        self.tokens = self.first_own.div_ceil(self.coarse) * COARSE + room / 2 - left;
    }

    /// The lines that are written in any case.
    fn lines(&self) -> impl Iterator<Item = &str> {
        self.by_step.iter().flatten().filter(|row| row.is_own).map(|row| row.text.as_str())
    }
}

/// Writes the parts of the segment.
fn layout(
    input: &RecordInput<'_>,
    own: &OwnSteps,
    rows: &OutcomeLines,
    pieces: &[Piece<'_>],
    chosen: &[ChosenPiece],
) -> WrittenRecord {
    let mut by_step: BTreeMap<usize, Vec<&Piece<'_>>> = BTreeMap::new();
    let mut order: Vec<usize> = chosen.iter().map(|chosen| chosen.piece).collect();
    order.sort_unstable();
    for i in order {
        by_step.entry(pieces[i].step).or_default().push(&pieces[i]);
    }
    let mut writer = PartWriter {
        own,
        rows,
        by_step,
        open: Vec::new(),
        open_reply: None,
        part: RecordText::default(),
        handles: Vec::new(),
    };
    let mut parts: Vec<(EntryId, String)> = Vec::new();
    let mut first: Option<EntryId> = None;
    let mut before: Option<EntryId> = None;
    for (i, (id, entry)) in own.entries.iter().enumerate() {
        if before.is_some_and(|before| before.0 + 1 != id.0) {
            // With very little room, steps on both sides of a message share a line.
            let last = before.map_or(0, |before| before.0 + 1);
            let is_message = |i: u32| input.transcript.entry(EntryId(i)).prompt().is_some();
            if rows.coarse == 0 || !(last..id.0).all(is_message) {
                writer.close();
            }
            parts.extend(writer.finish_part(input, first, parts.is_empty()));
            first = None;
        }
        first = first.or(Some(*id));
        before = Some(*id);
        let reply = match own.entries.get(i + 1) {
            Some((id, OwnEntry::Reply(line))) => Some((*id, line.as_str())),
            _ => None,
        };
        writer.add(*id, entry, reply);
    }
    writer.close();
    parts.extend(writer.finish_part(input, first, parts.is_empty()));
    WrittenRecord { parts, handles: writer.handles, state: None }
}

struct PartWriter<'a> {
    own: &'a OwnSteps,
    rows: &'a OutcomeLines,
    by_step: BTreeMap<usize, Vec<&'a Piece<'a>>>,
    /// Neighbouring steps that share a line.
    open: Vec<usize>,
    /// The message of the harness after the last of them.
    open_reply: Option<EntryId>,
    part: RecordText,
    handles: Vec<(EntryId, EntryId)>,
}

impl PartWriter<'_> {
    fn add(&mut self, id: EntryId, entry: &OwnEntry, reply: Option<(EntryId, &str)>) {
        const MAX_SHARED: usize = 8;
        let step = match entry {
            OwnEntry::Step(step) => *step,
            // It was written with its step.
            OwnEntry::Reply(_) => return,
            OwnEntry::Message(line) => {
                self.close();
                self.part
                    .entries
                    .push(RecordEntry { handle: format!("#e{}", id.0 + 1), lines: vec![line.clone()] });
                self.handles.push((id, id));
                return;
            }
        };
        let OwnStep { number, facts, .. } = &self.own.steps[step];
        let pieces = self.by_step.remove(&step);
        let is_coarse = self.rows.coarse > 0 && step < self.rows.first_own;
        let max_shared = if is_coarse { self.rows.coarse } else { MAX_SHARED };
        let is_look = || facts.calls.iter().all(|call| call.kind.is_look() && !call.has_failed);
        let has_no_line = || self.rows.by_step[step].iter().all(|row| !row.is_own);
        let is_quiet = pieces.is_none() && (is_coarse || reply.is_none() && (is_look() || has_no_line()));
        if step == self.rows.first_own {
            self.close();
        }
        if is_quiet {
            self.open.push(step);
            self.open_reply = reply.map(|(id, _)| id);
            if self.open.len() >= max_shared {
                self.close();
            }
            return;
        }
        self.close();
        let rows = if is_coarse { &[][..] } else { &self.rows.by_step[step] };
        let mut lines = step_lines(facts, rows, &pieces.unwrap_or_default());
        if let Some((at, reply)) = reply {
            let is_rejected = facts.calls.is_empty() && reply.contains("EXACTLY ONE");
            let reason = reply.split_once("found ").and_then(|(_, rest)| rest.split_once('.'));
            let reply = match (is_rejected, reason) {
                (true, Some((found, _))) => {
                    format!("rejected by the harness, no call was made: {found} instead of one")
                }
                (true, None) => "rejected by the harness, no call was made".to_owned(),
                (false, _) => reply.to_owned(),
            };
            lines.push(format!("  #e{} {reply}", at.0 + 1));
        }
        if lines.is_empty() {
            lines.push(coarse_row(&[(*number, &**facts)], &self.rows.names));
        }
        self.part.entries.push(RecordEntry { handle: format!("#{number}"), lines });
        self.handles.push((id, id));
        self.handles.extend(reply.map(|(id, _)| (id, id)));
    }

    /// Writes one line for the neighbouring steps that share it.
    fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        let (Some(first), Some(last)) = (open.first(), open.last()) else { return };
        let step = |i: usize| &self.own.steps[i];
        let is_coarse = self.rows.coarse > 0 && *first < self.rows.first_own;
        let mut line = String::new();
        if !is_coarse {
            line = shared_line(open.iter().flat_map(|&i| &self.rows.by_step[i]));
        }
        if let [only] = open.as_slice() {
            const MAX: usize = 60;
            if line.is_empty() && !is_coarse {
                line = main_statement(&step(*only).facts).unwrap_or_default();
            }
            if line.is_empty() {
                let row = self.rows.by_step[*only].iter().find(|row| !row.text.is_empty());
                line = row.map_or(line, |row| shortened(&row.text, MAX));
            }
        }
        if line.is_empty() {
            let steps: Vec<(u32, &StepFacts)> =
                open.iter().map(|&i| (step(i).number, &*step(i).facts)).collect();
            line = coarse_row(&steps, &self.rows.names);
        }
        let (from, to) = (step(*first).number, step(*last).number);
        let handle = if from == to { format!("#{from}") } else { format!("#{from}-{to}") };
        self.handles.push((step(*first).entry, step(*last).entry));
        if let Some(reply) = self.open_reply.take() {
            line.push_str(&format!("; #e{} harness", reply.0 + 1));
            self.handles.push((reply, reply));
        }
        self.part.entries.push(RecordEntry { handle, lines: vec![line] });
    }

    /// The text of the part, if it has entries.
    fn finish_part(
        &mut self,
        input: &RecordInput<'_>,
        first: Option<EntryId>,
        is_first: bool,
    ) -> Option<(EntryId, String)> {
        let first = first?;
        if self.part.entries.is_empty() {
            return None;
        }
        let mut part = std::mem::take(&mut self.part);
        if is_first {
            part.heading = self.heading(input);
        }
        Some((first, format!("{FENCE}\n{}\n{FENCE_END}", part.print())))
    }

    /// The first line of the record.
    fn heading(&self, input: &RecordInput<'_>) -> Option<String> {
        let (first, last) = (self.own.steps.first()?.number, self.own.steps.last()?.number);
        let recall = if input.recall.is_empty() { String::new() } else { format!(" {}", input.recall) };
        let steps = if first == last { format!("step {first}") } else { format!("steps {first}–{last}") };
        let heading =
            format!("Record of {steps}, written by fanfold, not by the user.{recall} … marks text left out.");
        input.is_first.then_some(heading)
    }
}

/// The main statement of a step without calls, shortened.
fn main_statement(facts: &StepFacts) -> Option<String> {
    const MAX: usize = 140;
    let statement = facts.main_statement().filter(|_| facts.calls.is_empty())?;
    let to = if facts.is_report { "to the user: " } else { "" };
    Some(format!("{to}{}", shortened(&one_line(&statement), MAX)))
}

/// Joins outcome lines without repeating their verb.
fn shared_line<'a>(rows: impl Iterator<Item = &'a OutcomeLine>) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut verb = "";
    for row in rows.filter(|row| row.is_own).map(|row| row.text.as_str()) {
        let (first, rest) = row.split_once(' ').unwrap_or((row, ""));
        let part = if first == verb && !rest.is_empty() { rest } else { row };
        if !parts.contains(&part) {
            parts.push(part);
        }
        verb = first;
    }
    parts.join("; ")
}

pub(crate) const FENCE: &str = "<fanfold>";
pub(crate) const FENCE_END: &str = "</fanfold>";
