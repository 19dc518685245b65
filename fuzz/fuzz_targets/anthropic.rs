#![no_main]

use fanfold_fuzz::{body, mutate};
use fanfold_wire::Format;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|data: &[u8]| body::check(data, Format::Anthropic));
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::body(data, size, max_size, seed)
});
