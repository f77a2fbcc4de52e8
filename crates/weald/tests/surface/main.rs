//! What people see and type: one module for each theme.

mod configuration;
mod demo;
mod listings;
mod undo;

use weald_testkit::TestEnv;

fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_weald"))
}
