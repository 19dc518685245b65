//! Edits of an encoded body: a memory block, and the rules of a provider.
//!
//! They are applied before the hash of a request is recorded and are recorded with it, so that a request is rebuilt
//! with the same bytes.

use fanfold_wire::reply::remove_recall_tool;
use fanfold_wire::{Format, alternate_roles, append_memory_block};
use serde::{Deserialize, Serialize};

/// Edits of an encoded body, in the order of their application.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BodyEdits {
    /// The memory block at the end of the last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// The rules of the provider that changed the body.
    #[serde(flatten)]
    pub rules: ProviderRules,
}

/// Rules of a provider. A body that fanfold has changed must follow them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProviderRules {
    /// The recall tool is rejected, so it is removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_recall_tool: bool,
    /// No role may have two messages in a row, so neighbours are merged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alternating_roles: bool,
}

impl BodyEdits {
    /// Returns true if no edit changes the encoded body.
    pub fn is_empty(&self) -> bool {
        *self == BodyEdits::default()
    }

    /// Applies these edits to an encoded body.
    pub(crate) fn apply(&self, encoded: String, format: Format) -> String {
        let with_memory = self.memory.as_ref().and_then(|block| append_memory_block(&encoded, format, block));
        let body = with_memory.unwrap_or(encoded);
        self.rules.apply(&body, format).map_or(body, |(body, _)| body)
    }
}

impl ProviderRules {
    /// Applies the rules to a body. Returns the result with the rules that changed it, or `None` if none did.
    pub(crate) fn apply(self, body: &str, format: Format) -> Option<(String, ProviderRules)> {
        let without_tool = self.without_recall_tool.then(|| remove_recall_tool(body, format)).flatten();
        let body = without_tool.as_deref().unwrap_or(body);
        let merged = self.alternating_roles.then(|| alternate_roles(body, format)).flatten();
        let effective = ProviderRules {
            without_recall_tool: without_tool.is_some(),
            alternating_roles: merged.is_some(),
        };
        Some((merged.or(without_tool)?, effective))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_only_rules_with_an_effect() {
        let rules = ProviderRules { without_recall_tool: true, alternating_roles: true };
        let body = r#"{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}"#;
        let (merged, effective) = rules.apply(body, Format::Chat).unwrap();
        assert_eq!(merged, r#"{"messages":[{"role":"user","content":"a\n\nb"}]}"#);
        assert_eq!(effective, ProviderRules { without_recall_tool: false, alternating_roles: true });
        assert_eq!(rules.apply(&merged, Format::Chat), None);
    }

    #[test]
    fn absent_edits_decode_as_no_edits() {
        let edits: BodyEdits = serde_json::from_str("{}").unwrap();
        assert!(edits.is_empty());
        assert_eq!(serde_json::to_string(&edits).unwrap(), "{}");
    }
}
