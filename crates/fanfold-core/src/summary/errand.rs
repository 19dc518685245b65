//! The questions that make a summary, one after another.
//!
//! An errand is what a host has to ask a model. It waits for nothing and calls nobody: the host says what the answer was, and
//! asks what comes next. An answer that can't be used is asked for again once, with what is wrong with it; then it is given up, and all
//! is as it was.

use crate::model::summary::Summary;
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{Entry, EntryId, Transcript};
use crate::session::Session;
use crate::summary::complete::{complete, task_of};
use crate::summary::critical::{Kind, Reference, critical};
use crate::summary::judge::{Flaw, Measure, judge};
use crate::summary::material::{Chunk, Showing, chunks, span};
use crate::summary::quotes::normal;
use crate::summary::sections::{FILES, HEADINGS, Sections, TASK};
use crate::summary::veil::{Veil, nothing, veiled};
use crate::summary::wording::{Question, SYSTEM, question};
use crate::text::clean::{bare, clean};

/// What a summary should be like.
#[derive(Debug, Clone)]
pub struct Wish {
    /// A topic of which more should be kept; by itself it is what the user said last.
    pub focus: Option<String>,
    /// Today, as it should be read: `2026-11-15`. Empty where nobody knows.
    pub today: String,
    /// The window of the model that writes it.
    pub window: Tokens,
    /// How many questions the originals may be spread over, so that there is a limit to what is sent.
    pub chunks: usize,
    /// The summary that goes on; none is the newest one of the session.
    pub previous: Option<Summary>,
    /// Whether one is written anew, of everything, where nothing came since the last one.
    pub is_anew: bool,
    /// What is taken out of everything before a model is shown it, and of the summary before it is kept.
    pub veil: Veil,
}

impl Wish {
    /// A wish for a model with this window, to which everything may be shown as it is.
    pub fn of(window: Tokens) -> Wish {
        Wish {
            focus: None,
            today: String::new(),
            window,
            chunks: 8,
            previous: None,
            is_anew: false,
            veil: nothing,
        }
    }
}

/// What is to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The system text.
    pub system: String,
    /// The question.
    pub user: String,
    /// How long the answer may be.
    pub max_tokens: u32,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A question to a model.
    Ask(Asked),
    /// The summary is there.
    Done(Summary),
    /// No good answer came: what was wrong with the last one. What was there before stays.
    GiveUp(Vec<Flaw>),
}

/// A summary in the making.
#[derive(Clone)]
pub struct Errand<'c> {
    counter: &'c dyn Count,
    wish: Wish,
    focus: String,
    task: String,
    said: Vec<String>,
    /// What is shown, each with what must not be missing in the answer.
    chunks: Vec<(Chunk, Vec<Reference>)>,
    /// Which chunk comes next.
    at: usize,
    /// What the whole may cost, and what it stands for.
    budget: Tokens,
    replaces: Tokens,
    /// What was written up to the last chunk that was answered.
    written: Option<Summary>,
    /// What was wrong with the last answer.
    flaws: Vec<Flaw>,
    is_given_up: bool,
    n_flawed: usize,
    n_added: usize,
}

