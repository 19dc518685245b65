//! What was made of messages before, for who sends much the same again and again: a message that is made from the same is
//! not written again.

use std::collections::HashMap;
use std::hash::{Hash as _, Hasher};

use xxhash_rust::xxh3::xxh3_128;

use crate::book::Role;
use crate::outgoing::{Piece, Send};

/// What was made of the messages of one conversation that were written, by what they were written from.
#[derive(Debug)]
pub struct Memo<T> {
    made: HashMap<u128, Made<T>>,
    bytes: Bytes,
}

/// What was made of one, and in whose name it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Made<T> {
    pub(crate) role: Role,
    pub(crate) what: T,
}

impl<T> Default for Memo<T> {
    fn default() -> Memo<T> {
        Memo { made: HashMap::new(), bytes: Bytes::default() }
    }
}

impl<T: Clone> Memo<T> {
    /// What was made of it before, or is made now.
    pub(crate) fn get_or_make(
        &mut self,
        send: &Send<'_>,
        make: impl FnOnce() -> Option<Made<T>>,
    ) -> Option<Made<T>> {
        self.bytes.0.clear();
        send.hash_into(&mut self.bytes);
        let print = xxh3_128(&self.bytes.0);
        if let Some(made) = self.made.get(&print) {
            return Some(made.clone());
        }
        let made = make()?;
        self.made.insert(print, made.clone());
        Some(made)
    }
}

/// Takes what is hashed as it is.
#[derive(Debug, Default)]
struct Bytes(Vec<u8>);

impl Hasher for Bytes {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

impl Send<'_> {
    /// All that it is written from, beside what came, which stays as it is.
    fn hash_into(&self, bytes: &mut Bytes) {
        std::mem::discriminant(self).hash(bytes);
        match self {
            Send::Group { message, pieces, is_raw, .. } => {
                (message, is_raw).hash(bytes);
                for Piece { entry, portion, edits } in pieces {
                    (entry, portion, &edits.stubs).hash(bytes);
                }
            }
            Send::Note { text, voice } => (text, voice).hash(bytes),
            Send::Missing(call) => call.hash(bytes),
            Send::Gap(gap) => gap.hash(bytes),
        }
    }
}
