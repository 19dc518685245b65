//! Exact counters for the vocabularies that are public.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, TryLockError};

use fanfold_core::{Count, Tokens};
use tiktoken::CoreBpe;

use crate::block::{Block, WIDTH};
use crate::memo::{Memo, SHORT};
use crate::split::{self, Cl100kRules, O200kRules, Rules};

/// The counter of GPT-4o and later.
pub type O200k = Exact<O200kRules>;

/// The counter of GPT-3.5 and GPT-4.
pub type Cl100k = Exact<Cl100kRules>;

/// The counter of GPT-4o and later, made on first use.
pub fn o200k() -> &'static O200k {
    static COUNTER: OnceLock<O200k> = OnceLock::new();
    COUNTER.get_or_init(|| Exact::new("o200k_base"))
}

/// The counter of GPT-3.5 and GPT-4, made on first use.
pub fn cl100k() -> &'static Cl100k {
    static COUNTER: OnceLock<Cl100k> = OnceLock::new();
    COUNTER.get_or_init(|| Exact::new("cl100k_base"))
}

/// Counts tokens as the provider does.
///
/// Words seen before are looked up, at a few hundred megabytes a second; new ones are merged from
/// their bytes, at a microsecond each.
///
/// Special tokens in a text are plain text. A count is exact unless a single piece (a word, a run
/// of one kind of punctuation or of blanks) is longer than about four thousand bytes, or a stretch
/// of non-ASCII text has no blank, newline or CJK punctuation for sixteen thousand. Those are cut,
/// always at the same places, so that any text takes linear time; a cut can add a token or two.
pub struct Exact<R> {
    name: &'static str,
    bpe: &'static CoreBpe,
    /// One table for each thread that counts at the same time; one more thread makes its own.
    memos: [Mutex<Option<Memo>>; 4],
    rules: PhantomData<fn() -> R>,
}

impl<R> Exact<R> {
    fn new(name: &'static str) -> Exact<R> {
        let bpe = tiktoken::get_encoding(name).expect("the vocabulary is embedded");
        Exact { name, bpe, memos: Default::default(), rules: PhantomData }
    }

    /// The same counter before it has seen a word, for who measures it.
    pub fn fresh(&self) -> Exact<R> {
        Exact { name: self.name, bpe: self.bpe, memos: Default::default(), rules: PhantomData }
    }
}

impl<R: Rules> Count for Exact<R> {
    fn count(&self, text: &str) -> Tokens {
        let (before, own) = self.memos.split_at(own_memo() % self.memos.len());
        for memo in own.iter().chain(before) {
            let mut memo = match memo.try_lock() {
                Ok(memo) => memo,
                // A memo is right at every moment, whatever stopped the thread that held it.
                Err(TryLockError::Poisoned(memo)) => memo.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            return count_with::<R>(memo.get_or_insert_with(Memo::new), self.bpe, text);
        }
        count_with::<R>(&mut Memo::new(), self.bpe, text)
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

impl<R> fmt::Debug for Exact<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exact").field(&self.name).finish()
    }
}

/// The number of the memo that a thread takes if it can: what it has filled is in the cache of its core.
fn own_memo() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    OWN.with(|own| *own)
}

fn count_with<R: Rules>(memo: &mut Memo, bpe: &CoreBpe, text: &str) -> Tokens {
    let bytes = text.as_bytes();
    let mut total = 0;
    let mut start = 0;
    while start < bytes.len() {
        let rest = &bytes[start..];
        let mut last = [0; AHEAD];
        let ahead = rest.first_chunk().unwrap_or_else(|| {
            last[..rest.len()].copy_from_slice(rest);
            &last
        });
        let block = Block::of::<R>(ahead.first_chunk().expect("more than a block"), rest.len().min(WIDTH));
        for (at, len) in block {
            let count = || bpe.count(&text[start + at..start + at + len]);
            total += match len <= SHORT {
                true => memo.count_short(split::load16(ahead, at), len, count),
                false => memo.count_medium(&ahead[at..at + len], count),
            };
        }
        total += block.n_sure;
        start += block.len();
        if block.len() == 0 {
            let end = match split::piece_end::<R>(bytes, start) {
                Some(end) => end,
                None => split::stretch_end(text, start),
            };
            total += memo.count(bytes, start, end, || bpe.count(&text[start..end]));
            start = end;
        }
    }
    Tokens(total as u64)
}

/// A block, and so much behind it that sixteen bytes can be loaded from anywhere in it.
const AHEAD: usize = WIDTH + 16;
