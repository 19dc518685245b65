//! One client's conversation in one format: what it does to a transcript, and a view of that transcript in its words.

use std::borrow::Cow;
use std::ops::Range;

use fanfold_core::{EntryId, Item, Place, Transcript, View};
use serde_json::value::RawValue;

use crate::book::Book;
use crate::change::{Change, Repair};
use crate::content::Content;
use crate::format::Format;
use crate::frame::{self, DecodeError, Frame, Shape};
use crate::outgoing::{self, Source};
use crate::splice::Splices;
use crate::{anthropic, chat, json, responses};

/// A conversation as its client writes it. It keeps every message's JSON as it came.
///
/// Entries are numbered as its changes append them: the transcript of [`encode`](Self::encode) is the one that got
/// all of the changes, and nothing else.
#[derive(Debug, Clone)]
pub struct Conversation {
    format: Format,
    frame: Frame,
    /// The body, then the messages that were appended later.
    text: String,
    n_body_bytes: usize,
    n_body_messages: usize,
    spans: Vec<Range<usize>>,
    book: Book,
}

impl Conversation {
    /// Decodes a request body, a bare list of messages, or one message per line.
    pub fn decode(body: &str, format: Option<Format>) -> Result<(Conversation, Vec<Change>), DecodeError> {
        let opened = frame::open(body, format)?;
        let mut conversation = Conversation {
            format: opened.format,
            frame: opened.frame,
            text: body.to_owned(),
            n_body_bytes: body.len(),
            n_body_messages: opened.messages.len(),
            spans: opened.messages,
            book: Book::default(),
        };
        if let Some(system) = conversation.frame.system.clone() {
            let content = Content::read(body.get(system));
            if !content.text.is_empty() {
                conversation.book.outside(&content);
            }
        }
        let changes = conversation.read_from(0);
        Ok((conversation, changes))
    }

    /// A conversation without messages yet, for a client that sends them one by one.
    pub fn of_messages(format: Format) -> Conversation {
        Conversation {
            format,
            frame: Frame::bare(),
            text: String::new(),
            n_body_bytes: 0,
            n_body_messages: 0,
            spans: Vec::new(),
            book: Book::default(),
        }
    }

    /// Decodes messages that came after those held. The cost is that of the new messages.
    ///
    /// Items of a Responses reply make one step only if they arrive together.
    pub fn append(&mut self, messages: &[&RawValue]) -> Vec<Change> {
        let first = self.spans.len();
        for message in messages {
            let start = self.text.len();
            self.text.push_str(message.get());
            self.spans.push(start..self.text.len());
        }
        self.read_from(first)
    }

    /// Takes the client's next body, if it says all that is held and then more; else none, and nothing changes.
    ///
    /// Only what is new is decoded.
    pub fn continue_with(&mut self, body: &str) -> Result<Option<Vec<Change>>, DecodeError> {
        let opened = frame::open(body, Some(self.format))?;
        let n_held = self.spans.len();
        let system = |text: &str, frame: &Frame| {
            frame.system.clone().and_then(|place| text.get(place).map(str::to_owned))
        };
        let is_longer = opened.messages.len() >= n_held
            && system(body, &opened.frame) == system(&self.text, &self.frame)
            && opened.messages.iter().zip(self.messages()).all(|(new, held)| &body[new.clone()] == held);
        if !is_longer {
            return Ok(None);
        }
        self.frame = opened.frame;
        self.text = body.to_owned();
        self.n_body_bytes = body.len();
        self.n_body_messages = opened.messages.len();
        self.spans = opened.messages;
        Ok(Some(self.read_from(n_held)))
    }

    fn read_from(&mut self, first: usize) -> Vec<Change> {
        let raws: Vec<&str> = self.spans[first..].iter().map(|span| &self.text[span.clone()]).collect();
        match self.format {
            Format::Chat | Format::ShareGpt | Format::Hermes => {
                raws.iter().for_each(|raw| chat::decode(&mut self.book, self.format, raw));
            }
            Format::Responses => responses::decode(&mut self.book, &raws),
            Format::Anthropic => raws.iter().for_each(|raw| anthropic::decode(&mut self.book, raw)),
        }
        std::mem::take(&mut self.book.changes)
    }

    /// How many of the messages, from the first on, are byte for byte those held.
    pub fn common_prefix(&self, messages: &[&RawValue]) -> usize {
        self.messages().zip(messages).take_while(|(held, new)| *held == new.get()).count()
    }

