//! `weald restore`: what was removed comes back.
//!
//! `weald rescue` is not part of it: nothing was removed there, and it decides how an agent continues.

use clap::Args;
use weald_app::Failure;

use super::{snapshot, trash, vault};
use crate::context::Context;

/// Restore a removed worktree, or list what can be restored
///
/// --snapshot returns an existing worktree to a snapshot; its current state is saved as a snapshot first. --purged creates a
/// branch from the work that the vault keeps of a permanently deleted worktree. The vault is not changed.
#[derive(Args)]
pub struct Restore {
    /// Number or name of the worktree; without one, lists them
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Restore the files of this snapshot
    #[arg(long, value_name = "N", requires = "name")]
    snapshot: Option<u64>,
    /// Restore permanently deleted work as a branch
    #[arg(long)]
    purged: bool,
    /// Commit to use instead of its last one
    #[arg(long, value_name = "COMMIT", requires_all = ["name", "purged"], conflicts_with = "snapshot")]
    commit: Option<String>,
}

impl Restore {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let (snapshot, commit) = (self.snapshot, self.commit);
        match (self.name, self.purged) {
            (None, false) => trash::list(context),
            (None, true) => vault::list(context),
            (Some(id), true) => vault::Restore {
                id,
                commit,
                snapshot,
            }
            .run(context),
            (Some(name), false) if snapshot.is_some() => {
                snapshot::Restore { name, id: snapshot }.run(context)
            }
            (Some(id), false) => trash::Restore { id }.run(context),
        }
    }

    /// Whether it only lists.
    pub fn only_reads(&self) -> bool {
        self.name.is_none()
    }
}
