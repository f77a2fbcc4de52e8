#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weald_git::fuzzing::ref_file(data));
