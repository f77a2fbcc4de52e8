//! A tree that was judged before its removal, compared once more in the step that begins it.

use weald_core::id::TreeId;
use weald_core::landing::Landing;
use weald_core::store::Read;
use weald_core::task::TaskStatus;
use weald_core::tree::{Tree, TreeStatus};

use super::RemoveRequest;
use crate::{TreeError, require_task_record};

/// What a clean judged a tree by, to be compared once more in the step that begins its removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsJudged {
    /// Which tree; its name may be another one's by now.
    pub id: TreeId,
    pub status: TreeStatus,
    /// Where its task stood.
    pub task: Option<TaskStatus>,
}

/// A clean takes what it judged: not what a person just kept, nor a tree whose task was just opened again.
pub(super) fn require_as_judged(
    tx: &(impl Read + ?Sized),
    tree: &Tree,
    request: &RemoveRequest,
) -> Result<(), TreeError> {
    let Some(judged) = request.as_judged else {
        return Ok(());
    };
    let task = tree
        .task
        .as_ref()
        .map(|id| require_task_record(tx, id))
        .transpose()?;
    let now = AsJudged {
        id: tree.id,
        status: tree.status,
        task: task.as_ref().map(|task| task.status),
    };
    let lease = task.as_ref().and_then(|task| task.lease.as_ref());
    let is_claimed = lease.is_some_and(|lease| !lease.is_expired(tx.now()));
    let lands = |landing: &Landing| landing.tree_id == tree.id;
    match now == judged && !is_claimed && !tx.open_landings()?.iter().any(lands) {
        true => Ok(()),
        false => Err(TreeError::Busy {
            name: tree.name.clone(),
            running: vec!["it changed after it was checked".to_owned()],
        }),
    }
}
