//! A summary job: the requests to send to a model, one after another.
//!
//! A job does no I/O: the host sends each request and passes the answer back. An unusable answer is requested once
//! more, with a list of its flaws. If the second answer is unusable too, the job ends without effect.

use std::ops::Range;

use crate::fold::ledger::Ledger;
use crate::model::summary::Summary;
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{Entry, EntryId, Transcript};
use crate::session::Session;
use crate::summary::complete::{complete, task_section};
use crate::summary::critical::{Reference, ReferenceKind, critical};
use crate::summary::material::{Chunk, MaterialOptions, chunks, span};
use crate::summary::prompt::{PromptParts, SYSTEM, build_prompt};
use crate::summary::quotes::normalize;
use crate::summary::redaction::{RedactFn, keep_text, redact_transcript};
use crate::summary::sections::{FILES, HEADINGS, Sections, TASK};
use crate::summary::validation::{Criteria, Flaw, check_answer};
use crate::text::clean::{clean, strip_wrapping};
use crate::text::words::one_line;

/// Options for a summary.
#[derive(Debug, Clone)]
pub struct SummaryOptions {
    /// A topic to keep more of; by default the newest user messages.
    pub focus: Option<String>,
    /// The date for the reader: `2026-11-15`. Empty if unknown.
    pub today: String,
    /// The context window of the model.
    pub window: Tokens,
    /// The maximum number of requests that the originals are spread over.
    pub chunks: usize,
    /// The summary to continue; by default the newest one of the session.
    pub previous: Option<Summary>,
    /// Set to summarise everything again if nothing was folded since the last summary.
    pub from_scratch: bool,
    /// Redacts everything before it is sent, and the summary before it is kept.
    pub redact: RedactFn,
}

impl SummaryOptions {
    /// Options for a model with this window, without redaction.
    pub fn new(window: Tokens) -> SummaryOptions {
        SummaryOptions {
            focus: None,
            today: String::new(),
            window,
            chunks: 8,
            previous: None,
            from_scratch: false,
            redact: keep_text,
        }
    }
}

/// A request to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRequest {
    /// The system prompt.
    pub system: String,
    /// The user message.
    pub user: String,
    /// The maximum length of the answer.
    pub max_tokens: u32,
}

/// The next step of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// Send a request.
    Ask(SummaryRequest),
    /// The summary is complete.
    Done(Summary),
    /// No usable answer: the flaws of the last one. An earlier summary stays.
    GiveUp(Vec<Flaw>),
}

/// A summary being written.
#[derive(Clone)]
pub struct SummaryJob<'c> {
    counter: &'c dyn Count,
    options: SummaryOptions,
    focus: String,
    task: String,
    user_messages: Vec<String>,
    /// The chunks to send, each with the references that the answer must contain.
    chunks: Vec<(Chunk, Vec<Reference>)>,
    /// The index of the next chunk.
    at: usize,
    /// The maximum cost of the summary, and the cost of the originals that it replaces.
    budget: Tokens,
    replaces: Tokens,
    /// The summary of the chunks that were answered.
    summary: Option<Summary>,
    /// The flaws of the last answer.
    flaws: Vec<Flaw>,
    has_given_up: bool,
    n_rejected: usize,
}

