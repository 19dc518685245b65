//! A client's conversation in one format: its changes to a transcript, and views of that transcript in its format.

pub(crate) mod change;
pub(crate) mod entry_map;
mod memo;
pub(crate) mod outgoing;
pub(crate) mod pairing;

use std::borrow::Cow;
use std::ops::Range;

use fanfold_core::{EntryId, Item, Place, Transcript, View, Voice};
use serde_json::value::RawValue;

pub use self::memo::Memo;

use self::change::{Change, Repair};
use self::entry_map::EntryMap;
use self::memo::Encoded;
use self::outgoing::{EncodeSource, OPENING, SendItem};
use crate::body::frame::{Frame, ListShape};
use crate::body::resume::{self, HeldBody};
use crate::body::{DecodeError, Incoming, MessageStyle, StyleHandling, same_system};
use crate::content::Content;
use crate::dialects::{Format, MessageEncoder};
use crate::json::{self, Splices};

/// A conversation as its client wrote it, with the unchanged JSON of every message.
///
/// Entries are numbered as its changes append them: the transcript passed to [`encode`](Self::encode) must have all of
/// the changes, and no others. Messages are decoded without their [`MessageStyle`] and sent with it.
#[derive(Debug, Clone)]
pub struct Conversation {
    format: Format,
    frame: Frame,
    /// The body, then the messages that were appended later.
    text: String,
    n_body_bytes: usize,
    n_body_messages: usize,
    spans: Vec<Range<usize>>,
    styles: Vec<MessageStyle>,
    style_handling: StyleHandling,
    map: EntryMap,
    /// A tool that is added to every body.
    added_tool: Option<String>,
}

impl Conversation {
    /// Decodes a request body, a bare list of messages, or one message per line. An owned body is not
    /// copied.
    pub fn decode(
        body: impl AsRef<str> + Into<String>,
        format: Option<Format>,
    ) -> Result<(Conversation, Vec<Change>), DecodeError> {
        Ok(Conversation::read(Incoming::open(body, format)?))
    }

    /// Decodes a body whose messages have been located.
    pub fn read(incoming: Incoming) -> (Conversation, Vec<Change>) {
        let mut conversation = Conversation {
            format: incoming.format,
            frame: incoming.frame,
            n_body_bytes: incoming.text.len(),
            text: incoming.text,
            n_body_messages: incoming.spans.len(),
            spans: incoming.spans,
            styles: Vec::new(),
            style_handling: incoming.style_handling,
            map: EntryMap::default(),
            added_tool: None,
        };
        if let Some(system) = conversation.frame.system.clone() {
            let content = Content::read(conversation.text.get(system));
            if !content.text.is_empty() {
                conversation.map.add_outside_system(&content);
            }
        }
        let changes = conversation.read_from(0);
        (conversation, changes)
    }

    /// Locates the messages of a body that extends this one, parsing only the new part; `None` if the whole body
    /// must be parsed.
    pub fn resume(&self, body: &str) -> Option<Incoming> {
        let is_a_body = self.n_body_messages == self.spans.len() && self.n_body_bytes == self.text.len();
        let held = HeldBody { body: &self.text, frame: &self.frame, messages: &self.spans };
        let opened = resume::open(body, self.format, &held).filter(|_| is_a_body)?;
        Some(Incoming::new(body, opened))
    }

    /// An empty conversation, for a client that sends messages one by one.
    pub fn empty(format: Format) -> Conversation {
        Conversation {
            format,
            frame: Frame::bare(),
            text: String::new(),
            n_body_bytes: 0,
            n_body_messages: 0,
            spans: Vec::new(),
            styles: Vec::new(),
            style_handling: StyleHandling::Separate,
            map: EntryMap::default(),
            added_tool: None,
        }
    }

