//! Slots for work on bodies: blocking threads, limited in number. Large bodies have a queue of their own, where smaller
//! ones go first, so that they never occupy all processors.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use tokio::sync::{Semaphore, oneshot};

use crate::outcome::BypassReason;

/// Work per slot, in bytes. The data built from a body takes several times its size.
const BYTES_PER_SLOT: usize = 4 << 20;
/// Bodies with more work wait in the queue of large bodies.
const LARGE: usize = 8 << 20;
/// The work of a message beyond its bytes, in bytes.
const BYTES_PER_MESSAGE: usize = 512;

/// Runs work on blocking threads. Work that misses its deadline keeps its slots until it is done.
pub(crate) struct FoldSlots {
    slots: Arc<Semaphore>,
    n_slots: usize,
    large: Arc<LargeQueue>,
}

/// The size of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodySize {
    pub(crate) n_bytes: usize,
    /// Zero as long as it is not known.
    pub(crate) n_messages: usize,
}

impl BodySize {
    fn work(self) -> usize {
        self.n_bytes.saturating_add(self.n_messages.saturating_mul(BYTES_PER_MESSAGE))
    }
}

impl FoldSlots {
    pub(crate) fn new(n_slots: usize) -> FoldSlots {
        let n_processors = available_parallelism().map_or(1, NonZero::get);
        let large = LargeQueue::new((n_processors / 2).max(1));
        FoldSlots { slots: Arc::new(Semaphore::new(n_slots)), n_slots, large }
    }

    /// Runs work on a body of this size.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        size: BodySize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BypassReason> {
        let n_bytes = size.work();
        let large = if n_bytes > LARGE { Some(self.large.wait(n_bytes).await?) } else { None };
        let n_slots = u32::try_from((1 + n_bytes / BYTES_PER_SLOT).min(self.n_slots)).unwrap_or(1);
        let slots = Arc::clone(&self.slots).acquire_many_owned(n_slots).await;
        let slots = slots.map_err(|_| BypassReason::Deadline)?;
        let work = move || {
            let result = work();
            drop((slots, large));
            result
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| BypassReason::Panicked)
    }
}

/// The queue of large bodies.
struct LargeQueue {
    /// Guards the queue; held to add or remove one entry.
    state: Mutex<QueueState>,
}

struct QueueState {
    n_free: usize,
    n_queued: u64,
    /// By work, then by arrival.
    waiting: BTreeMap<(usize, u64), oneshot::Sender<LargeSlot>>,
}

/// The right to work on a large body. When it is dropped, it goes to the smallest body that waits.
struct LargeSlot {
    queue: Arc<LargeQueue>,
}

impl LargeQueue {
    fn new(n_free: usize) -> Arc<LargeQueue> {
        let state = QueueState { n_free, n_queued: 0, waiting: BTreeMap::new() };
        Arc::new(LargeQueue { state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait(self: &Arc<LargeQueue>, n_bytes: usize) -> Result<LargeSlot, BypassReason> {
        let granted = {
            let mut state = self.state();
            if state.n_free > 0 {
                state.n_free -= 1;
                return Ok(LargeSlot { queue: Arc::clone(self) });
            }
            let (grant, granted) = oneshot::channel();
            state.n_queued += 1;
            let nth = state.n_queued;
            state.waiting.insert((n_bytes, nth), grant);
            granted
        };
        granted.await.map_err(|_| BypassReason::Deadline)
    }
}

impl Drop for LargeSlot {
    fn drop(&mut self) {
        let next = {
            let mut state = self.queue.state();
            let next = state.waiting.pop_first();
            if next.is_none() {
                state.n_free += 1;
            }
            next
        };
        // A body that no longer waits drops the slot again, so that it goes to the next one.
        if let Some((_, next)) = next {
            drop(next.send(LargeSlot { queue: Arc::clone(&self.queue) }));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn size(n_bytes: usize) -> BodySize {
        BodySize { n_bytes, n_messages: 0 }
    }

    #[tokio::test]
    async fn the_smallest_of_the_large_bodies_goes_first() {
        let queue = LargeQueue::new(1);
        let first = queue.wait(9).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiting: Vec<_> = [30, 10, 20]
            .map(|n_bytes| {
                let (queue, order) = (Arc::clone(&queue), Arc::clone(&order));
                tokio::spawn(async move {
                    let slot = queue.wait(n_bytes).await.unwrap();
                    order.lock().unwrap().push(n_bytes);
                    tokio::task::yield_now().await;
                    drop(slot);
                })
            })
            .into();
        let abandoned = tokio::time::timeout(Duration::from_millis(20), queue.wait(5)).await;
        assert!(abandoned.is_err(), "the slot is taken");
        drop(first);
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [10, 20, 30]);
        let state = queue.state();
        assert_eq!((state.n_free, state.waiting.len()), (1, 0), "no slot is lost");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn large_bodies_leave_slots_for_others() {
        let slots = Arc::new(FoldSlots::new(4));
        let n_large = (available_parallelism().map_or(1, NonZero::get) / 2).max(1);
        let (release, released) = std::sync::mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let many_messages = BodySize { n_bytes: 1, n_messages: 20_000 };
        for _ in 0..n_large {
            let (slots, released) = (Arc::clone(&slots), Arc::clone(&released));
            tokio::spawn(async move {
                slots.run(many_messages, move || released.lock().unwrap().recv().is_err()).await
            });
        }
        while slots.large.state().n_free > 0 {
            tokio::task::yield_now().await;
        }
        let within = Duration::from_millis(50);
        assert!(tokio::time::timeout(within, slots.run(size(LARGE + 1), || ())).await.is_err());
        assert!(tokio::time::timeout(within * 100, slots.run(size(1000), || ())).await.is_ok());
        drop(release);
    }
}
