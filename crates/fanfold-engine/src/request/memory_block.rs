//! The memory block of a request: recalled text at the end of its last message, within a token reserve of its own.
//!
//! It is no message: the store has it among the edits of the request that it was sent with, and nowhere else.

use fanfold_core::{Budget, Count, Tokens};
use fanfold_wire::{Format, accepts_memory_block, append_memory_block, fence};

use crate::follow::terms::Terms;
use crate::request::pipeline::Ask;

/// Memory for a request.
#[derive(Clone, Copy)]
pub struct Recollection<'a> {
    /// How many tokens it may have. They are kept free in each request of the session, whether something is recalled or
    /// not: so what is folded does not depend on what is recalled.
    pub room: Tokens,
    /// What is recalled, asked for when the rest of the request is ready.
    pub recall: &'a (dyn Fn() -> Option<String> + Sync),
}

/// Of the room, memory gets an eighth at most.
const SHARE: u32 = 125;

impl Recollection<'_> {
    fn room_in(&self, budget: Budget) -> Tokens {
        self.room.min(budget.room().permille(SHARE))
    }
}

/// Terms that keep room for memory.
pub(crate) fn within(terms: &Terms, memory: Recollection<'_>) -> Terms {
    let reserve = terms.budget.reserve() + memory.room_in(terms.budget);
    Terms { budget: Budget::with_reserve(terms.budget.window(), reserve), ..terms.clone() }
}

/// A memory block and the body that it was added to.
pub(crate) struct WithMemory {
    pub(crate) body: String,
    pub(crate) block: String,
    pub(crate) tokens: Tokens,
}

/// Adds recalled text to the end of an encoded body. Returns `None` if nothing is recalled or the body has no place for it.
pub(crate) fn add_memory(ask: &Ask<'_>, encoded: &str, format: Format) -> Option<WithMemory> {
    let memory = ask.memory.filter(|_| accepts_memory_block(ask.body, format))?;
    let text = (memory.recall)().filter(|text| !text.trim().is_empty())?;
    let (block, tokens) = fitting(&text, memory.room_in(ask.terms.budget), ask.terms.counter)?;
    let body = append_memory_block(encoded, format, &block)?;
    Some(WithMemory { body, block, tokens })
}

/// A text in its fence, cut at the end of a line to fit a room, with its size. `None` if not even one line fits.
fn fitting(text: &str, room: Tokens, counter: &dyn Count) -> Option<(String, Tokens)> {
    let mut text = text.trim();
    loop {
        let block = fence(text);
        let tokens = counter.count(&block);
        if tokens <= room {
            return Some((block, tokens));
        }
        // A little less than its share, so that it comes to an end soon.
        let share = text.len() as u64 * room.0 / tokens.0.max(1) * 9 / 10;
        let end =
            text.floor_char_boundary(usize::try_from(share).unwrap_or(0).min(text.len().saturating_sub(1)));
        let end = text[..end].rfind('\n').unwrap_or(0);
        text = text[..end].trim_end();
        if text.is_empty() {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use fanfold_core::Words;

    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_at_a_line() {
        let text: String = (0..200).map(|i| format!("- fact number {i}\n")).collect();
        let (block, _) = fitting(&text, Tokens(120), &Words).unwrap();
        assert!(Words.count(&block) <= Tokens(120) && block.contains("number 1\n"), "{block}");
        assert!(block.lines().all(|line| !line.starts_with("- fact") || line.split(' ').count() == 4));
        assert_eq!(fitting(&text, Tokens(10), &Words), None);
        assert_eq!(fitting(&"x ".repeat(500), Tokens(120), &Words), None, "one line is cut nowhere");
    }
}
