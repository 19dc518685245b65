//! Prepares the originals for the model that writes a summary, in chunks that fit its window.
//!
//! Originals that fit are shown whole. Otherwise lines are chosen from the whole chunk: descriptions of calls,
//! messages, failures, then the lines with the most new paths, values and names per token. A long result therefore
//! gets more lines than a short one, and repeated content gets none.

use std::sync::Arc;

use crate::actions::tool_rule::ToolRule;
use crate::fold::ledger::Ledger;
use crate::model::script::{EntryPart, each_part};
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{Entry, EntryId, Speaker, Transcript};
use crate::select::analysis::Analysis;
use crate::select::chooser::{CandidateLine, Chooser};
use crate::select::scan::Scan;
use crate::select::scorer::focus_words;
use crate::text::atoms::AtomKind;
use crate::text::condense::severity::{Severity, severity_of};

/// A chunk of originals for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The text with labels.
    pub(crate) text: String,
    /// The last entry in the chunk.
    pub(crate) last: EntryId,
    /// The cost of the original entries.
    pub(crate) whole: Tokens,
    /// The files that were changed in the chunk.
    pub(crate) changed: Vec<String>,
}

/// How to prepare the originals.
pub(crate) struct MaterialOptions<'a> {
    pub(crate) transcript: &'a Transcript,
    pub(crate) counter: &'a dyn Count,
    /// The policy's rules for tools.
    pub(crate) rules: &'a [ToolRule],
    /// A topic, and its maximum share of the room in per mille.
    pub(crate) focus: &'a str,
    pub(crate) focus_share: u32,
    /// True if the user named the topic.
    pub(crate) is_focus_given: bool,
    /// The maximum cost of a chunk.
    pub(crate) room: Tokens,
    /// The maximum number of chunks.
    pub(crate) most: usize,
}

/// The entries that a new summary has to cover: from `from` to the newest folded entry.
pub(crate) fn span(transcript: &Transcript, ledger: &Ledger, from: usize) -> Option<(usize, usize)> {
    let ids = (0..transcript.len()).map(EntryId::from);
    let is_summarised = |id: &EntryId| ledger.is_in_segment(*id) && !transcript.is_running(*id);
    let in_segment = ids.clone().rfind(is_summarised);
    let last = in_segment
        .or_else(|| ids.clone().rfind(|id| !ledger.is_whole(*id) && !transcript.is_running(*id)))?;
    (last.index() >= from).then_some((from, last.index() + 1))
}

/// Splits entries into chunks.
pub(crate) fn chunks(
    analysis: &mut Analysis,
    options: &MaterialOptions<'_>,
    span: (usize, usize),
) -> Vec<Chunk> {
    let transcript = options.transcript;
    let ids: Vec<EntryId> =
        (span.0..span.1).map(EntryId::from).filter(|id| is_shown(transcript, *id)).collect();
    let whole: Tokens = ids.iter().map(|id| transcript.tokens(*id)).sum();
    let n_chunks = whole.0.div_ceil(options.room.0.max(1)).clamp(1, options.most.max(1) as u64);
    let each = Tokens(whole.0.div_ceil(n_chunks));
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut group: Vec<EntryId> = Vec::new();
    let mut cost = Tokens::ZERO;
    for &id in &ids {
        let tokens = transcript.tokens(id);
        let is_last = chunks.len() as u64 + 1 == n_chunks;
        if !is_last && !group.is_empty() && cost + Tokens(tokens.0 / 2) > each {
            chunks.push(chunk(analysis, options, &group));
            group.clear();
            cost = Tokens::ZERO;
        }
        group.push(id);
        cost += tokens;
    }
    if !group.is_empty() {
        chunks.push(chunk(analysis, options, &group));
    }
    chunks
}

/// Returns whether an entry is summarised. System text stays visible, and opaque provider items have no text.
fn is_shown(transcript: &Transcript, id: EntryId) -> bool {
    match transcript.entry(id) {
        Entry::Step(_) => true,
        Entry::Prompt(prompt) => matches!(prompt.speaker, Speaker::User | Speaker::Harness),
    }
}

fn chunk(analysis: &mut Analysis, options: &MaterialOptions<'_>, ids: &[EntryId]) -> Chunk {
    let transcript = options.transcript;
    let whole: Tokens = ids.iter().map(|id| transcript.tokens(*id)).sum();
    let sources: Vec<MaterialEntry> =
        ids.iter().map(|id| MaterialEntry::new(analysis, options, *id)).collect();
    let mut text = String::new();
    // The labels may exceed the room.
    if whole <= options.room {
        sources.iter().for_each(|source| source.write_whole(transcript, &mut text));
    }
    if text.is_empty() || options.counter.count(&text) > options.room {
        text = chosen(analysis, options, &sources);
    }
    let mut changed: Vec<String> = Vec::new();
    for call in sources.iter().flat_map(|source| &source.scan.calls) {
        changed.extend(call.deed.changes.iter().filter(|path| !path.is_empty()).cloned());
    }
    let last = *ids.last().expect("a chunk is not empty");
    Chunk { text, last, whole, changed }
}

