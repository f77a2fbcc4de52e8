//! The binary as people and programs use it: real processes, real repositories.

#![expect(clippy::disallowed_methods, reason = "tests start real processes")]

mod claims;
mod config;
mod crash;
mod events;
mod faces;
mod malformed;
mod messages;
mod sandbox;
mod sandbox_hardening;
mod sandbox_tools;
mod sessions;
mod tasks;
mod trees_control;
mod trees_crash;
mod trees_create;
mod trees_found;
mod trees_look;
mod trees_refuse;
mod trees_remove;
mod trees_states;
mod trees_trash;
mod trees_work;

use weald_testkit::TestEnv;

/// A fresh repository.
fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_weald"))
}
