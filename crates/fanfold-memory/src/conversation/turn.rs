//! The current turn of a conversation, identified by the prompts of its user.

use crate::conversation::user_text::user_text;

/// A turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryTurn {
    /// The name of the conversation at the provider.
    pub conversation: String,
    /// Number of prompts up to this turn.
    pub number: usize,
    /// The user's text.
    pub prompt: String,
}

impl MemoryTurn {
    /// The current turn, from all user messages, oldest first. Returns `None` if the user has not written anything.
    pub fn from_prompts(prompts: &[String], named: Option<&str>) -> Option<MemoryTurn> {
        let texts: Vec<String> =
            prompts.iter().map(|text| user_text(text)).filter(|text| !text.is_empty()).collect();
        let (first, last) = (texts.first()?, texts.last()?);
        // The first prompt is the same in each request of a conversation, so its hash identifies the conversation.
        let conversation = named.map_or_else(|| format!("fanfold-{:016x}", hash(first)), str::to_owned);
        Some(MemoryTurn { conversation, number: texts.len(), prompt: last.clone() })
    }
}

/// FNV-1a hash, the same on every machine.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_counted_by_user_text() {
        let turn = |prompts: &[&str]| {
            MemoryTurn::from_prompts(&prompts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), None)
        };
        let first = turn(&["<system-reminder>x</system-reminder>hello"]).unwrap();
        let same = turn(&["hello", "<system-reminder>the list is empty</system-reminder>"]).unwrap();
        assert_eq!(first, same, "text added by programs is not a new turn");
        let second = turn(&["hello", "hello"]).unwrap();
        assert_eq!(
            (second.conversation == first.conversation, second.number, &*second.prompt),
            (true, 2, "hello")
        );
        assert_ne!(turn(&["bye"]).unwrap().conversation, first.conversation);
        assert_eq!(turn(&["<system-reminder>x</system-reminder>"]), None);
        assert_eq!(MemoryTurn::from_prompts(&["a".to_owned()], Some("mine")).unwrap().conversation, "mine");
    }
}
