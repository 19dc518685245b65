//! The events of a session: each is a kind and some JSON in the store.
//!
//! An event of an unknown kind was written by a newer fanfold and is ignored. Stored names that differ from the names
//! in this file are given by `serde(rename)`.

use fanfold_store::{EventRow, Millis, NewEvent, NodeId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::log::backoff::Backoff;
use crate::log::body_edits::BodyEdits;
use crate::log::message_styles::MessageStyles;
use crate::log::recall_offer::RecallOffer;

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SessionEvent {
    /// The session is folded by these terms from its first message on.
    #[serde(rename = "began")]
    NewTerms(NewTerms),
    /// The configured window or reserve changed.
    Budget {
        /// The window, in tokens.
        window: u64,
        /// The part of the window that is reserved for the reply.
        reserve: u64,
    },
    /// The provider refused a request for its length.
    Refused {
        /// The limit that the provider reported.
        limit: Option<u64>,
    },
    /// The provider's token counts differ from the local ones.
    #[serde(rename = "corrected")]
    TokenRatio {
        /// The provider's tokens per 1000 local tokens.
        permille: u32,
        /// Applies to the newest message too, because a request with it was refused. Otherwise it applies from the
        /// next message on, so that a repeated body is sent with the same bytes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        at_once: bool,
    },
    /// The provider's prompt cache no longer has the session.
    #[serde(rename = "cooled")]
    CacheExpired {
        /// Applies from the next message on, because it was found in a reply: other requests may have been sent
        /// since, and a repeated body is sent with the same bytes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        later: bool,
    },
    /// The model recalled originals in a reply that also calls tools of the client. The client did not see the
    /// recalls.
    #[serde(rename = "beside")]
    HiddenRecalls(HiddenRecallRecord),
    /// The means to recall originals that the model is offered, for the life of the session.
    #[serde(rename = "offered")]
    RecallOffered(RecallOffer),
    /// A message must not be folded.
    Pinned {
        /// The message, numbered from 0.
        message: u32,
    },
    /// A message may be folded again.
    Unpinned {
        /// The message, numbered from 0.
        message: u32,
    },
    /// Content about a topic is folded less.
    Focused {
        /// The topic; empty to end the focus.
        topic: String,
    },
    /// The user requested a fold: of some messages, or of everything that is old.
    #[serde(rename = "fold_asked")]
    FoldRequested {
        /// The first message.
        from: Option<u32>,
        /// The last message.
        to: Option<u32>,
    },
    /// The user requested that the originals of a handle return to the view.
    Unfolded {
        /// The handle.
        handle: String,
    },
    /// A model wrote a summary of the messages up to now.
    Summarised(SummaryRecord),
    /// A model failed to write a summary and is not asked again for a while.
    #[serde(rename = "rested")]
    ModelPaused {
        /// The model and its address.
        #[serde(rename = "who")]
        model: String,
        /// The end of the pause, and its reason.
        rest: Backoff,
    },
    /// An attempt at a summary had failures.
    #[serde(rename = "tried")]
    SummaryAttempted {
        /// The model that wrote the summary in the end.
        #[serde(rename = "by")]
        model: Option<String>,
        /// The failure of each model before it, in a word.
        #[serde(rename = "missed")]
        failures: Vec<String>,
        /// The flaws of rejected answers.
        flaws: Vec<String>,
    },
    /// Messages were folded.
    Fold(FoldRecord),
    /// A request was sent.
    Request(SentRequest),
    /// A body was sent unchanged because fanfold failed. Records how the body was written.
    #[serde(rename = "came")]
    SentUnchanged {
        /// The blob with the body frame.
        frame: String,
        /// The styles of the messages.
        #[serde(rename = "dress", default, skip_serializing_if = "MessageStyles::is_plain")]
        styles: MessageStyles,
        /// True after an overflow. The window of that request then applies to no other request.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        overflow: bool,
    },
    /// A place that the session can be restored to.
    Checkpoint {
        /// Its name.
        name: String,
        /// True if fanfold created it before a fold.
        #[serde(default)]
        auto: bool,
        /// The message at the checkpoint.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tip: Option<String>,
    },
    /// The tip of the session moved to another message.
    Moved(TipMove),
    /// The session was forked from another one and continues its log.
    Forked {
        /// The other session.
        from: String,
        /// The number of events that the other session had.
        n_events: u32,
    },
    /// The log of the session that this one was forked from, copied when that session was deleted.
    Inherited {
        /// The events, oldest first.
        events: Vec<InheritedEvent>,
    },
    /// The session was imported.
    Imported {
        /// Its origin.
        from: String,
        /// The blob with the body frame, if the import had one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frame: Option<String>,
        /// The styles of the messages.
        #[serde(rename = "dress", default, skip_serializing_if = "MessageStyles::is_plain")]
        styles: MessageStyles,
    },
}

/// The terms that a session is folded by from an event on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewTerms {
    /// The blob with the description of the terms.
    pub terms: String,
    /// The window, in tokens.
    pub window: u64,
    /// The part of the window that is reserved for the reply.
    pub reserve: u64,
    /// The format of the messages.
    pub format: String,
    /// The blob with the body frame.
    pub frame: String,
}

