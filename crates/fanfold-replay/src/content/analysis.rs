//! The parts of a measurement that do not depend on the policy.

use std::cell::RefCell;
use std::rc::Rc;

use fanfold_core::Count;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::atoms::{AtomClass, CommonKnowledge, find_atoms};
use super::contents::{ContentId, MessageContents};
use super::copied_spans::{CopiedSpan, copied_spans};
use super::message::{ChatMessage, ChatRole, spaced};
use super::readability::AtomContext;
use super::text::{Needle, each_word, n_chars, unescape};
use crate::record::Record;

/// The id of an atom within one conversation.
pub(crate) type ReplyAtomId = u32;
/// The contexts of atoms in messages.
type AtomContexts = FxHashMap<(ReplyAtomId, u32), Rc<Vec<AtomContext>>>;

/// An atom that a reply used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UsedAtom {
    pub(crate) atom: ReplyAtomId,
    pub(crate) class: AtomClass,
    /// The distance of its last occurrence, in tokens.
    pub(crate) distance: f64,
    /// True if only tool results contain it.
    pub(crate) is_tool_only: bool,
}

/// The last occurrence of an atom in a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occurrence {
    pub(crate) message: u32,
    /// The share of the message that follows it.
    rest: f64,
}

/// A recorded conversation, analysed.
pub(crate) struct RecordAnalysis<'r> {
    pub(crate) record: &'r Record,
    /// Tokens of the tool schemas.
    pub(crate) base: u64,
    pub(crate) contents: MessageContents<'r>,
    /// The content of each message.
    pub(crate) content_ids: Vec<ContentId>,
    /// Tokens of the messages before each one.
    pub(crate) before: Vec<u64>,
    /// The positions of the replayed replies.
    pub(crate) replies: Vec<usize>,
    pub(crate) used: FxHashMap<usize, Vec<UsedAtom>>,
    pub(crate) needles: Vec<Needle>,
    pub(crate) occurrences: Vec<Vec<Occurrence>>,
    /// The positions of messages that people wrote.
    pub(crate) users: Vec<usize>,
    /// For each reply, the results of earlier calls that it repeats verbatim.
    pub(crate) repeats: Vec<Vec<u32>>,
    /// The copied spans of each reply.
    pub(crate) copied: Vec<Vec<CopiedSpan>>,
    /// A cache of the contexts of atoms.
    pub(crate) atom_contexts: RefCell<AtomContexts>,
}

