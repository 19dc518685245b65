//! What is shown to the model that writes a summary: the originals, never what was made of them, in chunks that fit its window.
//!
//! What fits is shown as it was said. Where it does not, lines are chosen among all of a chunk: what was done, what
//! people and the agent said, what went wrong, then whatever adds most paths, values and names for what it costs, each
//! counted once. So a long result gets more lines than a short one, and one that says something new more than one that does not.

use std::sync::Arc;

use crate::actions::tool_rule::ToolRule;
use crate::fold::ledger::Ledger;
use crate::model::parallel::ParallelMap;
use crate::model::script::{EntryPart, each_part};
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{Entry, EntryId, Speaker, Transcript};
use crate::select::chooser::{CandidateKind, CandidateLine, Chooser};
use crate::select::scan::Scan;
use crate::select::scorer::focus_words;
use crate::text::atoms::AtomKind;
use crate::text::condense::signs::{Severity, severity_of};

/// What a model is shown at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The words, labelled.
    pub(crate) text: String,
    /// The last entry that it holds.
    pub(crate) last: EntryId,
    /// What the originals cost.
    pub(crate) whole: Tokens,
    /// The files that were changed in it.
    pub(crate) changed: Vec<String>,
}

/// How the originals are shown.
pub(crate) struct Showing<'a> {
    pub(crate) transcript: &'a Transcript,
    pub(crate) counter: &'a dyn Count,
    /// What the policy says of tools.
    pub(crate) rules: &'a [ToolRule],
    pub(crate) parallel: &'a dyn ParallelMap,
    /// A topic, and how much of the room it gets at most, in per mille.
    pub(crate) focus: &'a str,
    pub(crate) focus_share: u32,
    /// Whether a person named it.
    pub(crate) is_focus_given: bool,
    /// What one chunk may cost.
    pub(crate) room: Tokens,
    /// How many chunks there may be.
    pub(crate) most: usize,
}

/// What a summary after `from` would be of: everything up to the newest entry that is folded.
pub(crate) fn span(transcript: &Transcript, ledger: &Ledger, from: usize) -> Option<(usize, usize)> {
    let ids = (0..transcript.len()).map(EntryId::from);
    let is_told = |id: &EntryId| ledger.is_in_segment(*id) && !transcript.is_running(*id);
    let in_segment = ids.clone().rfind(is_told);
    let last = in_segment
        .or_else(|| ids.clone().rfind(|id| !ledger.is_whole(*id) && !transcript.is_running(*id)))?;
    (last.index() >= from).then_some((from, last.index() + 1))
}

/// The originals of entries in chunks.
pub(crate) fn chunks(ledger: &mut Ledger, showing: &Showing<'_>, span: (usize, usize)) -> Vec<Chunk> {
    let transcript = showing.transcript;
    ledger.learn(transcript, showing.rules, showing.parallel, transcript.len());
    let ids: Vec<EntryId> =
        (span.0..span.1).map(EntryId::from).filter(|id| is_shown(transcript, *id)).collect();
    let whole: Tokens = ids.iter().map(|id| transcript.tokens(*id)).sum();
    let n_chunks = whole.0.div_ceil(showing.room.0.max(1)).clamp(1, showing.most.max(1) as u64);
    let each = Tokens(whole.0.div_ceil(n_chunks));
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut group: Vec<EntryId> = Vec::new();
    let mut cost = Tokens::ZERO;
    for &id in &ids {
        let tokens = transcript.tokens(id);
        let is_last = chunks.len() as u64 + 1 == n_chunks;
        if !is_last && !group.is_empty() && cost + Tokens(tokens.0 / 2) > each {
            chunks.push(chunk(ledger, showing, &group));
            group.clear();
            cost = Tokens::ZERO;
        }
        group.push(id);
        cost += tokens;
    }
    if !group.is_empty() {
        chunks.push(chunk(ledger, showing, &group));
    }
    chunks
}

/// Whether an entry is to be summarised: system text stays in view, and what is sealed says nothing.
fn is_shown(transcript: &Transcript, id: EntryId) -> bool {
    match transcript.entry(id) {
        Entry::Step(_) => true,
        Entry::Prompt(prompt) => matches!(prompt.speaker, Speaker::User | Speaker::Harness),
    }
}

