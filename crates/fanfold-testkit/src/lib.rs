//! Shared test support: input generators, fakes of external programs, contract suites and test clients.
//!
//! Everything is reproducible from a seed, except the programs in `clients`, which are real.

mod rng; //              pseudorandom numbers from a seed
pub mod generators; //   conversations, request bodies and tool outputs from a seed
pub mod trajectories; // recorded conversations, if they are present
pub mod fakes; //        scripted model and memory providers, with faults
pub mod contracts; //    checks of requests, engines and shortened texts
pub mod clients; //      a timing HTTP client, and real coding agents

pub use rng::Rng;

/// The handles of the entries of records in a text. The text may be JSON, where a line end is escaped.
pub fn handles_in(text: &str) -> Vec<String> {
    let text = text.replace("\\n", "\n");
    let is_handle = |word: &&str| word.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let words = text.lines().filter_map(|line| Some(line.strip_prefix('#')?.split_once(' ')?.0));
    words.filter(is_handle).map(|word| format!("#{word}")).collect()
}
