//! Messages behind one another, each named by all that was said up to it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::Millis;

/// Names a message and all that came before it: the hash of both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub [u8; 32]);

impl NodeId {
    /// The id of a message behind another one, or of a first one.
    pub fn new(parent: Option<NodeId>, json: &str) -> NodeId {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&parent.map_or([0; 32], |parent| parent.0));
        hasher.update(json.as_bytes());
        NodeId(*hasher.finalize().as_bytes())
    }
}

/// Names some bytes that sessions keep beside their messages, such as the body around a list of messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(pub [u8; 32]);

impl BlobId {
    /// The id of some bytes.
    pub fn new(bytes: &[u8]) -> BlobId {
        BlobId(*blake3::hash(bytes).as_bytes())
    }
}

/// Why a text is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an id has 64 hexadecimal digits, and this is none: {0}")]
pub struct IdError(String);

macro_rules! as_hex {
    ($id:ident) => {
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }

        impl FromStr for $id {
            type Err = IdError;

            fn from_str(text: &str) -> Result<$id, IdError> {
                let mut id = [0; 32];
                let is_hex = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
                if !is_hex {
                    return Err(IdError(text.to_owned()));
                }
                for (i, byte) in id.iter_mut().enumerate() {
                    *byte =
                        u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("they are hexadecimal digits");
                }
                Ok($id(id))
            }
        }
    };
}

as_hex!(NodeId);
as_hex!(BlobId);

/// In whose name a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Instructions.
    System,
    /// A person, or a host in their name.
    User,
    /// The model.
    Assistant,
    /// The result of a call.
    Tool,
    /// Anything else.
    Other,
}

impl Role {
    /// Every role, as filters name them.
    pub const NAMES: [(&'static str, Role); 5] = [
        ("system", Role::System),
        ("user", Role::User),
        ("assistant", Role::Assistant),
        ("tool", Role::Tool),
        ("other", Role::Other),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Role::NAMES.iter().find(|(_, role)| *role == self).map_or("other", |(name, _)| name)
    }

    /// The role of that name.
    pub fn from_name(name: &str) -> Option<Role> {
        Role::NAMES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role)
    }
}

/// In whose name a message is, in any of the formats that fanfold knows.
pub fn role_of(json: &str) -> Role {
    // Every message that is kept passes here, and most of it is text: that is skipped, not taken apart.
    let Ok(fields) = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(json) else {
        return Role::Other;
    };
    let text = |name: &str| -> Option<Cow<'_, str>> { serde_json::from_str(fields.get(name)?.get()).ok() };
    let kind = text("type").unwrap_or_default();
    match text("role").or_else(|| text("from")).as_deref() {
        Some("user") if fields.get("content").is_some_and(|content| has_only_results(content)) => Role::Tool,
        Some("user" | "human") => Role::User,
        Some("assistant" | "gpt" | "model") => Role::Assistant,
        Some("tool" | "function" | "observation") => Role::Tool,
        Some("system" | "developer") => Role::System,
        _ if kind.ends_with("_output") => Role::Tool,
        _ if kind.ends_with("_call") || kind == "reasoning" => Role::Assistant,
        _ => Role::Other,
    }
}

/// Whether a content is a list of results of calls, as Anthropic's format gives them to the user.
fn has_only_results(content: &RawValue) -> bool {
    let is_result = |part: &&RawValue| {
        let part: Value = serde_json::from_str(part.get()).unwrap_or_default();
        part["type"] == "tool_result"
    };
    serde_json::from_str::<Vec<&RawValue>>(content.get())
        .is_ok_and(|parts| !parts.is_empty() && parts.iter().all(is_result))
}

/// A message in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// The one before it.
    pub parent: Option<NodeId>,
    /// A short number for people and tools, unique in its store.
    pub number: u64,
    /// How many come before it.
    pub depth: u32,
    /// In whose name it is.
    pub role: Role,
    /// When it was first kept.
    pub at: Millis,
    /// The message as it came, byte for byte.
    pub json: Arc<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_follows_from_all_that_was_said() {
        let first = NodeId::new(None, "a");
        assert_ne!(NodeId::new(Some(first), "b"), NodeId::new(None, "b"));
        assert_eq!(first.to_string().parse(), Ok(first));
        assert!("zz".parse::<NodeId>().is_err());
    }

    #[test]
    fn roles_are_found_in_every_format() {
        let role = |json| role_of(json).name();
        assert_eq!(role(r#"{"role":"user","content":"hi"}"#), "user");
        assert_eq!(role(r#"{"role":"user","content":[{"type":"tool_result"}]}"#), "tool");
        assert_eq!(role(r#"{"from":"gpt","value":"hi"}"#), "assistant");
        assert_eq!(role(r#"{"type":"function_call_output","output":"x"}"#), "tool");
        assert_eq!(role(r#"{"role":"us\u0065r","content":"\ud800"}"#), "user");
        assert_eq!(role(r#"{"role":7,"from":"human"}"#), "user");
        assert_eq!(role(r#"{"role":"tool","role":"user"}"#), "user");
        assert_eq!(role(r#"{"role":"user","content":[]}"#), "user");
        assert_eq!(role(r#"{"role":"user","content":[{"type":"tool_result"},{"type":"text"}]}"#), "user");
        assert_eq!(role(r#"{"type":"local_shell_call"}"#), "assistant");
        assert_eq!(role("[1]"), "other");
        assert_eq!(role("not JSON"), "other");
    }
}
