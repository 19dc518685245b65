//! Who does what can be done side by side. The core starts no threads of its own; a host may lend it some.

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
