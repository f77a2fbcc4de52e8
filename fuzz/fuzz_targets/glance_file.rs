#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weald_trees::fuzzing::glance_file(data));