impl<'c> SummaryJob<'c> {
    /// Plans the job of a session. Returns `None` if nothing, or too little, was folded since the last summary.
    pub fn plan(session: &Session<'c>, options: &SummaryOptions) -> Option<SummaryJob<'c>> {
        let (original, counter) = (session.transcript(), session.counter());
        let focus = options.focus.as_deref().filter(|focus| !focus.trim().is_empty());
        let ledger = session.ledger();
        let mut previous = options.previous.clone().or_else(|| ledger.summaries().next_back().cloned());
        let span = match span_after(session, ledger, previous.as_ref()) {
            Some(span) => span,
            None if options.from_scratch && previous.take().is_some() => span_after(session, ledger, None)?,
            None => return None,
        };
        let (replaces, budget) = replaced_cost(session, span);
        let (transcript, changed) = redact_transcript(original, options.redact);
        let transcript = &transcript;
        let rules = &session.policy().tools[..];
        let mut analysis = session.analysis().clone();
        analysis.index(original, rules, session.parallel(), original.len());
        // Scans of redacted entries are out of date.
        for id in &changed {
            analysis.drop_scan(*id);
        }
        let focus = focus.map(|focus| (options.redact)(focus).into_owned());
        let is_focus_given = focus.is_some();
        let focus_share = if is_focus_given { 650 } else { 600 };
        let focus = focus.unwrap_or_else(|| newest_user_messages(transcript));
        let material_options = MaterialOptions {
            transcript,
            counter,
            rules,
            focus: &focus,
            focus_share,
            is_focus_given,
            room: room(options.window, budget),
            most: options.chunks,
        };
        let chosen = chunks(&mut analysis, &material_options, span);
        let n_critical = (budget.0 / 60).clamp(6, 40) as usize;
        let with_references = |chunk: Chunk| {
            let found = critical(&chunk, &analysis.lexicon, n_critical);
            (chunk, found)
        };
        let chunks: Vec<_> =
            chosen.into_iter().filter(|chunk| !chunk.text.trim().is_empty()).map(with_references).collect();
        if chunks.is_empty() {
            return None;
        }
        // A quote may be of the original or of the redacted text.
        let shown = changed.iter().map(|id| transcript.entry(*id));
        let user_entries = original.entries().iter().chain(shown).filter(|entry| entry.is_user());
        let user_messages =
            user_entries.filter_map(Entry::prompt).map(|prompt| normalize(prompt.body.as_str())).collect();
        let summary = previous
            .map(|previous| Summary { text: clean(&(options.redact)(&previous.text)).into(), ..previous });
        Some(SummaryJob {
            counter,
            options: options.clone(),
            focus,
            task: task_section(transcript),
            user_messages,
            chunks,
            at: 0,
            budget,
            replaces,
            summary,
            flaws: Vec::new(),
            has_given_up: false,
            n_rejected: 0,
        })
    }

    /// The next step.
    pub fn next(&self) -> NextStep {
        if self.has_given_up {
            return NextStep::GiveUp(self.flaws.clone());
        }
        match (self.chunks.get(self.at), &self.summary) {
            (Some((chunk, critical)), _) => NextStep::Ask(self.ask(chunk, critical)),
            (None, Some(summary)) => NextStep::Done(summary.clone()),
            (None, None) => NextStep::GiveUp(vec![Flaw::Empty]),
        }
    }

    /// Passes the answer to the last request.
    pub fn accept_answer(&mut self, answer: &str) {
        let Some((chunk, critical)) = self.chunks.get(self.at).filter(|_| !self.has_given_up) else { return };
        let answer = clean(strip_wrapping(answer));
        let record = self.summary.as_ref().map_or("", |summary| &*summary.text);
        let shown = format!("{}\n{record}", chunk.text);
        let is_second = !self.flaws.is_empty();
        let criteria = Criteria {
            counter: self.counter,
            most: self.replaces.min(Tokens(self.budget.0 * 5 / 4)),
            critical,
            user_messages: &self.user_messages,
            shown: &shown,
            // A model that omits a few headings twice has nothing to write there.
            n_may_miss: if is_second { HEADINGS.len() / 4 } else { 0 },
        };
        match check_answer(&answer, &criteria) {
            Ok(mut sections) => {
                let lost = self.lost_files(&sections);
                let required: Vec<Reference> = critical.iter().cloned().chain(lost).collect();
                complete(&mut sections, &self.task, &required, self.counter, self.budget);
                let text = clean(&(self.options.redact)(&sections.print())).into();
                self.summary = Some(Summary { text, upto: chunk.last, day: self.options.today.clone() });
                self.flaws.clear();
                self.at += 1;
            }
            Err(flaws) => self.reject(flaws),
        }
    }

    /// Reports that the answer to the last request was truncated.
    pub fn accept_truncated_answer(&mut self) {
        if self.at < self.chunks.len() && !self.has_given_up {
            self.reject(vec![Flaw::Cut]);
        }
    }

    fn reject(&mut self, flaws: Vec<Flaw>) {
        let is_second = !self.flaws.is_empty();
        self.n_rejected += 1;
        self.flaws = flaws;
        self.has_given_up = is_second;
    }

    /// The summary of the chunks that were answered, if there is a new one.
    pub fn partial_summary(&self) -> Option<Summary> {
        self.summary.clone().filter(|_| self.at > 0)
    }

    /// The maximum cost of the summary.
    pub fn budget(&self) -> Tokens {
        self.budget
    }

    /// The number of requests if every answer is usable.
    pub fn n_chunks(&self) -> usize {
        self.chunks.len()
    }

    /// The text of each chunk.
    pub fn material(&self) -> impl Iterator<Item = &str> {
        self.chunks.iter().map(|(chunk, _)| chunk.text.as_str())
    }

    /// The flaws of the last answer, if it was unusable.
    pub fn flaws(&self) -> &[Flaw] {
        &self.flaws
    }

    /// The number of unusable answers.
    pub fn n_rejected(&self) -> usize {
        self.n_rejected
    }

    fn ask(&self, chunk: &Chunk, critical: &[Reference]) -> SummaryRequest {
        // The first section is generated, so the model need not copy it.
        let previous = self.summary.as_ref().map(|summary| without_task(&summary.text));
        let user = build_prompt(&PromptParts {
            today: &self.options.today,
            focus: &self.focus,
            is_focus_given: self.options.focus.is_some(),
            previous: previous.as_deref(),
            critical,
            budget: self.budget,
            part: (self.at + 1, self.chunks.len()),
            flaws: &self.flaws,
            material: &chunk.text,
        });
        let max_tokens = (self.budget.0 * 3 / 2).min(u64::from(u32::MAX)) as u32;
        SummaryRequest { system: SYSTEM.to_owned(), user, max_tokens }
    }

    /// Files that the previous summary named and the new one does not.
    fn lost_files(&self, now: &Sections) -> Vec<Reference> {
        const MOST: usize = 40;
        let before = self.summary.as_ref().map(|summary| Sections::parse(&summary.text)).unwrap_or_default();
        let files =
            before.get(FILES).unwrap_or_default().lines().filter_map(|line| line.trim().strip_prefix("- "));
        let path =
            |line: &str| line.split([' ', ':', ',']).next().unwrap_or_default().trim_matches('`').to_owned();
        let printed = now.print();
        let lost =
            files.map(path).filter(|path| path.contains(['/', '.']) && !printed.contains(path.as_str()));
        lost.take(MOST).map(|text| Reference { kind: ReferenceKind::Path, text }).collect()
    }
}

/// The entries after `previous` that a summary has to cover, if they are worth a summary.
fn span_after(session: &Session<'_>, ledger: &Ledger, previous: Option<&Summary>) -> Option<(usize, usize)> {
    let transcript = session.transcript();
    let from = previous.map_or(0, |previous| previous.upto.index() + 1);
    let span = span(transcript, ledger, from)?;
    let (replaces, budget) = replaced_cost(session, span);
    // A summary must be shorter than what it replaces.
    let is_worth_it = cost(transcript, span.0..span.1) > Tokens(budget.0 / 4) && replaces > budget;
    is_worth_it.then_some(span)
}

/// The cost of all entries up to the end of a span, and the maximum cost of a summary of them.
fn replaced_cost(session: &Session<'_>, span: (usize, usize)) -> (Tokens, Tokens) {
    let replaces = cost(session.transcript(), 0..span.1);
    (replaces, budget(replaces, session.budget().window()))
}

fn cost(transcript: &Transcript, range: Range<usize>) -> Tokens {
    range.map(|i| transcript.tokens(EntryId::from(i))).sum()
}

/// The maximum length of a summary: a fifth of what it replaces, at least 2,000 tokens, at most a twentieth of the
/// window and 10,000. In a small window, the minimum is a tenth of it.
fn budget(replaces: Tokens, window: Tokens) -> Tokens {
    let most = window.permille(50).min(Tokens(10_000));
    let least = Tokens(2_000).min(window.permille(100));
    replaces.permille(200).min(most).max(least)
}

/// The room for originals in the model's window: without the answer, the previous summary, the prompt, and a margin
/// for a different tokenizer.
fn room(window: Tokens, budget: Tokens) -> Tokens {
    const WORDS: Tokens = Tokens(1_800);
    const LEAST: Tokens = Tokens(400);
    let answer = Tokens(budget.0 * 3 / 2);
    (window - answer - budget - WORDS.min(window.permille(250))).permille(920).max(LEAST)
}

/// The summary without its first section.
fn without_task(text: &str) -> String {
    let mut sections = Sections::parse(text);
    sections.set(TASK, String::new());
    let printed = sections.print();
    printed.split_once("\n\n").map_or(String::new(), |(_, rest)| rest.to_owned())
}

/// The newest user messages, shortened: the default topic.
fn newest_user_messages(transcript: &Transcript) -> String {
    const EACH: usize = 260;
    const TURNS: usize = 3;
    let prompts = transcript.entries().iter().rev().filter(|entry| entry.is_user()).filter_map(Entry::prompt);
    let words = prompts.map(|prompt| one_line(prompt.body.as_str()));
    let short = words.filter(|words| !words.is_empty()).take(TURNS).map(|words| {
        let end = words.char_indices().nth(EACH).map_or(words.len(), |(at, _)| at);
        words[..end].to_owned()
    });
    short.collect::<Vec<_>>().join(" / ")
}
