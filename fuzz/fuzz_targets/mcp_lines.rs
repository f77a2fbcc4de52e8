#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weald_server::fuzzing::mcp_lines(data));
