//! Message nodes. The id of a node is a hash of the message and all its predecessors.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::Millis;

/// The id of a message node: the hash of its parent's id and its JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub [u8; 32]);

impl NodeId {
    /// The id of a message after `parent`, or of a first message.
    pub fn new(parent: Option<NodeId>, json: &str) -> NodeId {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&parent.map_or([0; 32], |parent| parent.0));
        hasher.update(json.as_bytes());
        NodeId(*hasher.finalize().as_bytes())
    }
}

/// The id of a blob: the hash of its bytes. Events refer to blobs, such as the request body around a list of
/// messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(pub [u8; 32]);

impl BlobId {
    /// The id of a blob with these bytes.
    pub fn new(bytes: &[u8]) -> BlobId {
        BlobId(*blake3::hash(bytes).as_bytes())
    }
}

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an id has 64 hexadecimal digits, unlike {0:?}")]
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
                        u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("all digits are hexadecimal");
                }
                Ok($id(id))
            }
        }
    };
}

as_hex!(NodeId);
as_hex!(BlobId);

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Instructions.
    System,
    /// The user, or a host on the user's behalf.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
    /// Any other message.
    Other,
}

impl Role {
    /// Every role with its name in filters and in the database.
    pub const NAMES: [(&'static str, Role); 5] = [
        ("system", Role::System),
        ("user", Role::User),
        ("assistant", Role::Assistant),
        ("tool", Role::Tool),
        ("other", Role::Other),
    ];

    /// Returns the name of the role.
    pub fn name(self) -> &'static str {
        Role::NAMES.iter().find(|(_, role)| *role == self).map_or("other", |(name, _)| name)
    }

    /// Returns the role with a name.
    pub fn from_name(name: &str) -> Option<Role> {
        Role::NAMES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role)
    }

    /// Returns the role of a message in any format that fanfold supports.
    pub fn from_message(json: &str) -> Role {
        // Every stored message passes here, and most of it is text, so field values are skipped instead of parsed.
        let Ok(fields) = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(json) else {
            return Role::Other;
        };
        let text =
            |name: &str| -> Option<Cow<'_, str>> { serde_json::from_str(fields.get(name)?.get()).ok() };
        let kind = text("type").unwrap_or_default();
        match text("role").or_else(|| text("from")).as_deref() {
            Some("user") if fields.get("content").is_some_and(|content| has_only_results(content)) => {
                Role::Tool
            }
            Some("user" | "human") => Role::User,
            Some("assistant" | "gpt" | "model") => Role::Assistant,
            Some("tool" | "function" | "observation") => Role::Tool,
            Some("system" | "developer") => Role::System,
            _ if kind.ends_with("_output") => Role::Tool,
            _ if kind.ends_with("_call") || kind == "reasoning" => Role::Assistant,
            _ => Role::Other,
        }
    }
}

/// Returns whether a content is a list of tool results only: Anthropic's format sends them in the user's name.
fn has_only_results(content: &RawValue) -> bool {
    let is_result = |part: &&RawValue| {
        let part: Value = serde_json::from_str(part.get()).unwrap_or_default();
        part["type"] == "tool_result"
    };
    serde_json::from_str::<Vec<&RawValue>>(content.get())
        .is_ok_and(|parts| !parts.is_empty() && parts.iter().all(is_result))
}

/// A stored message and its position in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The id.
    pub id: NodeId,
    /// The preceding message.
    pub parent: Option<NodeId>,
    /// A short number for people and tools, unique in its store.
    pub number: u64,
    /// The number of preceding messages.
    pub depth: u32,
    /// The author.
    pub role: Role,
    /// When the message was first stored.
    pub at: Millis,
    /// The message as received, byte for byte.
    pub json: Arc<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_id_depends_on_all_predecessors() {
        let first = NodeId::new(None, "a");
        assert_ne!(NodeId::new(Some(first), "b"), NodeId::new(None, "b"));
        assert_eq!(first.to_string().parse(), Ok(first));
        assert!("zz".parse::<NodeId>().is_err());
    }

    #[test]
    fn roles_are_detected_in_every_format() {
        let role = |json| Role::from_message(json).name();
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
