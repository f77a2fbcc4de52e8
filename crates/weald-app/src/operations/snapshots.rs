//! Snapshots of a worktree: taking, listing, comparing and restoring them.

use serde::{Deserialize, Serialize};
use weald_core::git_diff::DiffOptions;

use super::{Broker, Inside, Operation, asked};
use crate::git_view::GitView;
use crate::screen::clean_line;
use crate::{Ask, Call, DiffStyle, Failure, Reader, ShownDiff, SnapshotView, TreeView};

entries!(TakeSnapshot, ListSnapshots, RestoreSnapshot, DiffSnapshots);

/// Saves a worktree as it is, uncommitted changes included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeSnapshot {
    /// The caller's own unless given.
    #[serde(default)]
    pub tree: Option<String>,
    /// Only if something changed since the last one.
    #[serde(default)]
    pub if_changed: bool,
}

/// A state of a worktree that can be restored.
#[derive(Debug, Serialize, Deserialize)]
pub struct TakenSnapshot {
    /// Nothing if nothing had changed.
    pub snapshot: Option<SnapshotView>,
}

impl Operation for TakeSnapshot {
    const NAME: &'static str = "snapshot_create";
    type Output = TakenSnapshot;

    fn run(self, call: &Call<'_>) -> Result<TakenSnapshot, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let name = ground.tree_name(call, self.tree.as_deref())?;
        let name = name.as_deref();
        let snapshot = match self.if_changed {
            true => trees.keep_work(&trees.named(name)?)?,
            false => {
                let _progress = call.stage("taking the snapshot");
                Some(trees.snapshot(name)?)
            }
        };
        call.tell(&ground.engine);
        Ok(TakenSnapshot { snapshot })
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<TakenSnapshot> {
        let tree = call.anywhere(self.tree.as_deref());
        let if_changed = self.if_changed;
        let wanted = Self { tree, if_changed };
        Some(asked(broker, call, Ask::SnapshotCreate(wanted)))
    }
}

/// Lists the states that a worktree can go back to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListSnapshots {
    /// The caller's own unless given.
    #[serde(default)]
    pub tree: Option<String>,
}

/// The states that a worktree can go back to.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListedSnapshots {
    /// Oldest first.
    pub snapshots: Vec<SnapshotView>,
}

impl Operation for ListSnapshots {
    const NAME: &'static str = "snapshot_list";
    const READS: bool = true;
    type Output = ListedSnapshots;

    fn run(self, call: &Call<'_>) -> Result<ListedSnapshots, Failure> {
        let ground = call.ground()?;
        let name = ground.tree_name(call, self.tree.as_deref())?;
        let snapshots = ground.trees(call)?.snapshots(name.as_deref())?;
        Ok(ListedSnapshots { snapshots })
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<ListedSnapshots> {
        let tree = call.anywhere(self.tree.as_deref());
        Some(asked(broker, call, Ask::SnapshotList(Self { tree })))
    }
}

/// Puts a worktree back into a saved state; how it was is saved before.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreSnapshot {
    /// By its name.
    pub tree: String,
    /// The newest unless given.
    pub id: Option<u64>,
}

/// A worktree that is in a saved state again.
#[derive(Debug, Serialize)]
pub struct RestoredSnapshot {
    /// As it is now.
    pub tree: TreeView,
    /// The state that it is in.
    pub snapshot: SnapshotView,
    /// What was there before.
    pub before: SnapshotView,
    /// Files that no snapshot holds and that were in the way, by their new names.
    pub set_aside: Vec<String>,
}

impl Operation for RestoreSnapshot {
    const NAME: &'static str = "snapshot_restore";
    type Output = RestoredSnapshot;

    fn run(self, call: &Call<'_>) -> Result<RestoredSnapshot, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let name = ground.tree(call, &self.tree)?.name;
        let restored = trees.restore_snapshot(Some(name.as_str()), self.id)?;
        call.tell(&ground.engine);
        for path in &restored.set_aside {
            let path = clean_line(path);
            call.warn(&format!(
                "in no snapshot and in the way, so it is kept: {path}"
            ));
        }
        Ok(RestoredSnapshot {
            tree: trees.view(restored.tree),
            snapshot: restored.snapshot,
            before: restored.before,
            set_aside: restored.set_aside,
        })
    }
}

/// What changed since a snapshot, or between two.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiffSnapshots {
    /// By its name.
    pub tree: String,
    /// The newest unless given.
    pub from: Option<u64>,
    /// The worktree as it is now unless given.
    pub to: Option<u64>,
    /// As files, a patch, or numbers.
    pub style: DiffStyle,
    /// What git shall do otherwise than usual.
    #[serde(default)]
    pub options: DiffOptions,
    /// A person, whose configuration counts.
    #[serde(skip)]
    pub reader: Option<Reader>,
}

impl Operation for DiffSnapshots {
    const NAME: &'static str = "snapshot_diff";
    type Output = ShownDiff;

    fn run(self, call: &Call<'_>) -> Result<ShownDiff, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let _progress = call.stage("looking");
        let name = ground.tree(call, &self.tree)?.name;
        let name = Some(name.as_str());
        let view = GitView::new(call, &ground.place, self.style, &self.options, self.reader)?;
        let form = view.form.clone();
        Ok(view.show(trees.snapshot_diff(name, self.from, self.to, form)?))
    }
}
