//! Edits of an encoded body: a memory block, and the rules of a provider.
//!
//! They are applied before the hash of a request is recorded and are recorded with it, so that a request is rebuilt
//! with the same bytes.

use fanfold_store::{Batch, Op, SessionId, StoreError};
use fanfold_wire::reply::remove_recall_tool;
use fanfold_wire::{Format, alternate_roles, append_memory_block};
use serde::{Deserialize, Serialize};

use crate::engine::SessionEngine;
use crate::log::events::{SentRequest, SessionEvent};
use crate::log::session_log::SessionLog;

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

/// The changes that a provider accepts in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyForm {
    /// All changes, if the body follows these rules.
    Edited(ProviderRules),
    /// No change: only the body of the client.
    Verbatim,
}

impl Default for BodyForm {
    fn default() -> BodyForm {
        BodyForm::Edited(ProviderRules::default())
    }
}

/// Recorded with a request that was sent verbatim because its provider refused every other form.
pub(crate) const REJECTED: &str = "the provider refused every other form";

/// The bodies that a refused request is built again from.
#[derive(Debug, Clone, Copy)]
pub struct RefusedBody<'a> {
    /// The body before provider rules were applied.
    pub before_rules: &'a str,
    /// The refused body.
    pub sent: &'a str,
    /// The body of the client.
    pub received: &'a str,
    /// Its format.
    pub format: Format,
}

/// A body in another form.
#[derive(Debug)]
pub struct Resend {
    /// The body to send.
    pub body: String,
    /// Its edits.
    pub edits: BodyEdits,
}

impl SessionEngine {
    /// Builds the newest request of a session again, in another form, and records the result as another request.
    ///
    /// Returns `None`, and records nothing, if the new body equals the refused one.
    pub fn resend(
        &self,
        session: &SessionId,
        refused: RefusedBody<'_>,
        form: BodyForm,
    ) -> Result<Option<Resend>, StoreError> {
        let (body, rules) = match form {
            BodyForm::Verbatim => (refused.received.to_owned(), ProviderRules::default()),
            BodyForm::Edited(rules) => match rules.apply(refused.before_rules, refused.format) {
                Some(applied) => applied,
                None => return Ok(None),
            },
        };
        if body == refused.sent {
            return Ok(None);
        }
        let log = SessionLog::read(&*self.store, session)?;
        let newest = log.events.into_iter().rev().find_map(|logged| match logged.event {
            SessionEvent::Request(sent) => Some(sent),
            _ => None,
        });
        let is_verbatim = form == BodyForm::Verbatim;
        let memory = newest.as_ref().filter(|_| !is_verbatim).and_then(|sent| sent.edits.memory.clone());
        let edits = BodyEdits { memory, rules };
        if let Some(sent) = newest {
            let hash = blake3::hash(body.as_bytes()).to_string();
            let bypass_reason = if is_verbatim { Some(REJECTED.to_owned()) } else { sent.bypass_reason };
            let n_bytes = body.len() as u64;
            let sent = SentRequest { hash, n_bytes, edits: edits.clone(), bypass_reason, ..sent };
            let ops = vec![Op::AddEvent(session.clone(), SessionEvent::Request(sent).encode())];
            self.store.commit(&Batch { at: self.clock.now(), expected_tips: Vec::new(), ops })?;
        }
        Ok(Some(Resend { body, edits }))
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
