//! The vault: its size, its upkeep, and what it holds of worktrees that were deleted for good.

use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use weald_core::SignedDuration;
use weald_core::tree::TreeStatus;

use super::Operation;
use crate::{BroughtBack, Call, Failure, KeptWork, TreeError, Wanted};

entries!(ShowVault, MaintainVault, ListKeptWork, BringBack);

/// Shows where the objects of all worktrees are.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowVault {}

/// The store of all worktrees' objects.
#[derive(Debug, Serialize)]
pub struct ShownVault {
    /// All of it, as one object.
    pub vault: VaultView,
}

/// The store of all worktrees' objects.
#[derive(Debug, Serialize)]
pub struct VaultView {
    /// Where it is.
    pub path: PathBuf,
    /// Whether there is one yet.
    pub exists: bool,
    /// How many packs it has.
    pub packs: usize,
    /// What they take.
    pub bytes: u64,
    /// Bytes that main shares with it.
    pub shared_bytes: u64,
    /// Bytes of main's own packs.
    pub main_bytes: u64,
}

impl Operation for ShowVault {
    const NAME: &'static str = "vault_status";
    const READS: bool = true;
    type Output = ShownVault;

    fn run(self, call: &Call<'_>) -> Result<ShownVault, Failure> {
        let ground = call.ground()?;
        let vault = ground.trees(call)?.vault();
        let status = vault.status();
        let vault = VaultView {
            path: vault.path().to_owned(),
            exists: status.exists,
            packs: status.packs,
            bytes: status.bytes,
            shared_bytes: status.shared_bytes,
            main_bytes: status.main_bytes,
        };
        Ok(ShownVault { vault })
    }
}

/// Shares main's packs again, and drops packs of which other packs have everything.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaintainVault {
    /// How long such a pack is kept. Zero only if nothing else uses the repository.
    pub grace: SignedDuration,
    /// Do nothing unless it is due, and then with the usual grace.
    pub if_due: bool,
}

/// What the upkeep of the vault did.
#[derive(Debug, Serialize)]
pub struct MaintainedVault {
    /// Nothing is told of what was done because it was due.
    pub vault: Option<VaultMaintenance>,
}

/// What the upkeep of the vault did.
#[derive(Debug, Serialize)]
pub struct VaultMaintenance {
    /// Packs of main that are now shared.
    pub linked: usize,
    /// Packs whose grace was over.
    pub dropped: usize,
    /// Packs that wait for the end of the grace.
    pub waiting: usize,
}

impl Operation for MaintainVault {
    const NAME: &'static str = "vault_maintain";
    type Output = MaintainedVault;

    fn run(self, call: &Call<'_>) -> Result<MaintainedVault, Failure> {
        let ground = call.ground()?;
        let vault = ground.trees(call)?.vault();
        let now = SystemTime::from(call.now());
        if self.if_due {
            vault.maintain_if_wanted(now)?;
            return Ok(MaintainedVault { vault: None });
        }
        let _progress = call.stage("keeping up the vault");
        let done = vault.maintain(now, self.grace.unsigned_abs())?;
        let vault = VaultMaintenance {
            linked: done.linked,
            dropped: done.dropped,
            waiting: done.waiting,
        };
        Ok(MaintainedVault { vault: Some(vault) })
    }
}

/// Lists work whose worktree or branch is gone.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListKeptWork {}

/// What the vault holds of worktrees that were deleted for good, the newest first.
#[derive(Debug, Serialize)]
pub struct AllKeptWork {
    /// Each with its commits.
    pub kept: Vec<KeptWork>,
}

impl Operation for ListKeptWork {
    const NAME: &'static str = "vault_list";
    const READS: bool = true;
    type Output = AllKeptWork;

    fn run(self, call: &Call<'_>) -> Result<AllKeptWork, Failure> {
        let kept = call.ground()?.trees(call)?.kept_work()?;
        Ok(AllKeptWork { kept })
    }
}

/// Makes a branch of the work of a worktree that was deleted for good. The vault is not changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BringBack {
    /// Its number, or anything that it was called.
    pub tree: String,
    /// Which of its commits.
    pub wanted: Wanted,
}

/// Work that has a branch again.
#[derive(Debug, Serialize)]
pub struct Restored {
    /// Where it is.
    pub restored: BroughtBack,
}

impl Operation for BringBack {
    const NAME: &'static str = "vault_restore";
    type Output = Restored;

    fn run(self, call: &Call<'_>) -> Result<Restored, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let (gone, trashed) = (TreeStatus::Removed, TreeStatus::Trashed);
        let id = match ground.removed_tree(call, &self.tree, gone)? {
            Some(id) => id,
            None => {
                let trashed = ground.removed_tree(call, &self.tree, trashed)?;
                let id = self.tree.clone();
                trashed.ok_or(TreeError::NotInVault { id })?
            }
        };
        let restored = trees.bring_back(id, &self.wanted)?;
        call.tell(&ground.engine);
        Ok(Restored { restored })
    }
}
