//! Slots for work on bodies: blocking threads, limited in number and by the size of the bodies.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::outcome::BypassReason;

/// Body bytes per slot. The data built from a body takes several times its size.
const BYTES_PER_SLOT: usize = 4 << 20;

/// Runs work on blocking threads. Work that misses its deadline keeps its slots until it is done.
pub(crate) struct FoldSlots {
    slots: Arc<Semaphore>,
    n_slots: usize,
}

impl FoldSlots {
    pub(crate) fn new(n_slots: usize) -> FoldSlots {
        FoldSlots { slots: Arc::new(Semaphore::new(n_slots)), n_slots }
    }

    /// Runs work on a body of this size.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        n_bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BypassReason> {
        let n_slots = u32::try_from((1 + n_bytes / BYTES_PER_SLOT).min(self.n_slots)).unwrap_or(1);
        let slots = Arc::clone(&self.slots).acquire_many_owned(n_slots).await;
        let slots = slots.map_err(|_| BypassReason::Deadline)?;
        let work = move || {
            let result = work();
            drop(slots);
            result
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| BypassReason::Panicked)
    }
}