impl<'r> RecordAnalysis<'r> {
    pub(crate) fn new(
        record: &'r Record,
        known: &CommonKnowledge,
        counter: &'r dyn Count,
    ) -> RecordAnalysis<'r> {
        let tools = record.tools.as_ref().and_then(|tools| serde_json::from_str::<Value>(tools.get()).ok());
        let schemas = tools.as_ref().map(spaced);
        let mut analysis = RecordAnalysis {
            record,
            base: schemas.as_ref().map_or(0, |schemas| counter.count(schemas).0),
            contents: MessageContents::new(counter),
            content_ids: Vec::new(),
            before: vec![0],
            replies: Vec::new(),
            used: FxHashMap::default(),
            needles: Vec::new(),
            occurrences: Vec::new(),
            users: Vec::new(),
            repeats: Vec::new(),
            copied: Vec::new(),
            atom_contexts: RefCell::default(),
        };
        let mut atoms = Vec::new();
        let mut fixed = Vec::new();
        let mut earlier_calls = RepeatedCalls::default();
        for (i, raw) in record.messages.iter().enumerate() {
            let (content, message) = analysis.contents.add_recorded(i as u32, raw.get());
            analysis.content_ids.push(content);
            let tokens = analysis.contents[content].tokens;
            analysis.before.push(analysis.before[i] + tokens);
            let repeats = earlier_calls.add(i as u32, &message);
            match message.role {
                ChatRole::Assistant if i > 0 => {
                    analysis.replies.push(i);
                    analysis.repeats.push(repeats);
                    atoms.push(find_atoms(&message, known));
                }
                ChatRole::User if !message.is_harness => analysis.users.push(i),
                ChatRole::System => fixed.push(analysis.contents[content].text.clone()),
                _ => {}
            }
        }
        fixed.push(schemas.unwrap_or_else(|| "[]".to_owned()));
        let fixed = unescape(&fixed.join("\n"));
        analysis.locate_atoms(atoms, &fixed);
        analysis.copied = copied_spans(&analysis, &fixed);
        analysis
    }

    /// Tokens of the tool schemas and the first `n` messages.
    pub(crate) fn raw(&self, n: usize) -> u64 {
        self.base + self.before[n]
    }

    /// Tokens of the whole conversation.
    pub(crate) fn total(&self) -> u64 {
        self.raw(self.record.messages.len())
    }

    /// Finds the earlier occurrences of the atoms of each reply.
    fn locate_atoms(&mut self, atoms: Vec<Vec<(String, AtomClass)>>, fixed: &str) {
        let mut ids: FxHashMap<String, ReplyAtomId> = FxHashMap::default();
        let mut by_reply: Vec<Vec<(ReplyAtomId, AtomClass)>> = Vec::new();
        for reply in atoms {
            let mut list = Vec::with_capacity(reply.len());
            for (text, class) in reply {
                let id = *ids.entry(text).or_insert_with_key(|text| {
                    self.needles.push(Needle::new(text));
                    self.needles.len() as ReplyAtomId - 1
                });
                list.push((id, class));
            }
            by_reply.push(list);
        }
        let mut by_word: FxHashMap<&str, Vec<ReplyAtomId>> = FxHashMap::default();
        for (id, needle) in self.needles.iter().enumerate() {
            if let Some(word) = needle.key_word() {
                by_word.entry(word).or_default().push(id as ReplyAtomId);
            }
        }
        // The system prompt and the tool schemas are in every view.
        let is_fixed: FxHashSet<ReplyAtomId> =
            last_offsets(&self.needles, &by_word, fixed).into_keys().collect();
        self.occurrences = vec![Vec::new(); self.needles.len()];
        for (i, content) in self.content_ids.iter().enumerate() {
            let content = &self.contents[*content];
            if content.role == ChatRole::System {
                continue;
            }
            let length = n_chars(&content.text).max(1) as f64;
            for (id, offset) in last_offsets(&self.needles, &by_word, &content.text) {
                if !is_fixed.contains(&id) {
                    let rest = 1.0 - n_chars(&content.text[..offset]) as f64 / length;
                    self.occurrences[id as usize].push(Occurrence { message: i as u32, rest });
                }
            }
        }
        for (reply, atoms) in self.replies.clone().into_iter().zip(by_reply) {
            let used = atoms.into_iter().filter_map(|(atom, class)| self.used(reply, atom, class)).collect();
            self.used.insert(reply, used);
        }
    }

    fn used(&self, reply: usize, atom: ReplyAtomId, class: AtomClass) -> Option<UsedAtom> {
        let seen = self.occurrences_before(atom, reply);
        let (first, last) = (seen.first()?, seen.last()?);
        let role = |occurrence: &Occurrence| self.role(occurrence.message as usize);
        // The model can produce its own texts again, except file names.
        if role(first) == ChatRole::Assistant && !class.is_self_contained() {
            return None;
        }
        Some(UsedAtom {
            atom,
            class,
            distance: self.tokens_back(reply, last.message, last.rest),
            is_tool_only: seen.iter().all(|occurrence| role(occurrence) == ChatRole::Tool),
        })
    }

    /// The tokens between a reply and a point in an earlier message, given the share of the message after the point.
    fn tokens_back(&self, reply: usize, message: u32, rest: f64) -> f64 {
        let at = message as usize;
        let tokens = self.contents[self.content_ids[at]].tokens as f64;
        (self.before[reply] - self.before[at + 1]) as f64 + rest * tokens
    }

    /// The tokens between a reply and a byte of an earlier message.
    pub(crate) fn distance(&self, reply: usize, message: u32, byte: usize) -> f64 {
        let length = self.text_of(message).len().max(1) as f64;
        self.tokens_back(reply, message, 1.0 - byte as f64 / length)
    }

    /// The occurrences of an atom before a message.
    pub(crate) fn occurrences_before(&self, atom: ReplyAtomId, message: usize) -> &[Occurrence] {
        let all = &self.occurrences[atom as usize];
        &all[..all.partition_point(|occurrence| (occurrence.message as usize) < message)]
    }

    pub(crate) fn role(&self, message: usize) -> ChatRole {
        self.contents[self.content_ids[message]].role
    }

    pub(crate) fn text_of(&self, message: u32) -> &str {
        &self.contents[self.content_ids[message as usize]].text
    }
}

/// The calls of earlier messages, and their results.
#[derive(Default)]
struct RepeatedCalls {
    /// The id of the newest call with each tool and arguments.
    newest: FxHashMap<(String, String), String>,
    results: FxHashMap<String, u32>,
}

impl RepeatedCalls {
    /// Adds a message. Returns the results of earlier calls that it repeats.
    fn add(&mut self, at: u32, message: &ChatMessage) -> Vec<u32> {
        if let (ChatRole::Tool, Some(id)) = (message.role, &message.answers) {
            self.results.insert(id.clone(), at);
        }
        let mut repeats = Vec::new();
        for call in &message.calls {
            let before = self.newest.insert((call.name.clone(), call.arguments.clone()), call.id.clone());
            repeats.extend(before.and_then(|id| self.results.get(&id).copied()));
        }
        repeats
    }
}

/// The last offset of each atom in a text.
fn last_offsets(
    needles: &[Needle],
    by_word: &FxHashMap<&str, Vec<ReplyAtomId>>,
    text: &str,
) -> FxHashMap<ReplyAtomId, usize> {
    let mut offsets = FxHashMap::default();
    each_word(text, |start, word| {
        let Some(atoms) = by_word.get(word) else { return };
        for id in atoms {
            let needle = &needles[*id as usize];
            let key_start = needle.key.map_or(0, |(start, _)| start);
            if let Some(offset) = start.checked_sub(key_start).filter(|offset| needle.is_at(text, *offset)) {
                offsets.insert(*id, offset);
            }
        }
    });
    offsets
}
