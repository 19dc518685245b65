//! What the tests of several crates share. All but real clients follows from a seed.

mod rng; //               numbers from a seed
mod words; //             words that are hard to write down
pub mod bodies; //        conversations as clients write them, and as they should not
#[cfg(unix)]
pub mod clients; //       real clients, and what they send and write
pub mod conversations; // conversations as entries, with all that happens in long ones
pub mod engines; //       one suite for every engine that keeps to the contract
pub mod kinds; //         texts of every kind that a tool may answer with
pub mod marks; //         errors, paths and ids of a text, which must not be lost
pub mod trajectories; //  recorded conversations, where they are at hand
pub mod valid; //         what each provider accepts of a list of messages, by its documentation
pub mod stages; //        one task, step after step
pub mod talks; //         whole conversations, request after request, valid by those rules
pub mod rules; //         the documented rules of each API for a whole request, each by its name
pub mod upstream; //      a scripted provider on loopback, with faults
pub mod summaries; //     what models answer when they are asked for a summary
pub mod memory; //        a scripted provider of memory, with faults
pub mod caller; //        a client with a clock

pub use rng::Rng;
