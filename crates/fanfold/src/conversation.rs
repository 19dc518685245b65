//! One conversation in memory.

use fanfold_core::{Event, Extent, View, ViewError};
use fanfold_engine::{FoldOptions, FoldedConversation, decode};
use serde_json::value::RawValue;

use crate::{Error, Options};

/// A conversation in memory, to which messages are appended one by one.
///
/// ```
/// # fn main() -> Result<(), fanfold::Error> {
/// use fanfold::{Conversation, Options};
///
/// let options = Options { window: Some(8_000), ..Options::default() };
/// let mut conversation = Conversation::new(r#"[{"role":"user","content":"hello"}]"#, &options)?;
/// conversation.append(r#"{"role":"assistant","content":"hi"}"#)?;
/// conversation.append(r#"{"role":"user","content":"how are you?"}"#)?;
/// let view = conversation.view()?;
/// assert!(view.body.contains("how are you?") && view.handles.is_empty());
/// # Ok(())
/// # }
/// ```
pub struct Conversation {
    followed: FoldedConversation,
}

/// A conversation as it should be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// The body to send, in the format of the original.
    pub body: String,
    /// Its size in tokens.
    pub tokens: u64,
    /// The size of the original in tokens.
    pub tokens_before: u64,
    /// The number of folds in the conversation.
    pub n_folds: usize,
    /// The handles in the body; each recalls an original.
    pub handles: Vec<String>,
}

impl Folded {
    pub(crate) fn new(followed: &FoldedConversation, view: &View, body: String) -> Folded {
        let status = followed.session.status();
        Folded {
            body,
            tokens: view.tokens.0,
            tokens_before: status.transcript.0,
            n_folds: status.n_folds,
            handles: view.handles.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Conversation {
    /// Reads the body of a request, or a list of messages.
    pub fn new(body: &str, options: &Options) -> Result<Conversation, Error> {
        let (conversation, changes) =
            decode(body, None).map_err(|error| Error::InvalidBody(error.to_string()))?;
        let terms = options.terms(conversation.model())?;
        let followed = FoldedConversation::from_body(conversation, changes, &terms, &FoldOptions::default());
        Ok(Conversation { followed })
    }

    /// Appends a message, as JSON in the format of the conversation.
    pub fn append(&mut self, message: &str) -> Result<(), Error> {
        let message: &RawValue =
            serde_json::from_str(message).map_err(|error| Error::InvalidBody(error.to_string()))?;
        self.followed.append(&[message]);
        Ok(())
    }

    /// Sets a topic that gets more space in later folds. An empty topic removes it.
    pub fn focus(&mut self, topic: &str) {
        self.followed.session.apply(Event::Focused(topic.to_owned()));
    }

    /// Returns the conversation as it should be sent now. Folds it if a fold is due.
    pub fn view(&mut self) -> Result<Folded, Error> {
        let view = self.followed.view().map_err(|refusal| match refusal {
            ViewError::Overflow(overflow) => Error::Overflow {
                smallest: overflow.smallest.0,
                room: overflow.room.0,
                remedy: overflow.remedy,
            },
            ViewError::Fault(fault) => Error::NotFolded(fault.to_string()),
        })?;
        Ok(Folded::new(&self.followed, &view, self.followed.encode(&view)))
    }

    /// The original behind a handle.
    pub fn recall(&self, handle: &str) -> Result<String, Error> {
        let unknown = || Error::UnknownHandle(handle.to_owned());
        let parsed = handle.parse().map_err(|_| unknown())?;
        self.followed.session.recall(parsed, &Extent::Whole).map_err(|_| unknown())
    }
}