/// A summary that a model wrote of the beginning of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryRecord {
    /// Its sections.
    pub text: String,
    /// The last summarised message, numbered from 0.
    pub upto: u32,
    /// The day on which it was written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub day: String,
    /// The model that wrote it, and its address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Applies to the newest message too. Otherwise it applies from the next message on, so that a repeated body is
    /// sent with the same bytes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_once: bool,
}

/// A fold, with everything that is needed to recall its originals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoldRecord {
    /// The last message at the time of the fold.
    pub tip: String,
    /// The blob with the body frame.
    pub frame: String,
    /// The format of the messages.
    pub format: String,
    /// The number of folds of the session, including this one.
    pub n_folds: usize,
    /// The size of the view before and after, in tokens.
    pub tokens: (u64, u64),
    /// The messages that the view does not have in full: first and last of each run.
    pub folded: Vec<(u32, u32)>,
    /// Each new handle: its digits, its original, and the beginning of the original's hash.
    pub handles: Vec<(String, Value, String)>,
}

/// A sent request, with everything that is needed to rebuild its bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentRequest {
    /// The last message.
    pub tip: Option<String>,
    /// The number of the first message; above 0 if only the provider has the messages before.
    #[serde(default)]
    pub from: u32,
    /// The number of events that were read before the view was built.
    #[serde(rename = "seen")]
    pub n_seen_events: u32,
    /// The blob with the body frame.
    pub frame: String,
    /// The format of the messages.
    pub format: String,
    /// The policy.
    pub policy: String,
    /// The counter.
    pub counter: String,
    /// The size of the view, in tokens; `None` if it was not counted.
    pub tokens: Option<u64>,
    /// The styles of the messages.
    #[serde(rename = "dress", default, skip_serializing_if = "MessageStyles::is_plain")]
    pub styles: MessageStyles,
    /// The hash of the sent bytes.
    pub hash: String,
    /// The number of sent bytes.
    pub n_bytes: u64,
    /// The reason if the view was not sent, but the body of the client.
    #[serde(rename = "original", default, skip_serializing_if = "Option::is_none")]
    pub bypass_reason: Option<String>,
    /// Edits of the encoded body; the hash is of the edited body.
    #[serde(default, skip_serializing_if = "BodyEdits::is_empty")]
    pub edits: BodyEdits,
}

/// Recalls in a reply that also calls tools of the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenRecallRecord {
    /// The ids of the client's calls.
    #[serde(rename = "theirs")]
    pub client_calls: Vec<String>,
    /// The recalls.
    #[serde(rename = "ours")]
    pub recalls: Vec<HiddenRecall>,
}

/// A recall that the client did not see, with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenRecall {
    /// The id of the call.
    pub call: String,
    /// Its arguments, as the model wrote them.
    pub arguments: String,
    /// The result that the model received.
    pub result: String,
}

/// A move of a session's tip to another message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TipMove {
    /// The reason.
    #[serde(rename = "why")]
    pub reason: MoveReason,
    /// The tip before.
    pub from: Option<String>,
    /// The tip after.
    pub to: Option<String>,
    /// The name of the checkpoint that was restored. The restore cancels later folds and the windows they were for.
    #[serde(rename = "mark", default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
}

/// The reason of a tip move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveReason {
    /// The client sent a history that differs from the stored one.
    Edited,
    /// The user rewound the session.
    Rewound,
    /// The user reverted the last move.
    Redone,
    /// The user restored a checkpoint.
    Restored,
}

/// An event of a deleted session, kept by its fork.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InheritedEvent {
    /// The time, in milliseconds since 1970.
    pub at: i64,
    /// The tip of the session at that time.
    pub tip: Option<String>,
    /// The kind.
    pub kind: String,
    /// The other fields.
    pub body: Value,
}

impl SessionEvent {
    /// The event in the form that the store takes.
    pub fn encode(&self) -> NewEvent {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        let kind = value.as_object_mut().and_then(|fields| fields.shift_remove("kind"));
        let kind = kind.as_ref().and_then(Value::as_str).unwrap_or("unknown").to_owned();
        NewEvent { kind, body: value.to_string() }
    }

    /// Decodes an event. Returns `None` if its kind is unknown or its body is invalid.
    pub(crate) fn decode(kind: &str, mut body: Value) -> Option<SessionEvent> {
        body.as_object_mut()?.insert("kind".to_owned(), Value::String(kind.to_owned()));
        serde_json::from_value(body).ok()
    }
}

/// An event of a session's log.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedEvent {
    /// Its position among the events of its own session.
    pub seq: u32,
    /// The time of the record.
    pub at: Millis,
    /// The message after which it happened.
    pub tip: Option<NodeId>,
    /// The event.
    pub event: SessionEvent,
}