    /// Decodes messages after those held. The cost is that of the new messages.
    ///
    /// Items of a Responses reply make one step only if they are appended together.
    pub fn append(&mut self, messages: &[&RawValue]) -> Vec<Change> {
        let first = self.spans.len();
        for message in messages {
            let start = self.text.len();
            self.text.push_str(message.get());
            self.spans.push(start..self.text.len());
        }
        self.read_from(first)
    }

    /// Replaces the body by the client's next one. Returns a body that does not extend this conversation, unchanged.
    ///
    /// Only new messages are decoded. The style of messages may differ: the newest is sent.
    pub fn continue_from(&mut self, incoming: Incoming) -> Result<Vec<Change>, Box<Incoming>> {
        let n_held = self.spans.len();
        let is_alike = incoming.format == self.format
            && incoming.style_handling == self.style_handling
            && incoming.spans.len() >= n_held
            && same_system(incoming.system(), self.system());
        let Some(restyled) = (if is_alike { self.restyled(&incoming) } else { None }) else {
            return Err(Box::new(incoming));
        };
        for (i, style) in restyled {
            self.styles[i] = style;
        }
        self.frame = incoming.frame;
        self.n_body_bytes = incoming.text.len();
        self.text = incoming.text;
        self.n_body_messages = incoming.spans.len();
        self.spans = incoming.spans;
        Ok(self.read_from(n_held))
    }

    /// The held messages whose style differs in a body, with their new style; `None` if their content differs.
    fn restyled(&self, incoming: &Incoming) -> Option<Vec<(usize, MessageStyle)>> {
        let mut restyled = Vec::new();
        for (i, (new, held)) in incoming.spans.iter().zip(&self.spans).enumerate() {
            let (new, held) = (&incoming.text[new.clone()], &self.text[held.clone()]);
            if new == held {
                continue;
            }
            let (plain, style) = self.style_handling.strip(self.format, new);
            if plain != self.style_handling.strip(self.format, held).0 {
                return None;
            }
            restyled.push((i, style));
        }
        Some(restyled)
    }

    /// The number of held messages that a body begins with, in any style.
    pub fn n_common(&self, incoming: &Incoming) -> usize {
        let is_same = |(new, held): &(&Range<usize>, &Range<usize>)| {
            let (new, held) = (&incoming.text[(*new).clone()], &self.text[(*held).clone()]);
            let strip = |raw| self.style_handling.strip(self.format, raw).0;
            new == held || strip(new) == strip(held)
        };
        incoming.spans.iter().zip(&self.spans).take_while(is_same).count()
    }

    fn read_from(&mut self, first: usize) -> Vec<Change> {
        let mut plains = Vec::with_capacity(self.spans.len() - first);
        for span in &self.spans[first..] {
            let (plain, style) = self.style_handling.strip(self.format, &self.text[span.clone()]);
            plains.push(plain);
            self.styles.push(style);
        }
        let plains: Vec<&str> = plains.iter().map(|plain| &**plain).collect();
        self.format.dialect().decode(&mut self.map, &plains);
        self.map.report_unanswered();
        std::mem::take(&mut self.map.changes)
    }

