//! Backends of the store.
//!
//! [`SqliteStore`] is the default: one file for all processes of a repository. [`MemoryStore`] is the model that the
//! conformance suite compares it with, and what unit tests run on. Neither decides anything: the rules are in the core.

mod memory;
mod network;
mod sqlite;

pub use memory::MemoryStore;
pub use sqlite::{DATABASE_FILE, SqliteStore};
