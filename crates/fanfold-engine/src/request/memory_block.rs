//! The memory block of a request: text from the memory provider, at the end of the last message, within its own
//! reserve.
//!
//! It is not part of a message: the store has it only among the edits of the request.

use fanfold_core::{Budget, Count, Tokens};
use fanfold_wire::{Format, accepts_memory_block, append_memory_block, fence};

use crate::follow::terms::Terms;
use crate::request::pipeline::RequestInput;

/// The memory of a request: its token reserve, and the function that recalls it.
#[derive(Clone, Copy)]
pub struct MemoryRecall<'a> {
    /// Maximum size. It is reserved in each request of the session, so that folds do not depend on the recalled text.
    pub max_tokens: Tokens,
    /// Recalls a text for the request. Called when the rest of the request is ready.
    pub recall: &'a (dyn Fn() -> Option<String> + Sync),
}

/// Maximum share of the room for memory.
const MAX_SHARE_PERMILLE: u32 = 125;

impl MemoryRecall<'_> {
    fn reserve_in(&self, budget: Budget) -> Tokens {
        self.max_tokens.min(budget.room().permille(MAX_SHARE_PERMILLE))
    }
}

/// Terms with a larger reserve, for the memory block.
pub(crate) fn reserve_memory(terms: &Terms, memory: MemoryRecall<'_>) -> Terms {
    let reserve = terms.budget.reserve() + memory.reserve_in(terms.budget);
    Terms { budget: Budget::with_reserve(terms.budget.window(), reserve), ..terms.clone() }
}

/// A memory block and the body that it was added to.
pub(crate) struct BodyWithMemory {
    pub(crate) body: String,
    pub(crate) block: String,
    pub(crate) tokens: Tokens,
}

/// Adds recalled text to the end of an encoded body. Returns `None` if no text is recalled or the body has no place
/// for it.
pub(crate) fn add_memory(input: &RequestInput<'_>, encoded: &str, format: Format) -> Option<BodyWithMemory> {
    let memory = input.memory.filter(|_| accepts_memory_block(input.body, format))?;
    let text = (memory.recall)().filter(|text| !text.trim().is_empty())?;
    let (block, tokens) = fit_block(&text, memory.reserve_in(input.terms.budget), input.terms.counter)?;
    let body = append_memory_block(encoded, format, &block)?;
    Some(BodyWithMemory { body, block, tokens })
}

/// A fenced text that is cut at the end of a line to fit a reserve, with its size. `None` if not even one line fits.
fn fit_block(text: &str, reserve: Tokens, counter: &dyn Count) -> Option<(String, Tokens)> {
    let mut text = text.trim();
    loop {
        let block = fence(text);
        let tokens = counter.count(&block);
        if tokens <= reserve {
            return Some((block, tokens));
        }
        // Cut to 90 % of the estimate, so that few rounds are needed.
        let share = text.len() as u64 * reserve.0 / tokens.0.max(1) * 9 / 10;
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
    fn a_long_text_is_cut_at_the_end_of_a_line() {
        let text: String = (0..200).map(|i| format!("- fact number {i}\n")).collect();
        let (block, _) = fit_block(&text, Tokens(120), &Words).unwrap();
        assert!(Words.count(&block) <= Tokens(120) && block.contains("number 1\n"), "{block}");
        assert!(block.lines().all(|line| !line.starts_with("- fact") || line.split(' ').count() == 4));
        assert_eq!(fit_block(&text, Tokens(10), &Words), None);
        assert_eq!(fit_block(&"x ".repeat(500), Tokens(120), &Words), None, "a single line is never cut");
    }
}