impl<'c> Errand<'c> {
    /// The errand of a session; none if nothing was folded since the last summary, or too little to write of.
    pub fn of(session: &Session<'c>, wish: &Wish) -> Option<Errand<'c>> {
        let (original, counter) = (session.transcript(), session.counter());
        let focus = wish.focus.as_deref().filter(|focus| !focus.trim().is_empty());
        let mut ledger = session.ledger().clone();
        let cost = |range: std::ops::Range<usize>| -> Tokens {
            range.map(|i| original.tokens(EntryId::from(i))).sum()
        };
        let replaced = |span: (usize, usize)| {
            let replaces = cost(0..span.1);
            (replaces, budget(replaces, session.budget().window()))
        };
        // What is shorter than its summary needs none.
        let is_worth_it = |span: &(usize, usize)| {
            let (replaces, budget) = replaced(*span);
            cost(span.0..span.1) > Tokens(budget.0 / 4) && replaces > budget
        };
        let mut previous = wish.previous.clone().or_else(|| ledger.summaries().next_back().cloned());
        let from = previous.as_ref().map_or(0, |previous| previous.upto.index() + 1);
        let span = match span(original, &ledger, from).filter(is_worth_it) {
            Some(span) => span,
            None if wish.is_anew && previous.take().is_some() => {
                span(original, &ledger, 0).filter(is_worth_it)?
            }
            None => return None,
        };
        let (replaces, budget) = replaced(span);
        let (transcript, changed) = veiled(original, wish.veil);
        let transcript = &transcript;
        // What was learnt from the originals is not asked again where they are shown otherwise.
        for id in &changed {
            ledger.scans.remove(id);
        }
        let focus = focus.map(|focus| (wish.veil)(focus).into_owned());
        let is_focus_given = focus.is_some();
        let focus_share = if is_focus_given { 650 } else { 600 };
        let focus = focus.unwrap_or_else(|| newest_words(transcript));
        let showing = Showing {
            transcript,
            counter,
            rules: &session.policy().tools,
            parallel: session.parallel(),
            focus: &focus,
            focus_share,
            is_focus_given,
            room: room(wish.window, budget),
            most: wish.chunks,
        };
        let chosen = chunks(&mut ledger, &showing, span);
        let n_critical = (budget.0 / 60).clamp(6, 40) as usize;
        let with = |chunk: Chunk| {
            let found = critical(&chunk, &ledger.lexicon, n_critical);
            (chunk, found)
        };
        let chunks: Vec<_> =
            chosen.into_iter().filter(|chunk| !chunk.text.trim().is_empty()).map(with).collect();
        if chunks.is_empty() {
            return None;
        }
        // A quote may be of what was said, or of what was shown of it.
        let shown = changed.iter().map(|id| transcript.entry(*id));
        let people = original.entries().iter().chain(shown).filter(|entry| entry.is_user());
        let said = people.filter_map(Entry::prompt).map(|prompt| normal(prompt.body.as_str())).collect();
        let written =
            previous.map(|previous| Summary { text: clean(&(wish.veil)(&previous.text)).into(), ..previous });
        Some(Errand {
            counter,
            wish: wish.clone(),
            focus,
            task: task_of(transcript),
            said,
            chunks,
            at: 0,
            budget,
            replaces,
            written,
            flaws: Vec::new(),
            is_given_up: false,
            n_flawed: 0,
            n_added: 0,
        })
    }

    /// What comes next.
    pub fn next(&self) -> Next {
        if self.is_given_up {
            return Next::GiveUp(self.flaws.clone());
        }
        match (self.chunks.get(self.at), &self.written) {
            (Some((chunk, critical)), _) => Next::Ask(self.ask(chunk, critical)),
            (None, Some(summary)) => Next::Done(summary.clone()),
            (None, None) => Next::GiveUp(vec![Flaw::Empty]),
        }
    }

    /// Takes the answer to the question that was asked last.
    pub fn heard(&mut self, answer: &str) {
        let Some((chunk, critical)) = self.chunks.get(self.at).filter(|_| !self.is_given_up) else { return };
        let answer = clean(bare(answer));
        let record = self.written.as_ref().map_or("", |written| &*written.text);
        let shown = format!("{}\n{record}", chunk.text);
        let is_second = !self.flaws.is_empty();
        let measure = Measure {
            counter: self.counter,
            most: self.replaces.min(Tokens(self.budget.0 * 5 / 4)),
            critical,
            said: &self.said,
            shown: &shown,
            // Who was told and still left out a few had nothing to say there.
            may_miss: if is_second { HEADINGS.len() / 4 } else { 0 },
        };
        match judge(&answer, &measure) {
            Ok(mut sections) => {
                let kept = self.kept_files(&sections);
                let wanted: Vec<Reference> = critical.iter().cloned().chain(kept).collect();
                self.n_added += complete(&mut sections, &self.task, &wanted, self.counter, self.budget);
                let text = clean(&(self.wish.veil)(&sections.print())).into();
                self.written = Some(Summary { text, upto: chunk.last, day: self.wish.today.clone() });
                self.flaws.clear();
                self.at += 1;
            }
            Err(flaws) => self.flawed(flaws),
        }
    }

    /// The answer to the question that was asked last was cut off: however far it came, it is no summary.
    pub fn heard_cut(&mut self) {
        if self.at < self.chunks.len() && !self.is_given_up {
            self.flawed(vec![Flaw::Cut]);
        }
    }

    fn flawed(&mut self, flaws: Vec<Flaw>) {
        let is_second = !self.flaws.is_empty();
        self.n_flawed += 1;
        self.flaws = flaws;
        self.is_given_up = is_second;
    }

    /// What is written so far of the chunks that were answered well: good as far as it goes. None if that is nothing new.
    pub fn so_far(&self) -> Option<Summary> {
        self.written.clone().filter(|_| self.at > 0)
    }

    /// What its summary stands for, in tokens.
    pub fn replaces(&self) -> Tokens {
        self.replaces
    }

    /// How long its summary may be.
    pub fn budget(&self) -> Tokens {
        self.budget
    }

    /// How many questions there are, if every answer is good.
    pub fn n_chunks(&self) -> usize {
        self.chunks.len()
    }

    /// What the model is shown of the originals, chunk by chunk.
    pub fn material(&self) -> impl Iterator<Item = &str> {
        self.chunks.iter().map(|(chunk, _)| chunk.text.as_str())
    }

    /// What was wrong with the last answer, if it could not be used.
    pub fn flaws(&self) -> &[Flaw] {
        &self.flaws
    }

    /// How many answers could not be used so far.
    pub fn n_flawed(&self) -> usize {
        self.n_flawed
    }

    /// How many paths, errors and ids were added that answers left out.
    pub fn n_added(&self) -> usize {
        self.n_added
    }

    fn ask(&self, chunk: &Chunk, critical: &[Reference]) -> Asked {
        // The first section is ours and would only be copied.
        let previous = self.written.as_ref().map(|written| without_task(&written.text));
        let user = question(&Question {
            today: &self.wish.today,
            focus: &self.focus,
            is_focus_given: self.wish.focus.is_some(),
            previous: previous.as_deref(),
            critical,
            budget: self.budget,
            part: (self.at + 1, self.chunks.len()),
            flaws: &self.flaws,
            material: &chunk.text,
        });
        let max_tokens = (self.budget.0 * 3 / 2).min(u64::from(u32::MAX)) as u32;
        Asked { system: SYSTEM.to_owned(), user, max_tokens }
    }

    /// Files that the record named before: a new one should not forget them.
    fn kept_files(&self, now: &Sections) -> Vec<Reference> {
        const MOST: usize = 40;
        let before = self.written.as_ref().map(|written| Sections::read(&written.text)).unwrap_or_default();
        let files =
            before.get(FILES).unwrap_or_default().lines().filter_map(|line| line.trim().strip_prefix("- "));
        let path =
            |line: &str| line.split([' ', ':', ',']).next().unwrap_or_default().trim_matches('`').to_owned();
        let is_told = now.print();
        let lost =
            files.map(path).filter(|path| path.contains(['/', '.']) && !is_told.contains(path.as_str()));
        lost.take(MOST).map(|text| Reference { kind: Kind::Path, text }).collect()
    }
}

/// How long a summary may be that stands for so much: a fifth of it, at least 2,000 tokens, at most a twentieth of the window and
/// 10,000; in a small window the least is a tenth of it.
fn budget(replaces: Tokens, window: Tokens) -> Tokens {
    let most = window.permille(50).min(Tokens(10_000));
    let least = Tokens(2_000).min(window.permille(100));
    replaces.permille(200).min(most).max(least)
}

/// What of the model's window is for the originals: not the answer, the record so far, the question itself, nor what another tokenizer
/// may count more.
fn room(window: Tokens, budget: Tokens) -> Tokens {
    const WORDS: Tokens = Tokens(1_800);
    const LEAST: Tokens = Tokens(400);
    let answer = Tokens(budget.0 * 3 / 2);
    (window - answer - budget - WORDS.min(window.permille(250))).permille(920).max(LEAST)
}

/// A record without its first section.
fn without_task(text: &str) -> String {
    let mut sections = Sections::read(text);
    sections.set(TASK, String::new());
    let printed = sections.print();
    printed.split_once("\n\n").map_or(String::new(), |(_, rest)| rest.to_owned())
}

/// The newest words of people, which tell what the work is about.
fn newest_words(transcript: &Transcript) -> String {
    const EACH: usize = 260;
    const TURNS: usize = 3;
    let people = transcript.entries().iter().rev().filter(|entry| entry.is_user()).filter_map(Entry::prompt);
    let words = people.map(|prompt| prompt.body.as_str().split_whitespace().collect::<Vec<_>>().join(" "));
    let short = words.filter(|words| !words.is_empty()).take(TURNS).map(|words| {
        let end = words.char_indices().nth(EACH).map_or(words.len(), |(at, _)| at);
        words[..end].to_owned()
    });
    short.collect::<Vec<_>>().join(" / ")
}
