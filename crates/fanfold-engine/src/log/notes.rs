//! What happens to a session, as the store's events hold it.
//!
//! The store keeps a kind and some JSON; here they get their meaning. An event of a kind that is not known was written
//! by a newer fanfold and is left alone.

use fanfold_store::{EventRow, Millis, NewEvent, NodeId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::follow::recall_offer::Offer;
use crate::log::message_styles::Dresses;
use crate::request::body_edits::BodyEdits;
use crate::summary_jobs::Backoff;

/// Something that happened to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Note {
    /// From here on it is folded by these terms, from the first message on.
    Began(Began),
    /// Another window, or another reserve.
    Budget {
        /// The window, in tokens.
        window: u64,
        /// What of it is kept for the answer.
        reserve: u64,
    },
    /// The provider refused a request for its length.
    Refused {
        /// What it takes at most, if it said so.
        limit: Option<u64>,
    },
    /// The provider counts otherwise than fanfold does.
    Corrected {
        /// So many of its tokens are a thousand of ours.
        permille: u32,
        /// Whether that holds for what it refused, too; else from the next message on, so that a body that is sent
        /// again is sent as it was.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        at_once: bool,
    },
    /// The provider has forgotten what was sent.
    Cooled {
        /// Whether that holds from the next message on, because it was told by an answer: others may have left
        /// meanwhile, and a body that is sent again is sent as it was.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        later: bool,
    },
    /// The model recalled originals beside calls of its client's, which was not shown that.
    Beside(Beside),
    /// How the model may open folds, for the life of the session.
    Offered(Offer),
    /// A message that must not be folded.
    Pinned {
        /// Its number, from 0.
        message: u32,
    },
    /// A message that may be folded again.
    Unpinned {
        /// Its number, from 0.
        message: u32,
    },
    /// A topic of which more is kept; empty ends it.
    Focused {
        /// The topic.
        topic: String,
    },
    /// A person wanted a fold: of these messages, or of whatever is old.
    FoldAsked {
        /// The first message.
        from: Option<u32>,
        /// The last one.
        to: Option<u32>,
    },
    /// A person wanted the originals behind a handle back.
    Unfolded {
        /// The handle.
        handle: String,
    },
    /// A model wrote a summary of what was said so far.
    Summarised(Summarised),
    /// A model that was asked for a summary gave none, and is left alone for a while.
    Rested {
        /// Which model, and where.
        who: String,
        /// For how long, and why.
        rest: Backoff,
    },
    /// A summary was asked for, and not all went well.
    Tried {
        /// Which model wrote it in the end; none, if none did.
        by: Option<String>,
        /// Why each of those asked before it did not, in a word.
        missed: Vec<String>,
        /// What was wrong with answers.
        flaws: Vec<String>,
    },
    /// Something was folded.
    Fold(FoldMade),
    /// A request left.
    Request(Sent),
    /// A body came and left as it was, because something of ours did not work: how it was written.
    Came {
        /// The blob with what stood around the messages.
        frame: String,
        /// How the messages were dressed.
        #[serde(default, skip_serializing_if = "Dresses::is_plain")]
        dress: Dresses,
        /// Whether nothing fitted: then the window that it was asked for holds for nothing else.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        overflow: bool,
    },
    /// A place to come back to.
    Checkpoint {
        /// What people call it.
        name: String,
        /// Whether fanfold made it by itself, before a fold.
        #[serde(default)]
        auto: bool,
        /// The message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tip: Option<String>,
    },
    /// The session points at another message than before.
    Moved(Moved),
    /// It came from another session and goes on with what happened there.
    Forked {
        /// The other session.
        from: String,
        /// So many of its events came before.
        n_events: u32,
    },
    /// What happened in the session that it came from, which is no more.
    Inherited {
        /// The events, oldest first.
        events: Vec<Kept>,
    },
    /// It was brought here from elsewhere.
    Imported {
        /// From where.
        from: String,
        /// The blob with what stood around the messages, if anything did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frame: Option<String>,
        /// How the messages were dressed.
        #[serde(default, skip_serializing_if = "Dresses::is_plain")]
        dress: Dresses,
    },
}

/// From here on a session is folded by these terms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Began {
    /// The blob with the terms' description.
    pub terms: String,
    /// The window, in tokens.
    pub window: u64,
    /// What of it is kept for the answer.
    pub reserve: u64,
    /// The format of the messages.
    pub format: String,
    /// The blob with what stands around the messages.
    pub frame: String,
}

/// What a model wrote about the beginning of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summarised {
    /// Its sections.
    pub text: String,
    /// The last message that it tells of, by its number from 0.
    pub upto: u32,
    /// The day on which it was written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub day: String,
    /// The model that wrote it, and where.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Whether it holds for the newest message, too; else from the next one on, so that a body that is sent again is
    /// sent as it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_once: bool,
}

/// A fold, with all that is needed to open it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoldMade {
    /// The last message at that moment.
    pub tip: String,
    /// The blob with what stood around the messages.
    pub frame: String,
    /// The format of the messages.
    pub format: String,
    /// How many folds the session has had.
    pub n_folds: usize,
    /// What the view cost before and after, in tokens.
    pub tokens: (u64, u64),
    /// The messages that are not in the view as they came: first and last of each run.
    pub folded: Vec<(u32, u32)>,
    /// Each new handle: its digits, what it opens, and the beginning of the hash of that.
    pub handles: Vec<(String, Value, String)>,
}

