//! All cores for one session: who asks works, and a pool beside it.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use fanfold_core::{Count, Workers};
use fanfold_wire::Change;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// All cores, for a session.
#[derive(Debug, Clone, Copy)]
pub struct Threads;

impl Threads {
    /// Counts changes.
    pub fn count_all(self, changes: &mut [Change], counter: &dyn Count) {
        const SHARE: usize = 16;
        let shares: Vec<Mutex<&mut [Change]>> = changes.chunks_mut(SHARE).map(Mutex::new).collect();
        self.run(shares.len(), &|i| {
            let mut share = shares[i].lock().unwrap_or_else(PoisonError::into_inner);
            share.iter_mut().for_each(|change| change.count(counter));
        });
    }
}

/// The threads beside the one that asks: one fewer than there are cores, since that one works, too. With one more, all
/// would wait for one another in turn. None where there is one core.
static POOL: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let n_cores = thread::available_parallelism().map_or(1, NonZero::get);
    let pool = ThreadPoolBuilder::new().num_threads(n_cores - 1).thread_name(|_| "fanfold".to_owned());
    // Without threads the one that asks does it all.
    (n_cores > 1).then(|| pool.build().ok()).flatten()
});

/// How many jobs the pool has, those that wait for a thread included.
static N_BUSY: AtomicUsize = AtomicUsize::new(0);

/// A job of the pool, as long as it is there.
struct Busy;

impl Busy {
    fn one_more() -> Busy {
        N_BUSY.fetch_add(1, Ordering::Relaxed);
        Busy
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        N_BUSY.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers for Threads {
    fn count(&self) -> usize {
        POOL.as_ref().map_or(1, |pool| pool.current_num_threads() + 1)
    }

    /// Threads that have something else to do are not asked: who asks would wait for them.
    fn run(&self, n: usize, job: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = || {
            let mine = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            mine.take_while(|i| *i < n).for_each(job);
        };
        let Some(pool) = POOL.as_ref().filter(|_| n > 1) else { return work() };
        let n_free = pool.current_num_threads().saturating_sub(N_BUSY.load(Ordering::Relaxed));
        // Who asks begins at once: until another thread is awake, much is done.
        pool.in_place_scope(|scope| {
            for _ in 0..n_free.min(n - 1) {
                let busy = Busy::one_more();
                scope.spawn(|_| {
                    let _busy = busy;
                    work();
                });
            }
            work();
        });
    }

    fn soon(&self, job: Box<dyn FnOnce() + Send>) {
        if let Some(pool) = &*POOL {
            let busy = Busy::one_more();
            pool.spawn(|| {
                let _busy = busy;
                job();
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use fanfold_core::{Entry, Tokens, Words};
    use fanfold_wire::Format;

    use super::*;
    use crate::follow::pipeline::decode;

    #[test]
    fn every_job_is_done_once() {
        for n in [0, 1, 2, 3, 100, 1000] {
            let done: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
            Threads.run(n, &|i| {
                done[i].fetch_add(1, Ordering::Relaxed);
            });
            assert!(done.iter().all(|times| times.load(Ordering::Relaxed) == 1), "{n}");
        }
    }

    #[test]
    fn who_asks_does_not_wait_for_threads_that_are_at_something_else() {
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        for _ in 0..2 * Threads.count() {
            let ended = Arc::clone(&ended);
            // Each waits until the test is over.
            Threads.soon(Box::new(move || drop(ended.lock().map(|ended| ended.recv()))));
        }
        let n_done = AtomicUsize::new(0);
        Threads.run(100, &|_| {
            n_done.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(n_done.into_inner(), 100);
        drop(end);
    }

    /// Also where all threads are busy with jobs of their own that ask for help.
    #[test]
    fn jobs_within_jobs_are_done() {
        let n_done = AtomicUsize::new(0);
        Threads.run(50, &|_| {
            Threads.run(20, &|_| {
                n_done.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(n_done.into_inner(), 1000);
    }

    #[test]
    fn changes_are_counted_together_as_one_by_one() {
        let messages: Vec<String> =
            (0..100).map(|i| format!(r#"{{"role":"user","content":"{}"}}"#, "word ".repeat(i + 1))).collect();
        let body = format!("[{}]", messages.join(","));
        let (_, mut together) = decode(body, Some(Format::Chat)).expect("a conversation");
        let mut alone = together.clone();
        Threads.count_all(&mut together, &Words);
        alone.iter_mut().for_each(|change| change.count(&Words));
        assert_eq!(together, alone);
        let tokens = |change: &Change| match change {
            Change::Append(Entry::Prompt(prompt)) => prompt.body.tokens(),
            _ => Tokens::ZERO,
        };
        assert_eq!(together.iter().map(tokens).sum::<Tokens>(), Tokens(5050));
    }
}
