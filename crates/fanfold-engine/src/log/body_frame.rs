//! A request body without its messages, stored once for all requests that have the same.

use std::ops::Range;

use fanfold_store::BlobId;
use fanfold_wire::Conversation;
use serde::{Deserialize, Serialize};

/// The text of a body before, between and after its messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BodyFrame {
    /// Before the first message.
    before: String,
    /// The separator of messages, if there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    between: Option<String>,
    /// All separators, if they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<String>,
    /// After the last message.
    after: String,
    /// The position of the tool schemas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<FrameRange>,
    /// The position of the system text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system: Option<FrameRange>,
    /// True if the messages are stored without their styles; older stores have the styles in the messages.
    #[serde(default, skip_serializing_if = "is_false")]
    plain: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// A range of bytes outside the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum FrameRange {
    /// Start and end in the text before the messages.
    Before(usize, usize),
    /// Start and end in the text after the messages.
    After(usize, usize),
}

impl BodyFrame {
    /// The frame of a body.
    pub(crate) fn new(body: &str, conversation: &Conversation) -> BodyFrame {
        let mut frame = BodyFrame::around(body, conversation.spans());
        let start = frame.before.len();
        let end = body.len() - frame.after.len();
        let to_range = |bytes: Range<usize>| {
            if bytes.end <= start {
                Some(FrameRange::Before(bytes.start, bytes.end))
            } else {
                (bytes.start >= end).then(|| FrameRange::After(bytes.start - end, bytes.end - end))
            }
        };
        let [tools, system] = conversation.ranges_outside_list();
        (frame.tools, frame.system) = (tools.and_then(to_range), system.and_then(to_range));
        frame
    }

    /// The frame of a bare JSON list of messages.
    pub(crate) fn message_list() -> BodyFrame {
        BodyFrame {
            before: "[".to_owned(),
            between: Some(",".to_owned()),
            gaps: Vec::new(),
            after: "]".to_owned(),
            tools: None,
            system: None,
            plain: true,
        }
    }

    /// Returns true if the messages are stored without their styles.
    pub(crate) fn has_plain_messages(&self) -> bool {
        self.plain
    }

    /// The JSON of the tool schemas.
    pub(crate) fn tools(&self) -> Option<&str> {
        self.text_at(self.tools?)
    }

    /// The JSON of the system text.
    pub(crate) fn system(&self) -> Option<&str> {
        self.text_at(self.system?)
    }

    fn text_at(&self, range: FrameRange) -> Option<&str> {
        match range {
            FrameRange::Before(from, to) => self.before.get(from..to),
            FrameRange::After(from, to) => self.after.get(from..to),
        }
    }

    fn around(body: &str, messages: &[Range<usize>]) -> BodyFrame {
        let (Some(first), Some(last)) = (messages.first(), messages.last()) else {
            return BodyFrame {
                before: body.to_owned(),
                between: None,
                gaps: Vec::new(),
                after: String::new(),
                tools: None,
                system: None,
                plain: true,
            };
        };
        let gaps: Vec<&str> = messages.windows(2).map(|pair| &body[pair[0].end..pair[1].start]).collect();
        let is_even = gaps.windows(2).all(|pair| pair[0] == pair[1]);
        BodyFrame {
            before: body[..first.start].to_owned(),
            between: gaps.first().filter(|_| is_even).map(|gap| (*gap).to_owned()),
            gaps: if is_even { Vec::new() } else { gaps.into_iter().map(str::to_owned).collect() },
            after: body[last.end..].to_owned(),
            tools: None,
            system: None,
            plain: true,
        }
    }

    /// Builds the body again from its messages, byte for byte.
    pub(crate) fn fill<M: AsRef<str>>(&self, messages: impl Iterator<Item = M>) -> String {
        let mut body = self.before.clone();
        for (i, message) in messages.enumerate() {
            if i > 0 {
                let gap = self.gaps.get(i - 1).or(self.between.as_ref()).map_or(",", String::as_str);
                body.push_str(gap);
            }
            body.push_str(message.as_ref());
        }
        body.push_str(&self.after);
        body
    }

    /// The bytes to store, with their id.
    pub(crate) fn blob(&self) -> (BlobId, Vec<u8>) {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        (BlobId::new(&bytes), bytes)
    }

    /// Decodes stored bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<BodyFrame> {
        serde_json::from_slice(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str) -> BodyFrame {
        let (conversation, _) = Conversation::decode(body, None).unwrap();
        let frame = BodyFrame::new(body, &conversation);
        let frame = BodyFrame::decode(&frame.blob().1).unwrap();
        assert_eq!(frame.fill(conversation.messages()), body);
        assert_eq!(frame.tools(), conversation.tools());
        assert_eq!(frame.system(), conversation.system());
        frame
    }

    #[test]
    fn filling_a_frame_gives_the_body_byte_for_byte() {
        check(r#"{"messages": [], "model": "m"}"#);
        check(r#" {"messages":[ {"role":"user","content":"a"} ], "n": 1e3}"#);
        check("[{\"role\":\"user\"},\n {\"role\":\"user\"} ,{\"role\":\"user\"}]\n");
        check("{\"role\":\"user\"}\n{\"role\":\"user\"}\n\n");
        check(r#"{"input": "hi", "x": null}"#);
        check(r#"{"tools": [1], "messages": [], "system": "be kind"}"#);
        check(r#"{"tools": [1], "messages": [{"role":"user"}, {}], "system": "be kind"}"#);
        check(r#"{"system": "be kind", "messages": [{"role":"user"}], "tools": [2, 3]}"#);
    }

    #[test]
    fn requests_of_one_client_have_the_same_frame() {
        let body = |n: usize| format!(r#"{{"messages":[{}],"stream":true}}"#, vec!["{}"; n].join(", "));
        assert_eq!(check(&body(2)), check(&body(30)));
    }
}
