//! One client's conversation in one format: what it does to a transcript, and a view of that transcript in its words.

use std::borrow::Cow;
use std::ops::Range;

use fanfold_core::{EntryId, Item, Place, Transcript, View};
use serde_json::value::RawValue;

use crate::book::Book;
use crate::change::{Change, Repair};
use crate::content::Content;
use crate::dress::{Dress, same_system};
use crate::format::Format;
use crate::frame::{DecodeError, Frame, Shape};
use crate::incoming::{Incoming, Wearing};
use crate::memo::Memo;
use crate::outgoing::{self, Source};
use crate::resumed::{self, Known};
use crate::splice::Splices;
use crate::{anthropic, chat, json, responses};

/// A conversation as its client writes it. It keeps every message's JSON as it came.
///
/// Entries are numbered as its changes append them: the transcript of [`encode`](Self::encode) is the one that got
/// all of the changes, and nothing else. A message is read without its [`Dress`], so that the same is said whatever
/// its cache marks; what leaves has them as they came.
#[derive(Debug, Clone)]
pub struct Conversation {
    format: Format,
    frame: Frame,
    /// The body, then the messages that were appended later.
    text: String,
    n_body_bytes: usize,
    n_body_messages: usize,
    spans: Vec<Range<usize>>,
    dresses: Vec<Dress>,
    wearing: Wearing,
    book: Book,
    /// A tool that leaves with every body.
    added_tool: Option<String>,
}

impl Conversation {
    /// Decodes a request body, a bare list of messages, or one message per line. A body that is given away is not copied.
    pub fn decode(
        body: impl AsRef<str> + Into<String>,
        format: Option<Format>,
    ) -> Result<(Conversation, Vec<Change>), DecodeError> {
        Ok(Conversation::read(Incoming::open(body, format)?))
    }

    /// Decodes a body whose messages were found.
    pub fn read(incoming: Incoming) -> (Conversation, Vec<Change>) {
        let mut conversation = Conversation {
            format: incoming.format,
            frame: incoming.frame,
            n_body_bytes: incoming.text.len(),
            text: incoming.text,
            n_body_messages: incoming.spans.len(),
            spans: incoming.spans,
            dresses: Vec::new(),
            wearing: incoming.wearing,
            book: Book::default(),
            added_tool: None,
        };
        if let Some(system) = conversation.frame.system.clone() {
            let content = Content::read(conversation.text.get(system));
            if !content.text.is_empty() {
                conversation.book.outside(&content);
            }
        }
        let changes = conversation.read_from(0);
        (conversation, changes)
    }

    /// Finds the messages of a body that probably goes on with this one, by looking at what is new; none if it has to be
    /// read as any other.
    pub fn resume(&self, body: &str) -> Option<Incoming> {
        let is_a_body = self.n_body_messages == self.spans.len() && self.n_body_bytes == self.text.len();
        let known = Known { body: &self.text, frame: &self.frame, messages: &self.spans };
        let opened = resumed::open(body, self.format, &known).filter(|_| is_a_body)?;
        Some(Incoming::of(body, opened))
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
            dresses: Vec::new(),
            wearing: Wearing::SetApart,
            book: Book::default(),
            added_tool: None,
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
    /// Only what is new is decoded. What is held may be dressed otherwise: it leaves as it came last.
    pub fn continue_with(&mut self, body: &str) -> Result<Option<Vec<Change>>, DecodeError> {
        let incoming = Incoming::open(body, Some(self.format))?;
        Ok(self.go_on(incoming).ok())
    }

    /// The same with a body whose messages were found. One that does not go on with what is held comes back.
    pub fn go_on(&mut self, incoming: Incoming) -> Result<Vec<Change>, Box<Incoming>> {
        let n_held = self.spans.len();
        let is_alike = incoming.format == self.format
            && incoming.wearing == self.wearing
            && incoming.spans.len() >= n_held
            && same_system(incoming.system(), self.system());
        let Some(redressed) = (if is_alike { self.redressed(&incoming) } else { None }) else {
            return Err(Box::new(incoming));
        };
        for (i, dress) in redressed {
            self.dresses[i] = dress;
        }
        self.frame = incoming.frame;
        self.n_body_bytes = incoming.text.len();
        self.text = incoming.text;
        self.n_body_messages = incoming.spans.len();
        self.spans = incoming.spans;
        Ok(self.read_from(n_held))
    }

    /// The messages that are held and are written otherwise in a body, with their new dress; none if they say
    /// something else.
    fn redressed(&self, incoming: &Incoming) -> Option<Vec<(usize, Dress)>> {
        let mut redressed = Vec::new();
        for (i, (new, held)) in incoming.spans.iter().zip(&self.spans).enumerate() {
            let (new, held) = (&incoming.text[new.clone()], &self.text[held.clone()]);
            if new == held {
                continue;
            }
            let (plain, dress) = self.wearing.undress(self.format, new);
            if plain != self.wearing.undress(self.format, held).0 {
                return None;
            }
            redressed.push((i, dress));
        }
        Some(redressed)
    }

    /// How many of the messages held, from the first on, a body has, whatever their dress.
    pub fn n_common(&self, incoming: &Incoming) -> usize {
        let is_same = |(new, held): &(&Range<usize>, &Range<usize>)| {
            let (new, held) = (&incoming.text[(*new).clone()], &self.text[(*held).clone()]);
            new == held
                || self.wearing.undress(self.format, new).0 == self.wearing.undress(self.format, held).0
        };
        incoming.spans.iter().zip(&self.spans).take_while(is_same).count()
    }

    fn read_from(&mut self, first: usize) -> Vec<Change> {
        let mut plains = Vec::with_capacity(self.spans.len() - first);
        for span in &self.spans[first..] {
            let (plain, dress) = self.wearing.undress(self.format, &self.text[span.clone()]);
            plains.push(plain);
            self.dresses.push(dress);
        }
        match self.format {
            Format::Chat | Format::ShareGpt | Format::Hermes => {
                plains.iter().for_each(|plain| chat::decode(&mut self.book, self.format, plain));
            }
            Format::Responses => {
                let raws: Vec<&str> = plains.iter().map(|plain| &**plain).collect();
                responses::decode(&mut self.book, &raws);
            }
            Format::Anthropic => plains.iter().for_each(|plain| anthropic::decode(&mut self.book, plain)),
        }
        self.book.tell_unanswered();
        std::mem::take(&mut self.book.changes)
    }

    /// The messages from a number on, each as it is kept: without its dress.
    pub fn plain_messages(&self, from: usize) -> impl Iterator<Item = Cow<'_, str>> {
        let spans = self.spans.get(from..).unwrap_or_default();
        spans.iter().map(|span| self.wearing.undress(self.format, &self.text[span.clone()]).0)
    }

