//! How many bytes of bodies are held at once. A small body is always held; of large ones, only as many as there is space
//! for, and the next waits.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Space is given out in pieces of this size.
const PIECE: usize = 64 << 10;
/// So much of each body needs no space.
const SMALL: usize = 256 << 10;

/// Where bodies are held.
pub(crate) struct Shelf {
    free: Arc<Semaphore>,
    n_pieces: u32,
}

/// The space of one body; free again when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Space {
    pieces: Option<OwnedSemaphorePermit>,
}

impl Shelf {
    /// A shelf for so many bytes.
    pub(crate) fn new(n_bytes: usize) -> Shelf {
        let n_pieces = u32::try_from(n_bytes.div_ceil(PIECE)).unwrap_or(u32::MAX).clamp(1, MOST_PIECES);
        Shelf { free: Arc::new(Semaphore::new(n_pieces as usize)), n_pieces }
    }

    /// Waits for the space that a body of so many bytes needs beyond what it has. One that is larger than the whole shelf
    /// gets all of it.
    pub(crate) async fn grow(&self, space: &mut Space, n_bytes: usize) {
        let needed = match n_bytes {
            0..=SMALL => 0,
            _ => u32::try_from(n_bytes.div_ceil(PIECE)).unwrap_or(u32::MAX).min(self.n_pieces),
        };
        let has = space.pieces.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = needed.saturating_sub(u32::try_from(has).unwrap_or(u32::MAX));
        if more == 0 {
            return;
        }
        // It is never closed.
        let Ok(got) = Arc::clone(&self.free).acquire_many_owned(more).await else { return };
        match &mut space.pieces {
            Some(pieces) => pieces.merge(got),
            None => space.pieces = Some(got),
        }
    }
}

/// More is more than any machine has.
const MOST_PIECES: u32 = 1 << 28;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn has_space(shelf: &Shelf, space: &mut Space, n_bytes: usize) -> bool {
        tokio::time::timeout(Duration::from_millis(20), shelf.grow(space, n_bytes)).await.is_ok()
    }

    #[tokio::test]
    async fn large_bodies_wait_for_space_and_small_ones_never() {
        let shelf = Shelf::new(4 << 20);
        let (mut one, mut other, mut small) = (Space::default(), Space::default(), Space::default());
        assert!(has_space(&shelf, &mut one, 1 << 20).await);
        assert!(has_space(&shelf, &mut one, 3 << 20).await, "it grows");
        assert!(!has_space(&shelf, &mut other, 2 << 20).await);
        assert!(has_space(&shelf, &mut other, 1 << 20).await, "what waited in vain has taken nothing");
        assert!(has_space(&shelf, &mut small, SMALL).await);
        drop(one);
        assert!(has_space(&shelf, &mut other, 4 << 20).await);
        drop(other);
        assert!(has_space(&shelf, &mut Space::default(), 40 << 20).await, "one that is too large gets all");
    }
}
