//! A body whose messages have been located: enough to find the conversation that it belongs to.

use std::borrow::Cow;
use std::ops::Range;

use super::cache_markers::{MessageStyle, strip_style};
use super::frame::{self, DecodeError, Frame, OpenedBody};
use crate::dialects::Format;
use crate::json;

/// A request body, or a list of messages.
#[derive(Debug, Clone)]
pub struct Incoming {
    pub(crate) text: String,
    pub(crate) format: Format,
    pub(crate) frame: Frame,
    pub(crate) spans: Vec<Range<usize>>,
    pub(crate) style_handling: StyleHandling,
}

/// How the style of messages is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StyleHandling {
    /// It is separated from the content.
    Separate,
    /// It is part of the content, as in older stores.
    Keep,
}

impl Incoming {
    /// Locates the messages of a request body, a bare list of messages, or one message per line.
    ///
    /// An owned body is not copied.
    pub fn open(
        body: impl AsRef<str> + Into<String>,
        format: Option<Format>,
    ) -> Result<Incoming, DecodeError> {
        let opened = frame::open(body.as_ref(), format)?;
        Ok(Incoming::new(body, opened))
    }

    pub(crate) fn new(body: impl Into<String>, opened: OpenedBody) -> Incoming {
        Incoming {
            text: body.into(),
            format: opened.format,
            frame: opened.frame,
            spans: opened.messages,
            style_handling: StyleHandling::Separate,
        }
    }

    /// The same body with style as part of the content, as in older stores.
    pub fn keep_style(self) -> Incoming {
        Incoming { style_handling: StyleHandling::Keep, ..self }
    }

    /// The body.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The number of messages.
    pub fn n_messages(&self) -> usize {
        self.spans.len()
    }

    /// A message, unchanged.
    pub fn message(&self, i: usize) -> Option<&str> {
        self.spans.get(i).map(|span| &self.text[span.clone()])
    }

    /// A message without style.
    pub fn plain(&self, i: usize) -> Option<Cow<'_, str>> {
        self.message(i).map(|raw| self.style_handling.strip(self.format, raw).0)
    }

    /// The JSON of the system text outside the list.
    pub fn system(&self) -> Option<&str> {
        self.text.get(self.frame.system.clone()?)
    }

    /// The model that the request names.
    pub fn model(&self) -> Option<&str> {
        self.frame.model.as_deref()
    }

    /// Returns whether the request has tools.
    pub fn has_tools(&self) -> bool {
        let tools = self.frame.tools_value.clone().and_then(|span| json::array(self.text.get(span)?));
        tools.is_some_and(|tools| !tools.is_empty())
    }

    /// Returns whether the provider stores the beginning of the conversation, so that the list only continues it.
    pub fn is_continued(&self) -> bool {
        self.frame.is_continued
    }
}

impl StyleHandling {
    pub(crate) fn strip(self, format: Format, raw: &str) -> (Cow<'_, str>, MessageStyle) {
        match self {
            StyleHandling::Separate => strip_style(format, raw),
            StyleHandling::Keep => (Cow::Borrowed(raw), MessageStyle::default()),
        }
    }
}