    /// How many bytes it holds.
    pub fn n_bytes(&self) -> usize {
        self.text.len()
    }

    /// How each message was dressed.
    pub fn dresses(&self) -> &[Dress] {
        &self.dresses
    }

    /// Has a tool leave with every body that has a place for it, beside the client's own.
    pub fn add_tool(&mut self, tool: Option<&str>) {
        self.added_tool = tool.map(str::to_owned);
    }

    /// Whether a tool was added, and leaves with this body.
    pub fn has_added_tool(&self) -> bool {
        self.tool_splice().is_some()
    }

    /// Where the added tool goes, and how it is written there.
    fn tool_splice(&self) -> Option<(usize, String)> {
        let tool = self.added_tool.as_deref()?;
        match &self.frame.tools_at {
            Some(place) if &self.text[place.clone()] == "null" => None,
            Some(place) => {
                let tools = json::array(&self.text[place.clone()])?;
                let comma = if tools.is_empty() { "" } else { "," };
                // In front: a cache breakpoint on the last tool stays on the last, and tools that come later move nothing.
                Some((place.start + 1, format!("{tool}{comma}")))
            }
            // Those who still send `functions` would not understand it.
            None if self.frame.tools.is_some() => None,
            None => self.frame.object.map(|start| (start + 1, format!("\"tools\":[{tool}],"))),
        }
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

    /// The body as it came, without what was appended since.
    pub fn body(&self) -> &str {
        &self.text[..self.n_body_bytes]
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
    /// A view that is untouched and whole gives back what came, byte for byte, with the tool that was added to it.
    pub fn encode(&self, transcript: &Transcript, view: &View) -> String {
        let body = self.body();
        let is_all_there = self.n_body_messages == self.spans.len() && self.n_body_bytes > 0;
        let mut splices = Splices::default();
        if let Some((at, tool)) = self.tool_splice() {
            splices.replace(at..at, tool);
        }
        if is_all_there && self.is_as_it_came(view) {
            return splices.apply(body);
        }
        let messages = self.encode_messages(transcript, view);
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
        let source = self.source(transcript);
        let sends = outgoing::sends(&source, view);
        let outs = match self.format {
            Format::Chat | Format::ShareGpt | Format::Hermes => chat::encode(&source, &sends),
            Format::Responses => responses::encode(&source, &sends),
            Format::Anthropic => anthropic::encode(&source, &sends, self.n_breakpoints_outside()),
        };
        outs.into_iter().map(|out| out.json).collect()
    }

    /// What is made of each message to send, in order: `came` of one that leaves as it came, by its number, `make` of the JSON
    /// of any other. Where a message is written from itself alone, as in chat, none is written that the memo knows.
    pub fn encode_with<T: Clone>(
        &self,
        transcript: &Transcript,
        view: &View,
        memo: &mut Memo<T>,
        came: impl Fn(usize) -> T,
        mut make: impl FnMut(&str) -> T,
    ) -> Vec<T> {
        if self.is_as_it_came(view) {
            return (0..self.spans.len()).map(came).collect();
        }
        match self.format {
            Format::Chat | Format::ShareGpt | Format::Hermes => {
                let source = self.source(transcript);
                chat::encode_with(&source, &outgoing::sends(&source, view), memo, came, make)
            }
            Format::Responses | Format::Anthropic => {
                self.encode_messages(transcript, view).iter().map(|message| make(message)).collect()
            }
        }
    }

    fn source<'a, 't>(&'a self, transcript: &'t Transcript) -> Source<'a, 't> {
        Source {
            format: self.format,
            text: &self.text,
            spans: &self.spans,
            book: &self.book,
            transcript,
            is_continued: self.frame.is_continued,
        }
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
