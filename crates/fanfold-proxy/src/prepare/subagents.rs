//! Whose work a conversation is. Agents that start others say so in the headers of those; what they do not say is not
//! guessed.
//!
//! ```text
//! Claude Code   x-claude-code-session-id   x-claude-code-agent-id   x-claude-code-parent-agent-id
//! Codex         thread-id                                           x-codex-parent-thread-id
//! ```

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use fanfold_store::SessionId;
use http::HeaderMap;

/// So many conversations are known by their clients' names; names come from clients.
const MOST_KEPT: usize = 1024;
/// A longer name is none.
const LONGEST_NAME: usize = 200;

/// Who asks, as the client tells it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Asker {
    /// The client's own name for the conversation.
    name: Option<String>,
    /// Whether another agent has started this one.
    pub(crate) is_subagent: bool,
    /// The name of that one's conversation.
    parent: Option<String>,
}

impl Asker {
    /// What the headers of a request tell.
    pub(crate) fn of(headers: &HeaderMap) -> Asker {
        let text = |name: &str| {
            let text = headers.get(name)?.to_str().ok()?.trim();
            (1..=LONGEST_NAME).contains(&text.len()).then(|| text.to_owned())
        };
        if let Some(session) = text("x-claude-code-session-id") {
            let below = |agent: String| format!("{session}/{agent}");
            let agent = text("x-claude-code-agent-id").map(below);
            let parent = text("x-claude-code-parent-agent-id").map_or(session.clone(), below);
            let is_subagent = agent.is_some();
            return Asker {
                parent: Some(parent).filter(|_| is_subagent),
                is_subagent,
                name: agent.or(Some(session)),
            };
        }
        let parent = text("x-codex-parent-thread-id");
        Asker { name: text("thread-id"), is_subagent: parent.is_some(), parent }
    }
}

/// The sessions of conversations that clients have a name for.
#[derive(Default)]
pub(crate) struct Crew {
    /// Guards the table; values are put in whole.
    sessions: Mutex<HashMap<String, SessionId>>,
}

impl Crew {
    /// Takes note of where a conversation is kept.
    pub(crate) fn is_at(&self, asker: &Asker, session: &SessionId) {
        let Some(name) = &asker.name else { return };
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MOST_KEPT && !sessions.contains_key(name) {
            // Those that still go on are known again with their next request.
            sessions.clear();
        }
        sessions.insert(name.clone(), session.clone());
    }

    /// The session of whoever started the one who asks.
    pub(crate) fn parent(&self, asker: &Asker) -> Option<SessionId> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(asker.parent.as_ref()?).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(all: &[(&str, &str)]) -> Asker {
        let header = |(name, value): &(&str, &str)| {
            (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap())
        };
        Asker::of(&all.iter().map(header).collect())
    }

    #[test]
    fn only_who_says_so_works_for_another() {
        let session = ("x-claude-code-session-id", "s");
        let agent = ("x-claude-code-agent-id", "a");
        let (main, sub) = (asker(&[session]), asker(&[session, agent]));
        assert_eq!((main.is_subagent, &main.parent), (false, &None));
        assert_eq!((sub.is_subagent, &sub.parent), (true, &main.name));
        let below =
            asker(&[session, ("x-claude-code-agent-id", "b"), ("x-claude-code-parent-agent-id", "a")]);
        assert_eq!((below.is_subagent, &below.parent), (true, &sub.name));
        // The parent alone tells nothing.
        assert_eq!(asker(&[session, ("x-claude-code-parent-agent-id", "a")]), main);
        let (root, child) = (("thread-id", "r"), ("thread-id", "c"));
        assert!(!asker(&[root]).is_subagent);
        let child = asker(&[child, ("x-codex-parent-thread-id", "r"), ("x-openai-subagent", "collab_spawn")]);
        assert_eq!((child.is_subagent, child.parent), (true, asker(&[root]).name));
        // A summary that Codex asks for is no agent's.
        assert!(!asker(&[root, ("x-openai-subagent", "compact")]).is_subagent);
        assert_eq!(asker(&[("authorization", "Bearer x")]), Asker::default());
    }

    #[test]
    fn names_are_forgotten_when_there_are_too_many() {
        let crew = Crew::default();
        let session = |n: usize| SessionId(format!("kept {n}"));
        let main = |n: usize| asker(&[("thread-id", &n.to_string())]);
        let child = |n: usize| asker(&[("thread-id", "c"), ("x-codex-parent-thread-id", &n.to_string())]);
        (0..MOST_KEPT).for_each(|n| crew.is_at(&main(n), &session(n)));
        crew.is_at(&main(7), &session(8));
        assert_eq!((crew.parent(&child(7)), crew.parent(&child(0))), (Some(session(8)), Some(session(0))));
        crew.is_at(&main(MOST_KEPT), &session(MOST_KEPT));
        assert_eq!((crew.parent(&child(0)), crew.parent(&main(0))), (None, None));
        assert_eq!(crew.parent(&child(MOST_KEPT)), Some(session(MOST_KEPT)));
    }
}
