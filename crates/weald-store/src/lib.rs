//! Backends of the store.
//!
//! [`SqliteStore`] is the default: one file for all processes of a repository. [`MemoryStore`] is the model that the
//! conformance suite compares it with, and what unit tests run on. Neither decides anything: the rules are in the core.

mod memory;
mod network;
mod sqlite;

use weald_core::id::Seq;
use weald_core::store::StoreError;

pub use memory::MemoryStore;
pub use sqlite::{DATABASE_FILE, Rebuilding, Remains, SqliteStore};

/// An event that can't be written down at its place.
fn out_of_order(given: Seq, next: Seq) -> StoreError {
    StoreError::Backend(format!("event {given} came where {next} is next"))
}