    /// The messages held, as they came.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = &str> {
        self.spans.iter().map(|span| &self.text[span.clone()])
    }

    /// Where each message stands in the body it came in.
    ///
    /// Messages that were appended one by one stand behind the body.
    pub fn spans(&self) -> &[Range<usize>] {
        &self.spans
    }

    /// The JSON of the system text that stands beside the list.
    pub fn system(&self) -> Option<&str> {
        self.text.get(self.frame.system.clone()?)
    }

    /// Where the tool schemas and the system text stand in the body, if they do.
    pub fn beside(&self) -> [Option<Range<usize>>; 2] {
        [self.frame.tools.clone(), self.frame.system.clone()]
    }

    /// Whether the provider holds the beginning of the conversation, and the list only goes on with it.
    pub fn is_continued(&self) -> bool {
        self.frame.is_continued
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The JSON of the tool schemas, which travel with every request.
    pub fn tools(&self) -> Option<&str> {
        self.text.get(self.frame.tools.clone()?)
    }

    /// The model that the request names.
    pub fn model(&self) -> Option<&str> {
        self.frame.model.as_deref()
    }

    /// How long an answer the request allows, in tokens.
    pub fn max_output(&self) -> Option<u64> {
        self.frame.max_output
    }

    /// What was odd on arrival, and how it is treated.
    pub fn repairs(&self) -> &[Repair] {
        &self.book.repairs
    }

    /// A view in the client's format: a whole body where one came, else a list.
    ///
    /// A view that is untouched and whole gives back what came, byte for byte.
    pub fn encode(&self, transcript: &Transcript, view: &View) -> String {
        let body = &self.text[..self.n_body_bytes];
        let is_all_there = self.n_body_messages == self.spans.len() && self.n_body_bytes > 0;
        if is_all_there && self.is_as_it_came(view) {
            return body.to_owned();
        }
        let messages = self.encode_messages(transcript, view);
        let mut splices = Splices::default();
        splices.replace(self.frame.list.clone(), self.list(&messages));
        if let Some(count) = &self.frame.count {
            splices.replace(count.clone(), messages.len().to_string());
        }
        if let (Some(system), Some(stub)) = (&self.frame.system, self.system_stub(view)) {
            splices.replace(system.clone(), json::quote(stub));
        }
        splices.apply(body)
    }

    /// The JSON of each message to send.
    pub fn encode_messages(&self, transcript: &Transcript, view: &View) -> Vec<Cow<'_, str>> {
        if self.is_as_it_came(view) {
            return self.messages().map(Cow::Borrowed).collect();
        }
        let source = Source {
            format: self.format,
            text: &self.text,
            spans: &self.spans,
            book: &self.book,
            transcript,
            is_continued: self.frame.is_continued,
        };
        let sends = outgoing::sends(&source, view);
        let outs = match self.format {
            Format::Chat | Format::ShareGpt | Format::Hermes => chat::encode(&source, &sends),
            Format::Responses => responses::encode(&source, &sends),
            Format::Anthropic => anthropic::encode(&source, &sends, self.n_breakpoints_outside()),
        };
        outs.into_iter().map(|out| out.json).collect()
    }

    /// Whether the view has every entry, in order, as it came.
    fn is_as_it_came(&self, view: &View) -> bool {
        let is_whole =
            |(i, item): (usize, &Item)| matches!(item, Item::Whole(entry) if *entry == EntryId::from(i));
        view.items.len() == self.book.anchors.len() && view.items.iter().enumerate().all(is_whole)
    }

    fn list(&self, messages: &[Cow<'_, str>]) -> String {
        let joined = messages.join(&self.frame.separator);
        let is_lone = self.frame.shape == Shape::Lone && messages.len() == 1 && messages[0].starts_with('"');
        if self.frame.shape == Shape::Lines || is_lone {
            return joined;
        }
        let list = self.frame.list.clone();
        let spans = &self.spans[..self.n_body_messages];
        let is_spaced = self.frame.shape == Shape::List && !messages.is_empty();
        match (spans.first(), spans.last()) {
            (Some(first), Some(last)) if is_spaced => {
                [&self.text[list.start..first.start], &joined, &self.text[last.end..list.end]].concat()
            }
            _ => format!("[{joined}]"),
        }
    }

    fn system_stub<'v>(&self, view: &'v View) -> Option<&'v str> {
        let is_outside =
            |entry: EntryId| self.book.anchors.get(entry.index()).is_some_and(|a| a.portions.is_empty());
        view.items.iter().find_map(|item| match item {
            Item::Edited(entry, edits) if is_outside(*entry) => {
                edits.iter().find(|edit| edit.place == Place::Text(*entry)).map(|edit| &*edit.stub)
            }
            _ => None,
        })
    }

    fn n_breakpoints_outside(&self) -> usize {
        let body = &self.text[..self.n_body_bytes];
        let list = self.frame.list.clone();
        let count = |text: &str| text.matches("\"cache_control\"").count();
        count(&body[..list.start]) + count(&body[list.end..])
    }
}
