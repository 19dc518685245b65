//! Who does what can be done side by side. The core starts no threads of its own; a host may lend it some.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::tokens::{Count, Tokens};

/// Does jobs that do not depend on one another, one by one or at once.
pub trait Workers: Sync {
    /// How many of them work at once.
    fn count(&self) -> usize;

    /// Does the jobs numbered from zero to `n`, each once, and waits for all of them.
    fn run(&self, n: usize, job: &(dyn Fn(usize) + Sync));

    /// Does a job beside what else is done, at some time or never. Nobody waits for it.
    fn soon(&self, job: Box<dyn FnOnce() + Send>) {
        drop(job);
    }
}

/// One job after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alone;

impl Workers for Alone {
    fn count(&self) -> usize {
        1
    }

    fn run(&self, n: usize, job: &(dyn Fn(usize) + Sync)) {
        (0..n).for_each(job);
    }
}

/// What each of some texts costs, counted side by side.
pub(crate) fn count_all(texts: &[&str], counter: &dyn Count, workers: &dyn Workers) -> Vec<Tokens> {
    /// So many bytes are one job: fewer are counted before another thread has heard of them.
    const SHARE: usize = 2 * 1024;
    let n_bytes: usize = texts.iter().map(|text| text.len()).sum();
    if workers.count() == 1 || n_bytes < 2 * SHARE {
        return texts.iter().map(|text| counter.count(text)).collect();
    }
    let mut shares: Vec<Range<usize>> = Vec::with_capacity(n_bytes / SHARE + 1);
    let (mut from, mut n_bytes) = (0, 0);
    for (i, text) in texts.iter().enumerate() {
        n_bytes += text.len();
        if n_bytes >= SHARE || i + 1 == texts.len() {
            shares.push(from..i + 1);
            (from, n_bytes) = (i + 1, 0);
        }
    }
    let counts: Vec<AtomicU64> = texts.iter().map(|_| AtomicU64::new(0)).collect();
    workers.run(shares.len(), &|share| {
        for i in shares[share].clone() {
            counts[i].store(counter.count(texts[i]).0, Ordering::Relaxed);
        }
    });
    counts.into_iter().map(|count| Tokens(count.into_inner())).collect()
}
