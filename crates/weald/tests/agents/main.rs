//! Agents the way people use them: real agents where they can be had, programs on real terminals.

#![expect(clippy::disallowed_methods, reason = "tests start real processes")]

mod finishing;
mod forms;
mod interactive;
mod landlock;
mod limits;
mod network;
mod reading;
