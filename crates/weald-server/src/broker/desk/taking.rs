//! What takes work out of the run's own worktree: snapshots, and landing, one at a time.

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

    /// Lands it as the run's session may.
    pub(super) fn land(&self, wish: &LandWish) -> Result<Reply, Failure> {
        let words = wish.report.as_ref().map_or(0, String::len);
        if words > limits::TEXT {
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