/// A request that left, with all that is needed to make its bytes again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// The last message.
    pub tip: Option<String>,
    /// The number of the first message; more than 0 where the provider held the beginning.
    #[serde(default)]
    pub from: u32,
    /// So many events of its session had been seen.
    pub seen: u32,
    /// The blob with what stands around the messages.
    pub frame: String,
    /// The format of the messages.
    pub format: String,
    /// The policy.
    pub policy: String,
    /// The counter.
    pub counter: String,
    /// What was sent, in tokens; none where nobody counted.
    pub tokens: Option<u64>,
    /// How the messages were dressed.
    #[serde(default, skip_serializing_if = "Dresses::is_plain")]
    pub dress: Dresses,
    /// The hash of the bytes that left.
    pub hash: String,
    /// How many bytes left.
    pub n_bytes: u64,
    /// Why it left as it came, if it did though it was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<String>,
    /// Edits of the encoded body; part of the bytes that the hash is of.
    #[serde(default, skip_serializing_if = "BodyEdits::is_empty")]
    pub edits: BodyEdits,
}

/// Recalls that a model made in one answer with calls of its client's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// The ids of the client's calls.
    pub theirs: Vec<String>,
    /// The recalls.
    pub ours: Vec<Opened>,
}

/// A recall, and what the model is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The id of the call.
    pub call: String,
    /// Its arguments, as the model wrote them.
    pub arguments: String,
    /// The result.
    pub result: String,
}

/// A session was pointed at another message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// Why.
    pub why: Why,
    /// Where it pointed.
    pub from: Option<String>,
    /// Where it points.
    pub to: Option<String>,
    /// The checkpoint that it went to, by its name: what was folded since, and for which windows, no longer holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
}

/// Why a session was pointed elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A client sent another history than the one before.
    Edited,
    /// A person went back.
    Rewound,
    /// A person took that back.
    Redone,
    /// A person went to a checkpoint.
    Restored,
}

/// An event of a session that is no more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// When.
    pub at: i64,
    /// The last message at that moment.
    pub tip: Option<String>,
    /// What kind.
    pub kind: String,
    /// The rest.
    pub body: Value,
}

impl Note {
    /// As the store takes it.
    pub fn event(&self) -> NewEvent {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        let kind = value.as_object_mut().and_then(|fields| fields.shift_remove("kind"));
        let kind = kind.as_ref().and_then(Value::as_str).unwrap_or("unknown").to_owned();
        NewEvent { kind, body: value.to_string() }
    }
}

/// A note with its moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Noted {
    /// Its position among the events of its own session.
    pub seq: u32,
    /// When.
    pub at: Millis,
    /// The last message that it comes after.
    pub tip: Option<NodeId>,
    /// What happened.
    pub note: Note,
}

impl Noted {
    /// Reads an event; none if its kind is not known or its body is broken.
    pub fn read(event: &EventRow) -> Option<Noted> {
        let mut body: Value = serde_json::from_str(&event.body).ok()?;
        body.as_object_mut()?.insert("kind".to_owned(), Value::String(event.kind.clone()));
        let note: Note = serde_json::from_value(body).ok()?;
        // Others may have written in between, so what was made for a message names it.
        let tip = match &note {
            Note::Fold(fold) => Some(fold.tip.parse().ok()?),
            Note::Request(Sent { tip, .. }) => tip.as_ref().map(|tip| tip.parse()).transpose().ok()?,
            Note::Checkpoint { tip: Some(tip), .. } => Some(tip.parse().ok()?),
            _ => event.tip,
        };
        Some(Noted { seq: event.seq, at: event.at, tip, note })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back_as_it_was_written() {
        let notes = [
            Note::Cooled { later: false },
            Note::Cooled { later: true },
            Note::Refused { limit: Some(9) },
            Note::Tried { by: None, missed: vec!["flawed".into()], flaws: vec!["cut".into()] },
            Note::Pinned { message: 3 },
            Note::Summarised(Summarised {
                text: "## Goal\nit".into(),
                upto: 7,
                day: "2026-11-15".into(),
                model: String::new(),
                at_once: false,
            }),
            Note::Moved(Moved { why: Why::Rewound, from: Some("a".into()), to: None, mark: None }),
            Note::Moved(Moved { why: Why::Restored, from: None, to: None, mark: Some("before".into()) }),
            Note::Checkpoint { name: "before".into(), auto: true, tip: None },
        ];
        for note in notes {
            let NewEvent { kind, body } = note.event();
            assert!(!body.contains("kind"), "{body}");
            let row = EventRow { seq: 4, at: Millis(5), tip: None, kind, body };
            assert_eq!(Noted::read(&row).unwrap().note, note);
        }
    }

    #[test]
    fn a_cold_cache_of_an_older_store_holds_at_once() {
        let (kind, body) = ("cooled".to_owned(), "{}".to_owned());
        let row = EventRow { seq: 0, at: Millis(0), tip: None, kind, body };
        assert_eq!(Noted::read(&row).unwrap().note, Note::Cooled { later: false });
    }

    #[test]
    fn what_a_newer_fanfold_wrote_is_left_alone() {
        let row = |kind: &str, body: &str| EventRow {
            seq: 0,
            at: Millis(0),
            tip: None,
            kind: kind.into(),
            body: body.into(),
        };
        assert_eq!(Noted::read(&row("dreamt", "{}")), None);
        assert_eq!(Noted::read(&row("pinned", "[]")), None);
        assert_eq!(Noted::read(&row("pinned", "not JSON")), None);
    }
}