    /// The messages from a position on, without style.
    pub fn plain_messages(&self, from: usize) -> impl Iterator<Item = Cow<'_, str>> {
        let spans = self.spans.get(from..).unwrap_or_default();
        spans.iter().map(|span| self.style_handling.strip(self.format, &self.text[span.clone()]).0)
    }

    /// The size in bytes.
    pub fn n_bytes(&self) -> usize {
        self.text.len()
    }

    /// The style of each message.
    pub fn styles(&self) -> &[MessageStyle] {
        &self.styles
    }

    /// Adds a tool to every encoded body that has a place for it.
    pub fn add_tool(&mut self, tool: Option<&str>) {
        self.added_tool = tool.map(str::to_owned);
    }

    /// Returns whether a tool is added to this body.
    pub fn has_added_tool(&self) -> bool {
        self.tool_splice().is_some()
    }

    /// The position of the added tool, and its JSON there.
    fn tool_splice(&self) -> Option<(usize, String)> {
        let tool = self.added_tool.as_deref()?;
        match &self.frame.tools_value {
            Some(value) if &self.text[value.clone()] == "null" => None,
            Some(value) => {
                let tools = json::array(&self.text[value.clone()])?;
                let comma = if tools.is_empty() { "" } else { "," };
                // First, so that a cache marker on the last tool stays there, and later tools move nothing.
                Some((value.start + 1, format!("{tool}{comma}")))
            }
            // Clients that send the older `functions` do not know tools.
            None if self.frame.tools.is_some() => None,
            None => self.frame.object.map(|start| (start + 1, format!("\"tools\":[{tool}],"))),
        }
    }

    /// The number of messages, from the first, that equal the held ones byte for byte.
    pub fn common_prefix(&self, messages: &[&RawValue]) -> usize {
        self.messages().zip(messages).take_while(|(held, new)| *held == new.get()).count()
    }

    /// The held messages, unchanged.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = &str> {
        self.spans.iter().map(|span| &self.text[span.clone()])
    }

    /// The ranges of the messages in their body.
    ///
    /// Messages that were appended one by one follow the body.
    pub fn spans(&self) -> &[Range<usize>] {
        &self.spans
    }

    /// The JSON of the system text outside the list.
    pub fn system(&self) -> Option<&str> {
        self.text.get(self.frame.system.clone()?)
    }

    /// The ranges of the tool schemas and of the system text in the body.
    pub fn ranges_outside_list(&self) -> [Option<Range<usize>>; 2] {
        [self.frame.tools.clone(), self.frame.system.clone()]
    }

    /// Returns whether the provider stores the beginning of the conversation, so that the list only continues it.
    pub fn is_continued(&self) -> bool {
        self.frame.is_continued
    }

    /// The original body, without messages appended since.
    pub fn body(&self) -> &str {
        &self.text[..self.n_body_bytes]
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The JSON of the tool schemas.
    pub fn tools(&self) -> Option<&str> {
        self.text.get(self.frame.tools.clone()?)
    }

    /// The model named by the request.
    pub fn model(&self) -> Option<&str> {
        self.frame.model.as_deref()
    }

    /// The output tokens that the request allows.
    pub fn max_output(&self) -> Option<u64> {
        self.frame.max_output
    }

    /// The oddities of the messages.
    pub fn repairs(&self) -> &[Repair] {
        &self.map.repairs
    }

    /// A view in the client's format: a whole body if one was decoded, or else a list.
    ///
    /// A complete view without folds gives the original body byte for byte, with the added tool.
    pub fn encode(&self, transcript: &Transcript, view: &View) -> String {
        let body = self.body();
        let is_one_body = self.n_body_messages == self.spans.len() && self.n_body_bytes > 0;
        let mut splices = Splices::default();
        if let Some((at, tool)) = self.tool_splice() {
            splices.replace(at..at, tool);
        }
        if is_one_body && self.is_unchanged(view) {
            return splices.apply(body);
        }
        // A byte order mark is no JSON, and providers may refuse it.
        let n_mark = if body.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        splices.replace(0..n_mark, "");
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
        if self.is_unchanged(view) {
            return self.messages().map(Cow::Borrowed).collect();
        }
        let source = self.source(transcript);
        let items_to_send = outgoing::items_to_send(&source, view);
        let messages = self.format.dialect().encode(&source, &items_to_send, self.n_markers_outside());
        messages.into_iter().map(|message| message.json).collect()
    }

    /// Derives a value from each message to send, in order: `unchanged` from the position of an original message, and
    /// `derive` from the JSON of any other. Messages in the memo are not encoded again, if the dialect encodes each
    /// message by itself.
    pub fn encode_with<T: Clone>(
        &self,
        transcript: &Transcript,
        view: &View,
        memo: &mut Memo<T>,
        unchanged: impl Fn(usize) -> T,
        mut derive: impl FnMut(&str) -> T,
    ) -> Vec<T> {
        if self.is_unchanged(view) {
            return (0..self.spans.len()).map(unchanged).collect();
        }
        let Some(encoder) = self.format.dialect().message_encoder() else {
            return self.encode_messages(transcript, view).iter().map(|message| derive(message)).collect();
        };
        self.encode_each(transcript, view, encoder, memo, unchanged, derive)
    }

    fn encode_each<T: Clone>(
        &self,
        transcript: &Transcript,
        view: &View,
        encoder: MessageEncoder,
        memo: &mut Memo<T>,
        unchanged: impl Fn(usize) -> T,
        mut derive: impl FnMut(&str) -> T,
    ) -> Vec<T> {
        let source = self.source(transcript);
        let mut encode = |item: &SendItem<'_>| {
            memo.get_or_insert_with(item, || {
                let message = encoder(&source, item)?;
                Some(Encoded { role: message.role, value: derive(&message.json) })
            })
        };
        let mut messages: Vec<Encoded<T>> = Vec::new();
        for item in &outgoing::items_to_send(&source, view) {
            match item {
                SendItem::Group { message, is_raw: true, .. } => {
                    messages.push(Encoded { role: source.role(*message), value: unchanged(*message) });
                }
                _ => messages.extend(encode(item)),
            }
        }
        if let Some(first) = outgoing::opening_position(messages.iter().map(|message| message.role)) {
            let opening = encode(&SendItem::Note { text: OPENING, voice: Voice::Fanfold });
            messages.splice(first..first, opening);
        }
        messages.into_iter().map(|message| message.value).collect()
    }

    fn source<'a, 't>(&'a self, transcript: &'t Transcript) -> EncodeSource<'a, 't> {
        EncodeSource {
            text: &self.text,
            spans: &self.spans,
            map: &self.map,
            transcript,
            is_continued: self.frame.is_continued,
        }
    }

    /// Returns whether the view has every entry in order, without edits.
    fn is_unchanged(&self, view: &View) -> bool {
        let is_whole =
            |(i, item): (usize, &Item)| matches!(item, Item::Whole(entry) if *entry == EntryId::from(i));
        view.items.len() == self.map.anchors.len() && view.items.iter().enumerate().all(is_whole)
    }

    fn list(&self, messages: &[Cow<'_, str>]) -> String {
        let joined = messages.join(&self.frame.separator);
        let is_text =
            self.frame.shape == ListShape::Text && messages.len() == 1 && messages[0].starts_with('"');
        if self.frame.shape == ListShape::Lines || is_text {
            return joined;
        }
        let list = self.frame.list.clone();
        let spans = &self.spans[..self.n_body_messages];
        let is_spaced = self.frame.shape == ListShape::List && !messages.is_empty();
        match (spans.first(), spans.last()) {
            (Some(first), Some(last)) if is_spaced => {
                [&self.text[list.start..first.start], &joined, &self.text[last.end..list.end]].concat()
            }
            _ => format!("[{joined}]"),
        }
    }

    fn system_stub<'v>(&self, view: &'v View) -> Option<&'v str> {
        let is_outside =
            |entry: EntryId| self.map.anchors.get(entry.index()).is_some_and(|a| a.portions.is_empty());
        view.items.iter().find_map(|item| match item {
            Item::Edited(entry, edits) if is_outside(*entry) => {
                edits.iter().find(|edit| edit.place == Place::Text(*entry)).map(|edit| &*edit.stub)
            }
            _ => None,
        })
    }

    fn n_markers_outside(&self) -> usize {
        let body = &self.text[..self.n_body_bytes];
        let list = self.frame.list.clone();
        let count = |text: &str| text.matches("\"cache_control\"").count();
        count(&body[..list.start]) + count(&body[list.end..])
    }
}
