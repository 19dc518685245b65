//! Exact counters for the vocabularies that are public.

use std::fmt;
use std::sync::OnceLock;

use fanfold_core::{Count, Tokens};
use tiktoken::CoreBpe;

/// The counter of GPT-4o and later, loaded on first use.
pub fn o200k() -> &'static Exact {
    static COUNTER: OnceLock<Exact> = OnceLock::new();
    COUNTER.get_or_init(|| Exact::new("o200k_base"))
}

/// The counter of GPT-3.5 and GPT-4, loaded on first use.
pub fn cl100k() -> &'static Exact {
    static COUNTER: OnceLock<Exact> = OnceLock::new();
    COUNTER.get_or_init(|| Exact::new("cl100k_base"))
}

/// Counts tokens as the provider does. Special tokens in a text are plain text.
pub struct Exact {
    name: &'static str,
    bpe: &'static CoreBpe,
}

impl Exact {
    fn new(name: &'static str) -> Exact {
        let bpe = tiktoken::get_encoding(name).expect("the vocabulary is embedded");
        Exact { name, bpe }
    }
}

impl Count for Exact {
    fn count(&self, text: &str) -> Tokens {
        Tokens(self.bpe.count(text) as u64)
    }

    fn is_cut_at_lines(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        self.name
    }

    fn is_exact(&self) -> bool {
        true
    }
}

impl fmt::Debug for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exact").field(&self.name).finish()
    }
}
