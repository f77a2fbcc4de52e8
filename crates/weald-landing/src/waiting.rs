//! Tasks that should have been done first.

use weald_core::id::TaskId;
use weald_core::tree::Tree;

use super::LandError;
use crate::Landings;

impl Landings<'_> {
    /// Says when a tree lands although its task waits for others that don't land with it. It is the caller's decision.
    pub(super) fn warn_of_dependencies(&self, trees: &[Tree]) -> Result<(), LandError> {
        let lands = |id: &TaskId| trees.iter().any(|tree| tree.task.as_ref() == Some(id));
        for tree in trees {
            let Some(id) = &tree.task else {
                continue;
            };
            let waits_for = self.trees.engine.look(|tx| {
                let task = tx.task(id)?;
                let on = task.map(|task| task.blocked_by).unwrap_or_default();
                let mut open = Vec::new();
                for other in on.iter().filter(|other| !lands(other)) {
                    if tx
                        .task(other)?
                        .is_some_and(|other| !other.status.is_closed())
                    {
                        open.push(other.to_string());
                    }
                }
                Ok::<_, LandError>(open)
            })?;
            if !waits_for.is_empty() {
                self.trees.engine.notice(format!(
                    "task {id} of {} is waiting for {}, which is not done",
                    tree.name,
                    waits_for.join(", ")
                ));
            }
        }
        Ok(())
    }
}
