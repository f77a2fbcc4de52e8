//! Looking up the records of worktrees.

use weald_core::name::TreeName;
use weald_core::store::{Read, StoreError};
use weald_core::tree::{Tree, TreeStatus};

/// The record of a name: the one that has it, else the newest that had it.
pub fn called(tx: &(impl Read + ?Sized), name: &TreeName) -> Result<Option<Tree>, StoreError> {
    let newest = tx.tree(name)?;
    let has = |tree: &Tree| tree.is_live() || tree.status == TreeStatus::Creating;
    if newest.as_ref().is_none_or(has) {
        return Ok(newest);
    }
    // An older one may have come back from the trash.
    let back = tx
        .trees()?
        .into_iter()
        .find(|tree| tree.name == *name && has(tree));
    Ok(back.or(newest))
}