fn chunk(ledger: &mut Ledger, showing: &Showing<'_>, ids: &[EntryId]) -> Chunk {
    let transcript = showing.transcript;
    let whole: Tokens = ids.iter().map(|id| transcript.tokens(*id)).sum();
    let sources: Vec<Source> = ids.iter().map(|id| Source::of(ledger, showing, *id)).collect();
    let mut text = String::new();
    // What the labels add is not much, but it is not nothing.
    if whole <= showing.room {
        sources.iter().for_each(|source| source.write_whole(transcript, &mut text));
    }
    if text.is_empty() || showing.counter.count(&text) > showing.room {
        text = chosen(ledger, showing, &sources);
    }
    let mut changed: Vec<String> = Vec::new();
    for call in sources.iter().flat_map(|source| &source.scan.calls) {
        changed.extend(call.deed.changes.iter().filter(|path| !path.is_empty()).cloned());
    }
    let last = *ids.last().expect("a chunk holds something");
    Chunk { text, last, whole, changed }
}

/// An entry and what its lines are called.
struct Source {
    id: EntryId,
    scan: Arc<Scan>,
    /// Who says it, and then what each call did.
    labels: Vec<String>,
    is_user: bool,
}

impl Source {
    fn of(ledger: &mut Ledger, showing: &Showing<'_>, id: EntryId) -> Source {
        let entry = showing.transcript.entry(id);
        let is_kept = ledger.scans.contains_key(&id);
        let scan = ledger.scan(showing.transcript, showing.rules, id);
        if !is_kept {
            ledger.scans.remove(&id);
        }
        let who = match entry {
            Entry::Step(_) => "assistant",
            Entry::Prompt(prompt) if prompt.speaker == Speaker::User => "user",
            Entry::Prompt(_) => "harness",
        };
        let calls = scan.calls.iter().map(|call| format!("[{}] call {}", id.0, call.line));
        let labels = [format!("[{}] {who}:", id.0)].into_iter().chain(calls).collect();
        Source { id, scan, labels, is_user: entry.is_user() }
    }

    /// Writes it as it was said.
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

    /// The lines that could be shown, with those that tell who says them.
    fn lines<'a>(&'a self, topic: &Topic, out: &mut Vec<CandidateLine<'a>>) {
        let line = |at, text, atoms, kind, worth| CandidateLine {
            entry: self.id,
            at,
            text,
            atoms,
            source: "",
            kind,
            worth,
            copied: 0.0,
            hash: 0,
            cost: None,
        };
        let mut is_said = false;
        let mut n_said = 0;
        let mut labelled = 0;
        for found in self.scan.lines() {
            let (own, kind) = match found.part() {
                EntryPart::Text => {
                    if !std::mem::replace(&mut is_said, true) {
                        out.push(line(0, self.labels[0].as_str(), &[][..], CandidateKind::Action, LABEL));
                    }
                    n_said += 1;
                    (said_worth(self.is_user, n_said), CandidateKind::Other)
                }
                EntryPart::Arguments(call) | EntryPart::Result(call) => {
                    let call = usize::from(call);
                    if labelled <= call {
                        labelled = call + 1;
                        out.push(line(
                            found.at(),
                            self.labels[1 + call].as_str(),
                            &[][..],
                            CandidateKind::Action,
                            LABEL,
                        ));
                    }
                    let is_failure =
                        self.scan.calls[call].has_failed && severity_of(found.text()) == Severity::Error;
                    if is_failure { (FAILURE, CandidateKind::Failure) } else { (0.0, CandidateKind::Other) }
                }
            };
            let about = topic.worth_of(found.text());
            out.push(line(found.at(), found.text(), found.atoms, kind, own + about));
        }
    }
}

/// What a line is worth that tells who said or did something.
const LABEL: f32 = 0.4;
/// What a line is worth that tells what went wrong.
const FAILURE: f32 = 0.6;
/// What each word of the topic adds to a line, if a person named it.
const FOCUS: f32 = 0.1;

/// The words of a topic that tell one entry from another: one that stands in most of them says nothing.
struct Topic {
    words: Vec<String>,
    worth: f32,
}

impl Topic {
    fn of(showing: &Showing<'_>, sources: &[Source]) -> Topic {
        let mut words = focus_words(showing.focus);
        words.sort_unstable();
        words.dedup();
        let scripts: Vec<String> = sources.iter().map(|source| source.scan.script.to_lowercase()).collect();
        let n_in = |word: &String| scripts.iter().filter(|script| script.contains(word.as_str())).count();
        let found: Vec<(String, usize)> = words.into_iter().map(|word| (word.clone(), n_in(&word))).collect();
        let most = (sources.len() / if showing.is_focus_given { 2 } else { 5 }).max(1);
        let telling = |most: usize| -> Vec<String> {
            found.iter().filter(|(_, n)| (1..=most).contains(n)).map(|(word, _)| word.clone()).collect()
        };
        let words = match telling(most) {
            // What a person named counts even where it is everywhere.
            none if none.is_empty() && showing.is_focus_given => telling(usize::MAX),
            words => words,
        };
        Topic { words, worth: if showing.is_focus_given { FOCUS } else { FOCUS / 4.0 } }
    }

