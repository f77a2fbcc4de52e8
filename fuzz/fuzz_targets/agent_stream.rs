#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weald_agents::fuzzing::agent_stream(data));
