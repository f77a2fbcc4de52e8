//! Tasks for people who work on weald.
//!
//! `bench` measures, always against something in the same run; `tidy` reads the sources and says what breaks a house
//! rule. The tidy test (`tests/tidy.rs`) fails on any finding.

pub mod bench;
pub mod tidy;
