//! Which task comes next if none is named: a ready one, an abandoned one, or one that nothing but its binding started.
//!
//! An abandoned task is taken only when none is ready: a takeover is riskier than fresh work.

use weald_core::id::TaskId;
use weald_core::store::{Read, StoreError, TaskClass, TaskFilter, TaskOrder, Write};
use weald_core::task::{Task, TaskStatus};

use crate::engine::Engine;
use crate::tasks::blockers;

impl Engine {
    /// The next task that may be claimed, none of these.
    pub(crate) fn next_task(
        &self,
        tx: &mut dyn Write,
        except: &[TaskId],
    ) -> Result<Option<Task>, StoreError> {
        let is_meant = |task: &Task| !except.contains(&task.id);
        let mut found = tx.next_claimable()?.filter(is_meant);
        if found.is_none() && !except.is_empty() {
            let ready = TaskFilter {
                classes: vec![TaskClass::Ready],
                order: TaskOrder::Claim,
                limit: Some(except.len() as u64 + 1),
                ..TaskFilter::default()
            };
            found = tx.tasks(&ready)?.into_iter().find(is_meant);
        }
        let bound = self.bound_and_free(tx)?.into_iter().find(is_meant);
        let both = found.into_iter().chain(bound);
        Ok(both.min_by_key(|task| (task.priority, task.created_at)))
    }

    /// Whether there is a task that somebody may take.
    pub(crate) fn has_next(&self, tx: &(impl Read + ?Sized)) -> Result<bool, StoreError> {
        let ready = TaskFilter {
            classes: vec![TaskClass::Ready],
            limit: Some(1),
            ..TaskFilter::default()
        };
        Ok(!tx.tasks(&ready)?.is_empty() || !self.bound_and_free(tx)?.is_empty())
    }

    /// Tasks that are in progress because they were bound, where binding starts a task: nobody has them, nothing runs in
    /// their tree, and they wait for nothing.
    fn bound_and_free(&self, tx: &(impl Read + ?Sized)) -> Result<Vec<Task>, StoreError> {
        if !self.settings.binding_starts {
            return Ok(Vec::new());
        }
        let mut found = tx.tasks(&TaskFilter {
            classes: vec![TaskClass::Status(TaskStatus::InProgress)],
            order: TaskOrder::Claim,
            ..TaskFilter::default()
        })?;
        found.retain(|task| task.is_nobodys() && task.worktree.is_some());
        let mut free = Vec::new();
        for task in found {
            if blockers(tx, &task)?.is_empty() && !self.is_worked_on(tx, &task)? {
                free.push(task);
            }
        }
        Ok(free)
    }
}
