//! What people say about a session: its title, its goal, what must not be folded.

use fanfold_store::{Batch, Op, SessionId, SessionUpdate};

use crate::engine::{Engine, OpError};
use crate::log::notes::Note;

/// The most letters of a title.
const LONGEST_TITLE: usize = 100;

/// A title as it is kept: without control and bidi characters, spaces made single, at most 100 letters.
pub fn clean_title(title: &str) -> String {
    let is_meant = |c: &char| !is_hidden(*c);
    let spaced: String =
        title.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(is_meant).collect();
    let words: Vec<&str> = spaced.split(' ').filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(LONGEST_TITLE).collect::<String>().trim_end().to_owned()
}

/// Characters that are not seen but change what is: controls, and marks that turn the direction of a text.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

impl Engine {
    /// Calls a session something; an empty title takes its title away. Gives the title as it is kept.
    pub fn set_title(&self, session: &SessionId, title: &str) -> Result<Option<String>, OpError> {
        let title = Some(clean_title(title)).filter(|title| !title.is_empty());
        self.set(session, SessionUpdate::Title(title.clone()))?;
        Ok(title)
    }

    /// Says what a session is for; an empty goal takes it away.
    pub fn set_goal(&self, session: &SessionId, goal: &str) -> Result<(), OpError> {
        let goal = goal.trim();
        self.set(session, SessionUpdate::Goal((!goal.is_empty()).then(|| goal.to_owned())))
    }

    fn set(&self, session: &SessionId, change: SessionUpdate) -> Result<(), OpError> {
        self.write(vec![Op::Update(session.clone(), change)])
    }

    /// Notes that a message must not be folded, or that it may be again.
    pub fn pin(&self, session: &SessionId, message: u32, is_pinned: bool) -> Result<(), OpError> {
        let n_messages = self.row(session)?.n_messages;
        if message >= n_messages {
            return Err(OpError::wrong(
                format!("session {session} has no message {message}"),
                format!("its messages are counted from 0 to {}", n_messages.max(1) - 1),
            ));
        }
        self.happened(session, &if is_pinned { Note::Pinned { message } } else { Note::Unpinned { message } })
    }

    /// Notes something that the next view takes into account.
    pub fn happened(&self, session: &SessionId, note: &Note) -> Result<(), OpError> {
        self.write(vec![Op::AddEvent(session.clone(), note.event())])
    }

    /// Writes a batch at this moment.
    pub(crate) fn write(&self, ops: Vec<Op>) -> Result<(), OpError> {
        self.store.commit(&Batch { at: self.clock.now(), expected_tips: Vec::new(), ops })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_what_they_look_like() {
        assert_eq!(clean_title("  Fix\tthe\n parser  "), "Fix the parser");
        assert_eq!(clean_title("a\u{202e}b\u{0}c\u{200b}d"), "abcd");
        assert_eq!(clean_title(&"ä".repeat(300)).chars().count(), 100);
        assert_eq!(clean_title("\u{7}\u{200e} "), "");
    }
}
