//! What takes work out of the run's own tree: snapshots, and landing: one at a time, told by the face that opened the desk.

use weald_app::SnapshotView;

use super::super::limits;
use super::super::protocol::{LandWish, Reply};
use super::{Desk, DeskError};

impl Desk<'_> {
    /// A snapshot of the own tree; nothing where nothing changed and only changes are wanted.
    pub(super) fn snapshot(&self, if_changed: bool) -> Result<Option<SnapshotView>, DeskError> {
        let name = Some(self.authority.tree.as_str());
        Ok(match if_changed {
            true => self.trees.keep_work(&self.trees.named(name)?)?,
            false => Some(self.trees.snapshot(name)?),
        })
    }

    /// Lands it as the run's session may.
    pub(super) fn land(&self, wish: &LandWish) -> Result<Reply, DeskError> {
        let words = wish.report.as_ref().map_or(0, String::len);
        if words > limits::TEXT {
            return Err(DeskError::TooLong);
        }
        let _turn = self.landing.try_lock().map_err(|_| DeskError::Landing)?;
        let landed = self.face.land(&self.authority, wish);
        landed.map_err(DeskError::Fault)
    }
}
