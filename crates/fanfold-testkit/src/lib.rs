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
