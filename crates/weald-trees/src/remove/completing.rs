//! The task that is completed with its tree.

use weald_core::Timestamp;
use weald_core::event::Change;
use weald_core::task::{Task, TaskStatus};
use weald_core::task_rules::{self, TaskInput};
use weald_core::tree::Tree;

use super::RemoveRequest;
use crate::{TreeError, Trees, require_task_record};
use weald_control::tasks::TaskError;

impl Trees<'_> {
    /// A task that can't be completed refuses before anything is touched.
    pub(super) fn refuse_completion(
        &self,
        tree: &Tree,
        request: &RemoveRequest,
    ) -> Result<(), TreeError> {
        let Some(id) = tree.task.as_ref().filter(|_| request.complete_task) else {
            return Ok(());
        };
        self.engine.look(|tx| {
            let task = require_task_record(tx, id)?;
            completed(&task, request, tx.now()).map(drop)
        })
    }
}

/// A task as it is completed with its tree; `None` for one that was completed before.
pub(super) fn completed(
    task: &Task,
    request: &RemoveRequest,
    now: Timestamp,
) -> Result<Option<(Task, Change)>, TreeError> {
    let complete = TaskInput::Complete {
        token: request.token,
        report: request.reason.clone(),
    };
    match task.status {
        TaskStatus::Completed => Ok(None),
        _ => {
            let decided = task_rules::decide(task, complete, now);
            Ok(Some(decided.map_err(TaskError::from)?))
        }
    }
}
