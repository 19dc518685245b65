#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fanfold_fuzz::reply::check(data));
