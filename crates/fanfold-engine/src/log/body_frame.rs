//! A body without its messages: what stands before, between and after them, kept once for all requests that share it.

use std::ops::Range;

use fanfold_store::BlobId;
use fanfold_wire::Conversation;
use serde::{Deserialize, Serialize};

/// What stands around the messages of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Skeleton {
    /// Before the first message.
    before: String,
    /// Between each two messages, where that is always the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    between: Option<String>,
    /// Between each two messages, where it differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<String>,
    /// After the last message.
    after: String,
    /// Where the tool schemas stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<Span>,
    /// Where the system text stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system: Option<Span>,
    /// Whether the messages are kept without their dress; in older stores every byte belongs to them.
    #[serde(default, skip_serializing_if = "is_false")]
    plain: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Some bytes before or after the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Span {
    /// Before them, from and to.
    Before(usize, usize),
    /// After them, from and to.
    After(usize, usize),
}

impl Skeleton {
    /// Takes the messages out of a body.
    pub(crate) fn of(body: &str, conversation: &Conversation) -> Skeleton {
        let mut skeleton = Skeleton::around(body, conversation.spans());
        let start = skeleton.before.len();
        let end = body.len() - skeleton.after.len();
        let span = |bytes: Range<usize>| {
            if bytes.end <= start {
                Some(Span::Before(bytes.start, bytes.end))
            } else {
                (bytes.start >= end).then(|| Span::After(bytes.start - end, bytes.end - end))
            }
        };
        let [tools, system] = conversation.ranges_outside_list();
        (skeleton.tools, skeleton.system) = (tools.and_then(span), system.and_then(span));
        skeleton
    }

    /// What stands around a bare list of messages.
    pub(crate) fn of_list() -> Skeleton {
        Skeleton {
            before: "[".to_owned(),
            between: Some(",".to_owned()),
            gaps: Vec::new(),
            after: "]".to_owned(),
            tools: None,
            system: None,
            plain: true,
        }
    }

    /// Whether the messages are kept without their dress.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// The JSON of the tool schemas.
    pub(crate) fn tools(&self) -> Option<&str> {
        self.at(self.tools?)
    }

    /// The JSON of the system text.
    pub(crate) fn system(&self) -> Option<&str> {
        self.at(self.system?)
    }

    fn at(&self, span: Span) -> Option<&str> {
        match span {
            Span::Before(from, to) => self.before.get(from..to),
            Span::After(from, to) => self.after.get(from..to),
        }
    }

    fn around(body: &str, messages: &[Range<usize>]) -> Skeleton {
        let (Some(first), Some(last)) = (messages.first(), messages.last()) else {
            return Skeleton {
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
        Skeleton {
            before: body[..first.start].to_owned(),
            between: gaps.first().filter(|_| is_even).map(|gap| (*gap).to_owned()),
            gaps: if is_even { Vec::new() } else { gaps.into_iter().map(str::to_owned).collect() },
            after: body[last.end..].to_owned(),
            tools: None,
            system: None,
            plain: true,
        }
    }

    /// Puts messages back: the body as it was, byte for byte.
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

    /// As bytes to keep, with their name.
    pub(crate) fn blob(&self) -> (BlobId, Vec<u8>) {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        (BlobId::new(&bytes), bytes)
    }

    /// From bytes that were kept.
    pub(crate) fn read(bytes: &[u8]) -> Option<Skeleton> {
        serde_json::from_slice(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str) -> Skeleton {
        let (conversation, _) = Conversation::decode(body, None).unwrap();
        let skeleton = Skeleton::of(body, &conversation);
        let skeleton = Skeleton::read(&skeleton.blob().1).unwrap();
        assert_eq!(skeleton.fill(conversation.messages()), body);
        assert_eq!(skeleton.tools(), conversation.tools());
        assert_eq!(skeleton.system(), conversation.system());
        skeleton
    }

    #[test]
    fn a_body_comes_back_byte_for_byte() {
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
    fn requests_of_one_client_share_what_is_around_the_messages() {
        let body = |n: usize| format!(r#"{{"messages":[{}],"stream":true}}"#, vec!["{}"; n].join(", "));
        assert_eq!(check(&body(2)), check(&body(30)));
    }
}
