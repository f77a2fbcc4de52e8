//! The labelled steps of every operation that takes more than one: `weald_git::step` says what can happen at them, and
//! weald-testkit lists them.

pub use weald_git::{step, step_of};
