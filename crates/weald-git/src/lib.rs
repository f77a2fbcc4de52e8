//! git: the process, and what can be read of a repository without one.
//!
//! Knows object ids and refs, not tasks. [`Git`] is the one builder and runner of git processes: scrubbed environment,
//! closed standard input, fixed configuration, a time limit. [`Repository`] finds the common directory and reads refs by
//! itself, because a process costs more than a whole command may; whatever it does not understand it asks git.

mod process;
mod refs;
mod repository;

pub use process::{Git, GitError, MINIMUM_VERSION, Output, require_version};
pub use refs::{Commit, Reference, Target};
pub use repository::{Blob, DiscoverError, Repository};