    fn is_in(&self, source: &Source) -> bool {
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

/// What people say first is what they want; what the agent says tells why it did what it did.
fn said_worth(is_user: bool, n_lines: usize) -> f32 {
    match (is_user, n_lines) {
        (true, ..=4) => 0.6,
        (true, _) => 0.15,
        (false, ..=4) => 0.15,
        (false, _) => 0.04,
    }
}

/// What an atom is worth for what it is, beside how likely it is to be used again.
fn own_worth(kind: AtomKind) -> f32 {
    match kind {
        AtomKind::Path => 0.06,
        AtomKind::Number => 0.025,
        AtomKind::Name | AtomKind::Quoted => 0.006,
    }
}

/// The lines of a chunk that are worth their room, in their order.
fn chosen(ledger: &Ledger, showing: &Showing<'_>, sources: &[Source]) -> String {
    let lexicon = &ledger.lexicon;
    let topic_words = Topic::of(showing, sources);
    let mut chances = lexicon.chances();
    let mut values = vec![0.0; lexicon.len()];
    for &atom in sources.iter().flat_map(|source| &source.scan.atoms) {
        values[atom as usize] = own_worth(lexicon.kind(atom)) + chances.get(atom);
    }
    let room = showing.room.0 as usize;
    let (about, others): (Vec<&Source>, Vec<&Source>) =
        sources.iter().partition(|source| topic_words.is_in(source));
    let (mut of_about, mut of_others) = (Vec::new(), Vec::new());
    about.iter().for_each(|source| source.lines(&topic_words, &mut of_about));
    others.iter().for_each(|source| source.lines(&topic_words, &mut of_others));
    let stretches = vec![0; of_about.len().max(of_others.len())];
    let share = if about.is_empty() { 0 } else { room * showing.focus_share as usize / 1000 };
    // The others first, and no more than their share; then the topic; then the others with what it left.
    let mut of_rest = values.clone();
    let mut rest = Chooser::new(&of_others, &stretches[..of_others.len()], &mut of_rest, showing.counter);
    rest.choose(room - share);
    for &atom in rest.chosen.iter().flat_map(|chosen| of_others[chosen.line].atoms) {
        values[atom as usize] = 0.0;
    }
    let spent = |chooser: &Chooser<'_>| chooser.chosen.iter().map(|chosen| chosen.cost).sum::<usize>();
    let mut topic = Chooser::new(&of_about, &stretches[..of_about.len()], &mut values, showing.counter);
    topic.choose(room.saturating_sub(spent(&rest)));
    rest.choose(room.saturating_sub(spent(&rest) + spent(&topic)));
    let mut picked: Vec<Picked<'_>> = Vec::new();
    for (chooser, lines) in [(&topic, &of_about), (&rest, &of_others)] {
        let of_chooser = chooser.chosen.iter().enumerate();
        picked.extend(of_chooser.map(|(rank, chosen)| Picked {
            line: lines[chosen.line],
            number: chosen.line,
            rank,
            cost: chosen.cost,
        }));
    }
    loop {
        let text = print(&mut picked);
        let cost = showing.counter.count(&text).0 as usize;
        let mut over = cost.saturating_sub(room);
        if over == 0 || picked.is_empty() {
            return text;
        }
        // What was chosen last goes first.
        picked.sort_by_key(|picked| picked.rank);
        while let Some(gone) = picked.pop_if(|_| over > 0) {
            over = over.saturating_sub(gone.cost);
        }
    }
}

/// A line that is shown.
#[derive(Clone, Copy)]
struct Picked<'a> {
    line: CandidateLine<'a>,
    number: usize,
    /// How soon it was chosen.
    rank: usize,
    cost: usize,
}

fn print(picked: &mut [Picked<'_>]) -> String {
    picked.sort_by_key(|picked| (picked.line.entry, picked.number));
    let mut out = String::new();
    for Picked { line, .. } in picked {
        out.push_str(line.text);
        out.push('\n');
    }
    out
}
