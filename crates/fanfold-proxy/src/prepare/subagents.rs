//! Which agent started which. Clients send this in request headers; it is never guessed.
//!
//! ```text
//! Claude Code   x-claude-code-session-id   x-claude-code-agent-id   x-claude-code-parent-agent-id
//! Codex         thread-id                                           x-codex-parent-thread-id
//! ```

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use fanfold_store::SessionId;
use http::HeaderMap;

/// The maximum number of callers in the table; names come from clients.
const MAX_CALLERS: usize = 1024;
/// Longer names are ignored.
const MAX_NAME_BYTES: usize = 200;

/// The agent that sends a request, by its headers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CallerId {
    /// The client's own name for the conversation.
    name: Option<String>,
    /// True if another agent has started this one.
    pub(crate) is_subagent: bool,
    /// The name of the conversation of that agent.
    parent: Option<String>,
}

impl CallerId {
    pub(crate) fn from_headers(headers: &HeaderMap) -> CallerId {
        let text = |name: &str| {
            let text = headers.get(name)?.to_str().ok()?.trim();
            (1..=MAX_NAME_BYTES).contains(&text.len()).then(|| text.to_owned())
        };
        if let Some(session) = text("x-claude-code-session-id") {
            let below = |agent: String| format!("{session}/{agent}");
            let agent = text("x-claude-code-agent-id").map(below);
            let parent = text("x-claude-code-parent-agent-id").map_or(session.clone(), below);
            let is_subagent = agent.is_some();
            return CallerId {
                parent: Some(parent).filter(|_| is_subagent),
                is_subagent,
                name: agent.or(Some(session)),
            };
        }
        let parent = text("x-codex-parent-thread-id");
        CallerId { name: text("thread-id"), is_subagent: parent.is_some(), parent }
    }
}

/// The sessions of callers.
#[derive(Default)]
pub(crate) struct Subagents {
    /// Guards the table; whole values are inserted.
    sessions: Mutex<HashMap<String, SessionId>>,
}

impl Subagents {
    pub(crate) fn insert(&self, caller: &CallerId, session: &SessionId) {
        let Some(name) = &caller.name else { return };
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_CALLERS && !sessions.contains_key(name) {
            // Active callers are inserted again by their next request.
            sessions.clear();
        }
        sessions.insert(name.clone(), session.clone());
    }

    /// The session of the agent that started a caller.
    pub(crate) fn parent(&self, caller: &CallerId) -> Option<SessionId> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(caller.parent.as_ref()?).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(all: &[(&str, &str)]) -> CallerId {
        let header = |(name, value): &(&str, &str)| {
            (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap())
        };
        CallerId::from_headers(&all.iter().map(header).collect())
    }

    #[test]
    fn recognises_subagents_by_their_headers() {
        let session = ("x-claude-code-session-id", "s");
        let agent = ("x-claude-code-agent-id", "a");
        let (main, sub) = (caller(&[session]), caller(&[session, agent]));
        assert_eq!((main.is_subagent, &main.parent), (false, &None));
        assert_eq!((sub.is_subagent, &sub.parent), (true, &main.name));
        let below =
            caller(&[session, ("x-claude-code-agent-id", "b"), ("x-claude-code-parent-agent-id", "a")]);
        assert_eq!((below.is_subagent, &below.parent), (true, &sub.name));
        // A parent without an agent id is ignored.
        assert_eq!(caller(&[session, ("x-claude-code-parent-agent-id", "a")]), main);
        let (root, child) = (("thread-id", "r"), ("thread-id", "c"));
        assert!(!caller(&[root]).is_subagent);
        let child =
            caller(&[child, ("x-codex-parent-thread-id", "r"), ("x-openai-subagent", "collab_spawn")]);
        assert_eq!((child.is_subagent, child.parent), (true, caller(&[root]).name));
        // A request of Codex for a summary is not a subagent.
        assert!(!caller(&[root, ("x-openai-subagent", "compact")]).is_subagent);
        assert_eq!(caller(&[("authorization", "Bearer x")]), CallerId::default());
    }

    #[test]
    fn a_full_table_is_cleared() {
        let subagents = Subagents::default();
        let session = |n: usize| SessionId(format!("kept {n}"));
        let main = |n: usize| caller(&[("thread-id", &n.to_string())]);
        let child = |n: usize| caller(&[("thread-id", "c"), ("x-codex-parent-thread-id", &n.to_string())]);
        (0..MAX_CALLERS).for_each(|n| subagents.insert(&main(n), &session(n)));
        subagents.insert(&main(7), &session(8));
        assert_eq!(
            (subagents.parent(&child(7)), subagents.parent(&child(0))),
            (Some(session(8)), Some(session(0)))
        );
        subagents.insert(&main(MAX_CALLERS), &session(MAX_CALLERS));
        assert_eq!((subagents.parent(&child(0)), subagents.parent(&main(0))), (None, None));
        assert_eq!(subagents.parent(&child(MAX_CALLERS)), Some(session(MAX_CALLERS)));
    }
}
