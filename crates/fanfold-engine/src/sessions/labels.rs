//! Titles, goals and pins of sessions.

use fanfold_store::{Batch, Op, SessionId, SessionUpdate};

use crate::engine::{OpError, SessionEngine};
use crate::log::events::SessionEvent;

/// Maximum length of a title, in characters.
pub(crate) const MAX_TITLE_CHARS: usize = 100;

/// A title as it is stored: without control and bidirectional characters, with single spaces, at most 100
/// characters.
pub fn clean_title(title: &str) -> String {
    let is_visible = |c: &char| !is_hidden(*c);
    let spaced: String =
        title.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(is_visible).collect();
    let words: Vec<&str> = spaced.split(' ').filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(MAX_TITLE_CHARS).collect::<String>().trim_end().to_owned()
}

/// True for invisible characters that change how text is displayed: controls and bidirectional marks.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

impl SessionEngine {
    /// Sets the title of a session; an empty one removes it. Returns the title as it is stored.
    pub fn set_title(&self, session: &SessionId, title: &str) -> Result<Option<String>, OpError> {
        let title = Some(clean_title(title)).filter(|title| !title.is_empty());
        self.set(session, SessionUpdate::Title(title.clone()))?;
        Ok(title)
    }

    /// Sets the goal of a session; an empty one removes it.
    pub fn set_goal(&self, session: &SessionId, goal: &str) -> Result<(), OpError> {
        let goal = goal.trim();
        self.set(session, SessionUpdate::Goal((!goal.is_empty()).then(|| goal.to_owned())))
    }

    fn set(&self, session: &SessionId, change: SessionUpdate) -> Result<(), OpError> {
        self.write(vec![Op::Update(session.clone(), change)])
    }

    /// Pins a message, so that it is never folded, or unpins it.
    pub fn pin(&self, session: &SessionId, message: u32, is_pinned: bool) -> Result<(), OpError> {
        let n_messages = self.row(session)?.n_messages;
        if message >= n_messages {
            return Err(OpError::invalid(
                format!("session {session} has no message {message}"),
                format!("its messages are counted from 0 to {}", n_messages.max(1) - 1),
            ));
        }
        self.record_note(
            session,
            &if is_pinned { SessionEvent::Pinned { message } } else { SessionEvent::Unpinned { message } },
        )
    }

    /// Records a note in the session's log. The next view takes it into account.
    pub fn record_note(&self, session: &SessionId, note: &SessionEvent) -> Result<(), OpError> {
        self.write(vec![Op::AddEvent(session.clone(), note.encode())])
    }

    /// Commits operations with the current time.
    pub(crate) fn write(&self, ops: Vec<Op>) -> Result<(), OpError> {
        self.store.commit(&Batch { at: self.clock.now(), expected_tips: Vec::new(), ops })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_contain_only_visible_characters() {
        assert_eq!(clean_title("  Fix\tthe\n parser  "), "Fix the parser");
        assert_eq!(clean_title("a\u{202e}b\u{0}c\u{200b}d"), "abcd");
        assert_eq!(clean_title(&"ä".repeat(300)).chars().count(), 100);
        assert_eq!(clean_title("\u{7}\u{200e} "), "");
    }
}
