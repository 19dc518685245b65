//! A thread pool for one session's counting and scanning.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use fanfold_core::{Count, ParallelMap, Task, parallel_map};
use fanfold_wire::Change;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Runs tasks on all cores of the machine.
#[derive(Debug, Clone, Copy)]
pub struct Threads;

impl Threads {
    /// Counts changes in parallel.
    pub fn count_all(self, changes: &mut [Change], counter: &dyn Count) {
        const CHUNK: usize = 16;
        parallel_map(&self, changes.chunks_mut(CHUNK).collect(), |chunk: &mut [Change]| {
            chunk.iter_mut().for_each(|change| change.count(counter));
        });
    }
}

/// The pool has one thread fewer than the machine has cores, because the calling thread also runs tasks. On a machine
/// with one core there is no pool.
static POOL: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let n_cores = thread::available_parallelism().map_or(1, NonZero::get);
    let pool = ThreadPoolBuilder::new().num_threads(n_cores - 1).thread_name(|_| "fanfold".to_owned());
    // If no thread can be started, the calling thread runs all tasks.
    (n_cores > 1).then(|| pool.build().ok()).flatten()
});

/// The number of pool threads that are working for a caller or are about to.
static N_BUSY: AtomicUsize = AtomicUsize::new(0);

/// Counts one busy thread while it exists.
struct BusyThread;

impl BusyThread {
    fn new() -> BusyThread {
        N_BUSY.fetch_add(1, Ordering::Relaxed);
        BusyThread
    }
}

impl Drop for BusyThread {
    fn drop(&mut self) {
        N_BUSY.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ParallelMap for Threads {
    fn n_threads(&self) -> usize {
        POOL.as_ref().map_or(1, |pool| pool.current_num_threads() + 1)
    }

    /// Uses idle threads only: waiting for a busy one would take longer than running its tasks here.
    fn run(&self, tasks: Vec<Task<'_>>) {
        let n_tasks = tasks.len();
        // Guards the tasks that no thread has started yet.
        let tasks = Mutex::new(tasks.into_iter());
        let next = || tasks.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || std::iter::from_fn(next).for_each(|task| task());
        let Some(pool) = POOL.as_ref().filter(|_| n_tasks > 1) else { return work() };
        let n_idle = pool.current_num_threads().saturating_sub(N_BUSY.load(Ordering::Relaxed));
        pool.in_place_scope(|scope| {
            for _ in 0..n_idle.min(n_tasks - 1) {
                let busy = BusyThread::new();
                scope.spawn(|_| {
                    let _busy = busy;
                    work();
                });
            }
            work();
        });
    }
}

#[cfg(test)]
mod tests {
    use fanfold_core::{Entry, Tokens, Words};
    use fanfold_wire::Format;

    use super::*;
    use crate::follow::folded_conversation::decode;

    #[test]
    fn results_are_in_the_order_of_the_inputs() {
        for n in [0, 1, 2, 3, 100, 1000] {
            let doubled = parallel_map(&Threads, (0..n).collect(), |i| 2 * i);
            assert_eq!(doubled, (0..n).map(|i| 2 * i).collect::<Vec<_>>());
        }
    }

    /// Nested maps finish even when every thread runs a task that starts another map.
    #[test]
    fn nested_maps_finish() {
        let sums = parallel_map(&Threads, (0..50).collect(), |i| {
            parallel_map(&Threads, (0..20).collect(), |k| i * k).into_iter().sum::<i32>()
        });
        assert_eq!(sums, (0..50).map(|i| i * 190).collect::<Vec<_>>());
    }

    #[test]
    fn parallel_counts_equal_sequential_counts() {
        let messages: Vec<String> =
            (0..100).map(|i| format!(r#"{{"role":"user","content":"{}"}}"#, "word ".repeat(i + 1))).collect();
        let body = format!("[{}]", messages.join(","));
        let (_, mut parallel) = decode(body, Some(Format::Chat)).expect("a conversation");
        let mut sequential = parallel.clone();
        Threads.count_all(&mut parallel, &Words);
        sequential.iter_mut().for_each(|change| change.count(&Words));
        assert_eq!(parallel, sequential);
        let tokens = |change: &Change| match change {
            Change::Append(Entry::Prompt(prompt)) => prompt.body.tokens(),
            _ => Tokens::ZERO,
        };
        assert_eq!(parallel.iter().map(tokens).sum::<Tokens>(), Tokens(5050));
    }
}
