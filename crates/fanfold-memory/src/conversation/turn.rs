//! A turn: what a person asked, in which conversation, and what was recalled for it.

use crate::conversation::user_text::user_text;

/// A turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryTurn {
    /// The conversation, as the provider knows it.
    pub conversation: String,
    /// How many things were asked in it so far.
    pub number: usize,
    /// What a person asked.
    pub prompt: String,
}

impl MemoryTurn {
    /// The turn that a conversation is at, by what its user's messages say, oldest first. None where nobody asked
    /// anything.
    pub fn from_prompts(prompts: &[String], named: Option<&str>) -> Option<MemoryTurn> {
        let said: Vec<String> =
            prompts.iter().map(|text| user_text(text)).filter(|text| !text.is_empty()).collect();
        let (first, last) = (said.first()?, said.last()?);
        // What a conversation began with is the same in each of its requests.
        let talk = named.map_or_else(|| format!("fanfold-{:016x}", hash(first)), str::to_owned);
        Some(MemoryTurn { conversation: talk, number: said.len(), prompt: last.clone() })
    }
}

/// A number for a text, the same on every machine.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_what_people_asked() {
        let of = |prompts: &[&str]| {
            MemoryTurn::from_prompts(&prompts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), None)
        };
        let first = of(&["<system-reminder>x</system-reminder>hello"]).unwrap();
        let same = of(&["hello", "<system-reminder>the list is empty</system-reminder>"]).unwrap();
        assert_eq!(first, same, "what programs add is no new turn");
        let second = of(&["hello", "hello"]).unwrap();
        assert_eq!(
            (second.conversation == first.conversation, second.number, &*second.prompt),
            (true, 2, "hello")
        );
        assert_ne!(of(&["bye"]).unwrap().conversation, first.conversation);
        assert_eq!(of(&["<system-reminder>x</system-reminder>"]), None);
        assert_eq!(MemoryTurn::from_prompts(&["a".to_owned()], Some("mine")).unwrap().conversation, "mine");
    }
}
