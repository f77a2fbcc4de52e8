#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weald_terminal::fuzzing::terminal_wire(data));
