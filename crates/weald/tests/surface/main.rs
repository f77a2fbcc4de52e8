//! What people see and type: one module for each theme.

mod animation;
mod apparmor;
mod branches;
mod commits;
mod configuration;
mod demo;
mod diffs;
mod gate;
mod help;
mod leaving;
mod listings;
mod messages;
mod naming;
mod projects;
mod shell;
mod undo;
mod widths;

use weald_testkit::TestEnv;

fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_weald"))
}

/// A repository with two files and an author of its own.
fn repository() -> TestEnv {
    TestEnv::with_files(env!("CARGO_BIN_EXE_weald"))
}
