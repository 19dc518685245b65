//! Parallel execution. The core starts no threads; a host may provide some.

/// A unit of work that is independent of all others.
pub type Task<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Runs independent tasks, one after another or in parallel.
pub trait ParallelMap: Sync {
    /// The number of tasks that run at the same time.
    fn n_threads(&self) -> usize;

    /// Runs each task once and waits for all of them.
    fn run(&self, tasks: Vec<Task<'_>>);
}

/// Runs one task after another, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequential;

impl ParallelMap for Sequential {
    fn n_threads(&self) -> usize {
        1
    }

    fn run(&self, tasks: Vec<Task<'_>>) {
        tasks.into_iter().for_each(|task| task());
    }
}

/// Applies a function to each input and returns the results in the order of the inputs.
pub fn parallel_map<I: Send, T: Send>(
    parallel: &dyn ParallelMap,
    inputs: Vec<I>,
    apply: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    let mut results: Vec<Option<T>> = inputs.iter().map(|_| None).collect();
    let apply = &apply;
    let mut tasks: Vec<Task<'_>> = Vec::with_capacity(inputs.len());
    for (input, result) in inputs.into_iter().zip(&mut results) {
        tasks.push(Box::new(move || *result = Some(apply(input))));
    }
    parallel.run(tasks);
    results.into_iter().map(|result| result.expect("every task runs once")).collect()
}
