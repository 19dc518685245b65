//! The contract of the counters.

mod golden; //  counts equal those of Python's tiktoken
mod lines; //   lines can be counted one by one
mod hostile; // text made to be slow is counted in time
