//! Caches values derived from encoded messages, so that a message with the same inputs is not encoded again.

use std::collections::HashMap;
use std::hash::{Hash as _, Hasher};

use xxhash_rust::xxh3::xxh3_128;

use super::entry_map::EntryRole;
use super::outgoing::{OutPortion, SendItem};

/// Values derived from the encoded messages of one conversation, by a hash of the encoder's inputs.
#[derive(Debug)]
pub struct Memo<T> {
    encoded: HashMap<u128, Encoded<T>>,
    bytes: ByteBuffer,
}

/// The role of an encoded message, and the value derived from it.
#[derive(Debug, Clone)]
pub(crate) struct Encoded<T> {
    pub(crate) role: EntryRole,
    pub(crate) value: T,
}

impl<T> Default for Memo<T> {
    fn default() -> Memo<T> {
        Memo { encoded: HashMap::new(), bytes: ByteBuffer::default() }
    }
}

impl<T: Clone> Memo<T> {
    pub(crate) fn get_or_insert_with(
        &mut self,
        send: &SendItem<'_>,
        encode: impl FnOnce() -> Option<Encoded<T>>,
    ) -> Option<Encoded<T>> {
        self.bytes.0.clear();
        send.hash_into(&mut self.bytes);
        let hash = xxh3_128(&self.bytes.0);
        if let Some(encoded) = self.encoded.get(&hash) {
            return Some(encoded.clone());
        }
        let encoded = encode()?;
        self.encoded.insert(hash, encoded.clone());
        Some(encoded)
    }
}

/// A hasher that collects its input.
#[derive(Debug, Default)]
struct ByteBuffer(Vec<u8>);

impl Hasher for ByteBuffer {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

impl SendItem<'_> {
    /// Hashes the encoder's inputs, without the original messages, which never change.
    fn hash_into(&self, bytes: &mut ByteBuffer) {
        std::mem::discriminant(self).hash(bytes);
        match self {
            SendItem::Group { message, portions, is_raw, .. } => {
                (message, is_raw).hash(bytes);
                for OutPortion { entry, source, edits } in portions {
                    (entry, source, &edits.stubs).hash(bytes);
                }
            }
            SendItem::Note { text, voice } => (text, voice).hash(bytes),
            SendItem::Missing(call) => call.hash(bytes),
            SendItem::Gap(gap) => gap.hash(bytes),
        }
    }
}