/// An entry with the labels of its lines.
struct MaterialEntry {
    id: EntryId,
    scan: Arc<Scan>,
    /// The author, followed by the description of each call.
    labels: Vec<String>,
    is_user: bool,
}

impl MaterialEntry {
    fn new(analysis: &mut Analysis, options: &MaterialOptions<'_>, id: EntryId) -> MaterialEntry {
        let entry = options.transcript.entry(id);
        let was_cached = analysis.has_scan(id);
        let scan = analysis.scan(options.transcript, options.rules, id);
        if !was_cached {
            analysis.drop_scan(id);
        }
        let author = match entry {
            Entry::Step(_) => "assistant",
            Entry::Prompt(prompt) if prompt.speaker == Speaker::User => "user",
            Entry::Prompt(_) => "harness",
        };
        let calls = scan.calls.iter().map(|call| format!("[{}] call {}", id.0, call.line));
        let labels = [format!("[{}] {author}:", id.0)].into_iter().chain(calls).collect();
        MaterialEntry { id, scan, labels, is_user: entry.is_user() }
    }

    /// Writes the whole entry.
    fn write_whole(&self, transcript: &Transcript, out: &mut String) {
        let mut is_labelled = false;
        each_part(transcript.entry(self.id), |part, _, text| {
            let label = match part {
                EntryPart::Text if is_labelled => None,
                EntryPart::Text => Some(&self.labels[0]),
                EntryPart::Arguments(call) => Some(&self.labels[1 + usize::from(call)]),
                EntryPart::Result(_) => None,
            };
            is_labelled |= part == EntryPart::Text;
            if let Some(label) = label {
                out.push_str(label);
                out.push('\n');
            }
            out.push_str(text.trim_end());
            out.push('\n');
        });
    }

    /// Adds the candidate lines of the entry, including its labels.
    fn lines<'a>(&'a self, topic: &TopicWords, out: &mut Vec<CandidateLine<'a>>) {
        let label =
            |i: usize| CandidateLine { entry: self.id, text: &self.labels[i], atoms: &[], worth: LABEL };
        let mut has_author_label = false;
        let mut n_text_lines = 0;
        let mut n_labelled_calls = 0;
        for found in self.scan.lines() {
            let own = match found.part() {
                EntryPart::Text => {
                    if !std::mem::replace(&mut has_author_label, true) {
                        out.push(label(0));
                    }
                    n_text_lines += 1;
                    message_worth(self.is_user, n_text_lines)
                }
                EntryPart::Arguments(call) | EntryPart::Result(call) => {
                    let call = usize::from(call);
                    if n_labelled_calls <= call {
                        n_labelled_calls = call + 1;
                        out.push(label(1 + call));
                    }
                    let is_failure =
                        self.scan.calls[call].has_failed && severity_of(found.text()) == Severity::Error;
                    if is_failure { FAILURE } else { 0.0 }
                }
            };
            let worth = own + topic.worth_of(found.text());
            out.push(CandidateLine { entry: self.id, text: found.text(), atoms: found.atoms, worth });
        }
    }
}

/// The worth of a label.
const LABEL: f32 = 0.4;
/// The worth of a failure.
const FAILURE: f32 = 0.6;
/// The worth of each word of a topic that the user named.
const FOCUS: f32 = 0.1;

/// The words of a topic that distinguish entries. Words in most entries are ignored.
struct TopicWords {
    words: Vec<String>,
    worth: f32,
}

impl TopicWords {
    fn new(options: &MaterialOptions<'_>, sources: &[MaterialEntry]) -> TopicWords {
        let mut words = focus_words(options.focus);
        words.sort_unstable();
        words.dedup();
        let scripts: Vec<String> = sources.iter().map(|source| source.scan.script.to_lowercase()).collect();
        let n_in = |word: &String| scripts.iter().filter(|script| script.contains(word.as_str())).count();
        let found: Vec<(String, usize)> = words.into_iter().map(|word| (word.clone(), n_in(&word))).collect();
        let most = (sources.len() / if options.is_focus_given { 2 } else { 5 }).max(1);
        let distinctive = |most: usize| -> Vec<String> {
            found.iter().filter(|(_, n)| (1..=most).contains(n)).map(|(word, _)| word.clone()).collect()
        };
        let words = match distinctive(most) {
            // A word of the user's topic counts even if it is in most entries.
            none if none.is_empty() && options.is_focus_given => distinctive(usize::MAX),
            words => words,
        };
        TopicWords { words, worth: if options.is_focus_given { FOCUS } else { FOCUS / 4.0 } }
    }

