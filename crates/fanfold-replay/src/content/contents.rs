//! The distinct messages of a conversation and of its views, each rendered and counted once.

use std::ops::Index;
use std::sync::{Mutex, PoisonError};

use fanfold_core::{Count, FrameCosts, Tokens};
use rustc_hash::FxHashMap;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use super::message::{ChatMessage, ChatRole, fingerprint};

/// The id of a message's content. Equal messages have the same id.
pub(crate) type ContentId = u32;

/// A distinct message.
#[derive(Debug)]
pub(crate) struct MessageContent {
    pub(crate) role: ChatRole,
    pub(crate) tokens: u64,
    /// The text with its escapes removed.
    pub(crate) text: String,
    /// The ids of its calls, sorted.
    pub(crate) calls: Vec<u32>,
    /// For a tool result: the id of its call.
    pub(crate) answers: Option<u32>,
    /// Its positions in the recorded conversation; empty if fanfold wrote it.
    pub(crate) positions: Vec<u32>,
}

/// The distinct messages of one conversation, including those that fanfold wrote.
pub(crate) struct MessageContents<'c> {
    counter: &'c dyn Count,
    all: Vec<MessageContent>,
    by_fingerprint: FxHashMap<u128, ContentId>,
    call_ids: FxHashMap<String, u32>,
}

impl<'c> MessageContents<'c> {
    pub(crate) fn new(counter: &'c dyn Count) -> MessageContents<'c> {
        MessageContents {
            counter,
            all: Vec::new(),
            by_fingerprint: FxHashMap::default(),
            call_ids: FxHashMap::default(),
        }
    }

    /// Adds a message of a view.
    pub(crate) fn add(&mut self, json: &str) -> ContentId {
        self.add_parsed(json).0
    }

    /// Adds the message at a position of the recorded conversation.
    pub(crate) fn add_recorded(&mut self, at: u32, json: &str) -> (ContentId, ChatMessage) {
        let (content, message) = self.add_parsed(json);
        self.all[content as usize].positions.push(at);
        (content, message)
    }

    fn add_parsed(&mut self, json: &str) -> (ContentId, ChatMessage) {
        let value: Value = serde_json::from_str(json).unwrap_or_default();
        let message = ChatMessage::parse(&value);
        let fingerprint = fingerprint(&value);
        if let Some(content) = self.by_fingerprint.get(&fingerprint) {
            return (*content, message);
        }
        let mut calls: Vec<u32> = message.calls.iter().map(|call| self.call_id(&call.id)).collect();
        calls.sort_unstable();
        let answers = message.answers.as_ref().map(|id| self.call_id(id));
        let content = self.all.len() as ContentId;
        self.all.push(MessageContent {
            role: message.role,
            tokens: message.tokens(self.counter),
            text: message.render(),
            calls,
            answers,
            positions: Vec::new(),
        });
        self.by_fingerprint.insert(fingerprint, content);
        (content, message)
    }

    fn call_id(&mut self, id: &str) -> u32 {
        let next = self.call_ids.len() as u32;
        *self.call_ids.entry(id.to_owned()).or_insert(next)
    }
}

impl Index<ContentId> for MessageContents<'_> {
    type Output = MessageContent;

    fn index(&self, content: ContentId) -> &MessageContent {
        &self.all[content as usize]
    }
}

/// A counter with a cache for long texts, which are counted for the measurement and for each policy.
pub(crate) struct CachingCounter<'c> {
    counter: &'c dyn Count,
    cache: Mutex<FxHashMap<u128, Tokens>>,
}

impl<'c> CachingCounter<'c> {
    pub(crate) fn new(counter: &'c dyn Count) -> CachingCounter<'c> {
        CachingCounter { counter, cache: Mutex::default() }
    }
}

impl Count for CachingCounter<'_> {
    fn count(&self, text: &str) -> Tokens {
        const LONG: usize = 64;
        if text.len() < LONG {
            return self.counter.count(text);
        }
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        *cache.entry(xxh3_128(text.as_bytes())).or_insert_with(|| self.counter.count(text))
    }

    fn frame(&self) -> FrameCosts {
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