impl LoggedEvent {
    /// Decodes a stored event. Returns `None` if its kind is unknown or its body is invalid.
    pub fn decode(row: &EventRow) -> Option<LoggedEvent> {
        let event = SessionEvent::decode(&row.kind, serde_json::from_str(&row.body).ok()?)?;
        // These events name their message, because another process may have moved the tip before they were written.
        let tip = match &event {
            SessionEvent::Fold(fold) => Some(fold.tip.parse().ok()?),
            SessionEvent::Request(sent) => sent.tip.as_ref().map(|tip| tip.parse()).transpose().ok()?,
            SessionEvent::Checkpoint { tip: Some(tip), .. } => Some(tip.parse().ok()?),
            _ => row.tip,
        };
        Some(LoggedEvent { seq: row.seq, at: row.at, tip, event })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(kind: &str, body: &str) -> EventRow {
        EventRow { seq: 4, at: Millis(5), tip: None, kind: kind.into(), body: body.into() }
    }

    #[test]
    fn encoded_events_decode_to_the_same_events() {
        let events = [
            SessionEvent::CacheExpired { later: false },
            SessionEvent::CacheExpired { later: true },
            SessionEvent::Refused { limit: Some(9) },
            SessionEvent::SummaryAttempted {
                model: None,
                failures: vec!["flawed".into()],
                flaws: vec!["cut".into()],
            },
            SessionEvent::Pinned { message: 3 },
            SessionEvent::Summarised(SummaryRecord {
                text: "## Goal\nit".into(),
                upto: 7,
                day: "2026-11-15".into(),
                model: String::new(),
                at_once: false,
            }),
            SessionEvent::Moved(TipMove {
                reason: MoveReason::Rewound,
                from: Some("a".into()),
                to: None,
                checkpoint: None,
            }),
            SessionEvent::Moved(TipMove {
                reason: MoveReason::Restored,
                from: None,
                to: None,
                checkpoint: Some("before".into()),
            }),
            SessionEvent::Checkpoint { name: "before".into(), auto: true, tip: None },
        ];
        for event in events {
            let NewEvent { kind, body } = event.encode();
            assert!(!body.contains("kind"), "{body}");
            assert_eq!(LoggedEvent::decode(&row(&kind, &body)).unwrap().event, event);
        }
    }

    /// Events of existing stores decode, and are encoded with the same names again.
    #[test]
    fn stored_names_do_not_change() {
        let sent = json!({
            "tip": NodeId::new(None, "{}").to_string(), "from": 0, "seen": 3, "frame": "f", "format": "chat",
            "policy": "p", "counter": "c", "tokens": null, "dress": { "marks": [[0, 1, "m"]] }, "hash": "h",
            "n_bytes": 4, "original": "only observed",
        })
        .to_string();
        let events = [
            ("began", r#"{"terms":"t","window":9,"reserve":1,"format":"chat","frame":"f"}"#),
            ("budget", r#"{"window":9,"reserve":1}"#),
            ("refused", r#"{"limit":null}"#),
            ("corrected", r#"{"permille":1100,"at_once":true}"#),
            ("cooled", r#"{"later":true}"#),
            ("beside", r#"{"theirs":["a"],"ours":[{"call":"b","arguments":"{}","result":"r"}]}"#),
            ("offered", r#"{"tool":"{}","words":"w"}"#),
            ("unpinned", r#"{"message":1}"#),
            ("focused", r#"{"topic":"t"}"#),
            ("fold_asked", r#"{"from":1,"to":2}"#),
            ("unfolded", r#"{"handle":"123456"}"#),
            ("tried", r#"{"by":"m","missed":["flawed"],"flaws":[]}"#),
            ("request", &sent),
            ("came", r#"{"frame":"f","dress":{"around":[[0,1,"a","b"]]},"overflow":true}"#),
            ("moved", r#"{"why":"restored","from":null,"to":"a","mark":"m"}"#),
            ("forked", r#"{"from":"s","n_events":2}"#),
            ("inherited", r#"{"events":[{"at":1,"tip":null,"kind":"cooled","body":{}}]}"#),
            ("imported", r#"{"from":"s","frame":"f","dress":{"marks":[[0,1,"m"]]}}"#),
        ];
        for (kind, body) in events {
            let encoded = LoggedEvent::decode(&row(kind, body)).expect(kind).event.encode();
            assert_eq!(encoded.kind, kind);
            let values = [&encoded.body, body].map(|json| serde_json::from_str::<Value>(json).unwrap());
            assert_eq!(values[0], values[1], "{kind}");
        }
    }

    #[test]
    fn an_expired_cache_of_an_older_store_applies_at_once() {
        let logged = LoggedEvent::decode(&row("cooled", "{}")).unwrap();
        assert_eq!(logged.event, SessionEvent::CacheExpired { later: false });
    }

    #[test]
    fn unknown_and_invalid_events_are_ignored() {
        assert_eq!(LoggedEvent::decode(&row("dreamt", "{}")), None);
        assert_eq!(LoggedEvent::decode(&row("pinned", "[]")), None);
        assert_eq!(LoggedEvent::decode(&row("pinned", "not JSON")), None);
    }
}