    fn is_in(&self, source: &MaterialEntry) -> bool {
        !self.words.is_empty() && self.n_in(&source.scan.script) > 0
    }

    fn worth_of(&self, line: &str) -> f32 {
        const MANY: usize = 3;
        if self.words.is_empty() { 0.0 } else { self.worth * self.n_in(line).min(MANY) as f32 }
    }

    fn n_in(&self, text: &str) -> usize {
        let lower = text.to_lowercase();
        self.words.iter().filter(|word| lower.contains(word.as_str())).count()
    }
}

/// The worth of a line of a message. The first lines of a user message state what the user wants.
fn message_worth(is_user: bool, n_lines: usize) -> f32 {
    match (is_user, n_lines) {
        (true, ..=4) => 0.6,
        (true, _) => 0.15,
        (false, ..=4) => 0.15,
        (false, _) => 0.04,
    }
}

/// The fixed worth of an atom in addition to its probability of use.
fn kind_worth(kind: AtomKind) -> f32 {
    match kind {
        AtomKind::Path => 0.06,
        AtomKind::Number => 0.025,
        AtomKind::Name | AtomKind::Quoted => 0.006,
    }
}

/// The most valuable lines of a chunk within the room, in order.
fn chosen(analysis: &Analysis, options: &MaterialOptions<'_>, sources: &[MaterialEntry]) -> String {
    let lexicon = &analysis.lexicon;
    let topic_words = TopicWords::new(options, sources);
    let mut chances = lexicon.chances();
    let mut values = vec![0.0; lexicon.len()];
    for &atom in sources.iter().flat_map(|source| &source.scan.atoms) {
        values[atom as usize] = kind_worth(lexicon.kind(atom)) + chances.get(atom);
    }
    let room = options.room.0 as usize;
    let (on_topic, others): (Vec<&MaterialEntry>, Vec<&MaterialEntry>) =
        sources.iter().partition(|source| topic_words.is_in(source));
    let (mut topic_lines, mut other_lines) = (Vec::new(), Vec::new());
    on_topic.iter().for_each(|source| source.lines(&topic_words, &mut topic_lines));
    others.iter().for_each(|source| source.lines(&topic_words, &mut other_lines));
    let share = if on_topic.is_empty() { 0 } else { room * options.focus_share as usize / 1000 };
    // Other entries first, up to their share; then the topic; then other entries with the remaining room.
    let mut rest_values = values.clone();
    let mut rest = Chooser::new(&other_lines, &mut rest_values, options.counter);
    rest.choose(room - share);
    for &atom in rest.chosen.iter().flat_map(|chosen| other_lines[chosen.line].atoms) {
        values[atom as usize] = 0.0;
    }
    let spent = |chooser: &Chooser<'_>| chooser.chosen.iter().map(|chosen| chosen.cost).sum::<usize>();
    let mut topic = Chooser::new(&topic_lines, &mut values, options.counter);
    topic.choose(room.saturating_sub(spent(&rest)));
    rest.choose(room.saturating_sub(spent(&rest) + spent(&topic)));
    let mut picked: Vec<PickedLine<'_>> = Vec::new();
    for (chooser, lines) in [(&topic, &topic_lines), (&rest, &other_lines)] {
        let of_chooser = chooser.chosen.iter().enumerate();
        picked.extend(of_chooser.map(|(rank, chosen)| PickedLine {
            line: lines[chosen.line],
            number: chosen.line,
            rank,
            cost: chosen.cost,
        }));
    }
    loop {
        let text = print(&mut picked);
        let cost = options.counter.count(&text).0 as usize;
        let mut over = cost.saturating_sub(room);
        if over == 0 || picked.is_empty() {
            return text;
        }
        // Remove the lines that were chosen last.
        picked.sort_by_key(|picked| picked.rank);
        while let Some(removed) = picked.pop_if(|_| over > 0) {
            over = over.saturating_sub(removed.cost);
        }
    }
}

/// A chosen line.
#[derive(Clone, Copy)]
struct PickedLine<'a> {
    line: CandidateLine<'a>,
    number: usize,
    /// Its rank among the chosen lines.
    rank: usize,
    cost: usize,
}

fn print(picked: &mut [PickedLine<'_>]) -> String {
    picked.sort_by_key(|picked| (picked.line.entry, picked.number));
    let mut out = String::new();
    for PickedLine { line, .. } in picked {
        out.push_str(line.text);
        out.push('\n');
    }
    out
}
