//! Messages as they are measured: each content once, however often it is sent.

use std::ops::Index;
use std::sync::{Mutex, PoisonError};

use fanfold_core::{Count, Frame, Tokens};
use rustc_hash::FxHashMap;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use crate::message::{Message, Role, print_of};

/// The number of a message's content: equal messages share one.
pub(crate) type LookId = u32;

/// A message as it is measured.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) role: Role,
    pub(crate) tokens: u64,
    /// The readable text.
    pub(crate) text: String,
    /// The ids of its calls, sorted.
    pub(crate) calls: Vec<u32>,
    /// The id of the call that it answers.
    pub(crate) answers: Option<u32>,
    /// Where the recorded conversation has it; nowhere if fanfold wrote it.
    pub(crate) at: Vec<u32>,
}

/// The contents of one conversation's messages, those that fanfold wrote among them.
pub(crate) struct Looks<'c> {
    counter: &'c dyn Count,
    all: Vec<Look>,
    by_print: FxHashMap<u128, LookId>,
    call_ids: FxHashMap<String, u32>,
}

impl<'c> Looks<'c> {
    pub(crate) fn new(counter: &'c dyn Count) -> Looks<'c> {
        Looks { counter, all: Vec::new(), by_print: FxHashMap::default(), call_ids: FxHashMap::default() }
    }

    /// The look of a message that is about to be sent.
    pub(crate) fn of(&mut self, json: &str) -> LookId {
        self.learn(json).0
    }

    /// The look of the message that stands at a place of the recorded conversation.
    pub(crate) fn recorded(&mut self, at: u32, json: &str) -> (LookId, Message) {
        let (look, message) = self.learn(json);
        self.all[look as usize].at.push(at);
        (look, message)
    }

    fn learn(&mut self, json: &str) -> (LookId, Message) {
        let value: Value = serde_json::from_str(json).unwrap_or_default();
        let message = Message::read(&value);
        let print = print_of(&value);
        if let Some(look) = self.by_print.get(&print) {
            return (*look, message);
        }
        let mut calls: Vec<u32> = message.calls.iter().map(|call| self.call_id(&call.id)).collect();
        calls.sort_unstable();
        let answers = message.answers.as_ref().map(|id| self.call_id(id));
        let look = self.all.len() as LookId;
        self.all.push(Look {
            role: message.role,
            tokens: message.tokens(self.counter),
            text: message.render(),
            calls,
            answers,
            at: Vec::new(),
        });
        self.by_print.insert(print, look);
        (look, message)
    }

    fn call_id(&mut self, id: &str) -> u32 {
        let next = self.call_ids.len() as u32;
        *self.call_ids.entry(id.to_owned()).or_insert(next)
    }
}

impl Index<LookId> for Looks<'_> {
    type Output = Look;

    fn index(&self, look: LookId) -> &Look {
        &self.all[look as usize]
    }
}

/// A counter that counts a long text once: what is measured is folded, too.
pub(crate) struct Remembering<'c> {
    counter: &'c dyn Count,
    counts: Mutex<FxHashMap<u128, Tokens>>,
}

impl<'c> Remembering<'c> {
    pub(crate) fn new(counter: &'c dyn Count) -> Remembering<'c> {
        Remembering { counter, counts: Mutex::default() }
    }
}

impl Count for Remembering<'_> {
    fn count(&self, text: &str) -> Tokens {
        const LONG: usize = 64;
        if text.len() < LONG {
            return self.counter.count(text);
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(xxh3_128(text.as_bytes())).or_insert_with(|| self.counter.count(text))
    }

    fn frame(&self) -> Frame {
        self.counter.frame()
    }

    fn is_cut_at_lines(&self) -> bool {
        self.counter.is_cut_at_lines()
    }

    fn name(&self) -> &str {
        self.counter.name()
    }

    fn is_exact(&self) -> bool {
        self.counter.is_exact()
    }
}
