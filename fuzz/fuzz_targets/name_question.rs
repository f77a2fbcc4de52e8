#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weald_sandbox::fuzzing::name_question(data));
