//! What takes work out of the run's own worktree, or brings work in: snapshots, the target, and landing, one at a time.

use weald_app::operations::Operation;
use weald_app::operations::making::{SyncTree, SyncedTree};
use weald_app::screen::clean_line;
use weald_app::{Failure, LandWish, SnapshotView, exit};

use super::super::limits;
use super::super::protocol::Reply;
use super::{Desk, too_long};

impl Desk<'_> {
    /// A snapshot of the own tree; nothing where nothing changed and only changes are wanted.
    pub(super) fn snapshot(&self, if_changed: bool) -> Result<Option<SnapshotView>, Failure> {
        let name = Some(self.authority.tree.as_str());
        Ok(match if_changed {
            true => self.trees.keep_work(&self.trees.named(name)?)?,
            false => Some(self.trees.snapshot(name)?),
        })
    }

    /// Brings the newest target into the own tree; a conflict is left for the run.
    pub(super) fn sync(&self, wanted: &SyncTree) -> Result<Reply, Failure> {
        let name = Some(self.authority.tree.as_str());
        let synced = self.trees.sync_beside_runs(name, wanted.rebase)?;
        let mut notes = Vec::new();
        for path in &synced.set_aside {
            let path = clean_line(path);
            notes.push(format!(
                "ignored by git and in the way, so it is kept: {path}"
            ));
        }
        let synced = SyncedTree::of(self.trees, synced);
        let mut reply = Reply::of(&synced);
        (reply.exit, reply.notes) = (SyncTree::exit(&synced), notes);
        Ok(reply)
    }

    /// Lands it as the run's session may.
    pub(super) fn land(&self, wish: &LandWish) -> Result<Reply, Failure> {
        let words = [&wish.report, &wish.message].into_iter().flatten();
        if words.map(String::len).sum::<usize>() > limits::TEXT {
            return Err(too_long());
        }
        let busy = |_| {
            Failure::new(
                "landing_busy",
                exit::BUSY,
                "a landing of this run is in progress",
            )
            .hint("wait for it: weald events --tree NAME")
        };
        let _turn = self.landing.try_lock().map_err(busy)?;
        self.lander.land(&self.authority, wish)
    }
}
