//! One file a command: its arguments, the call of the engine, what it prints.

pub mod board;
pub mod completions;
pub mod config;
pub mod demo;
pub mod events;
pub mod init;
pub mod man;
pub mod msg;
pub mod sandbox;
pub mod session;
pub mod task;
