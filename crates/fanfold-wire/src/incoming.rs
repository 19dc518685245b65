//! A body whose messages have been found, and nothing else: enough to tell which conversation it belongs to.

use std::borrow::Cow;
use std::ops::Range;

use crate::dress::{Dress, undress};
use crate::format::Format;
use crate::frame::{self, DecodeError, Frame, Opened};

/// A body that came in.
#[derive(Debug, Clone)]
pub struct Incoming {
    pub(crate) text: String,
    pub(crate) format: Format,
    pub(crate) frame: Frame,
    pub(crate) spans: Vec<Range<usize>>,
    pub(crate) wearing: Wearing,
}

/// Whether a message is what it says, or every byte of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wearing {
    /// Cache marks, and the way a single text is written, are set apart.
    SetApart,
    /// Everything belongs to the message, as it did in older stores.
    Belongs,
}

impl Incoming {
    /// Finds the messages of a request body, a bare list of messages, or one message per line.
    ///
    /// A body that is given away is not copied.
    pub fn open(
        body: impl AsRef<str> + Into<String>,
        format: Option<Format>,
    ) -> Result<Incoming, DecodeError> {
        let opened = frame::open(body.as_ref(), format)?;
        Ok(Incoming::of(body, opened))
    }

    pub(crate) fn of(body: impl Into<String>, opened: Opened) -> Incoming {
        Incoming {
            text: body.into(),
            format: opened.format,
            frame: opened.frame,
            spans: opened.messages,
            wearing: Wearing::SetApart,
        }
    }

    /// The same with every byte of a message taken as what it says, as older stores have them.
    pub fn as_it_came(self) -> Incoming {
        Incoming { wearing: Wearing::Belongs, ..self }
    }

    /// The body.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How many messages it has.
    pub fn n_messages(&self) -> usize {
        self.spans.len()
    }

    /// A message as it came.
    pub fn message(&self, i: usize) -> Option<&str> {
        self.spans.get(i).map(|span| &self.text[span.clone()])
    }

    /// A message without its dress.
    pub fn plain(&self, i: usize) -> Option<Cow<'_, str>> {
        self.message(i).map(|raw| self.wearing.undress(self.format, raw).0)
    }

    /// The JSON of the system text that stands beside the list.
    pub fn system(&self) -> Option<&str> {
        self.text.get(self.frame.system.clone()?)
    }

    /// Whether the provider holds the beginning of the conversation, and the list only goes on with it.
    pub fn is_continued(&self) -> bool {
        self.frame.is_continued
    }
}

impl Wearing {
    pub(crate) fn undress(self, format: Format, raw: &str) -> (Cow<'_, str>, Dress) {
        match self {
            Wearing::SetApart => undress(format, raw),
            Wearing::Belongs => (Cow::Borrowed(raw), Dress::default()),
        }
    }
}
