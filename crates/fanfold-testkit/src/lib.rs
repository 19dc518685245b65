//! What the tests of several crates share. Everything follows from a seed.

mod rng; //        numbers from a seed
pub mod bodies; // conversations as clients write them, and as they should not

pub use rng::Rng;
