//! Whether those who worked in a tree say that it is ready.

use weald_core::landing::Reason;
use weald_core::preconditions::{Missing, Requirement, missing};
use weald_core::store::AgentFilter;
use weald_core::tree::Tree;

use super::{LandError, LandRequest};
use crate::trees::Trees;

impl Trees<'_> {
    /// What speaks against landing a tree, by its task and the reports of its agents; nothing for a tree without a task.
    /// Only persons are told that it can be forced.
    pub(super) fn unready(
        &self,
        tree: &Tree,
        request: &LandRequest,
    ) -> Result<Option<Reason>, LandError> {
        let Some(id) = &tree.task else {
            return Ok(None);
        };
        let filter = AgentFilter {
            open: false,
            task: Some(id.clone()),
        };
        let found = self
            .engine
            .look(|tx| Ok::<_, LandError>((tx.task(id)?, tx.agents(&filter)?)))?;
        let (Some(task), agents) = found else {
            return Ok(None);
        };
        let requirement = Requirement::parse(self.config.text("landing.requires"));
        let missing = missing(
            requirement,
            &task,
            tree.id,
            &agents,
            request.report.as_deref(),
        );
        if missing.is_empty() {
            return Ok(None);
        }
        let words: Vec<_> = missing.iter().map(Missing::to_string).collect();
        let phase = |one: &Missing| matches!(one, Missing::Verdict { .. });
        let go_on = match missing.iter().any(phase) {
            true => format!("weald phase {id}"),
            false => format!(
                "weald resume {id}, or weald land {} --report TEXT",
                tree.name
            ),
        };
        Ok(Some(Reason {
            code: "not_ready_to_land".to_owned(),
            message: words.join("; "),
            hint: Some(match request.by_agent {
                true => go_on,
                false => format!(
                    "{go_on}; to land it all the same: weald land {} --force",
                    tree.name
                ),
            }),
            paths: Vec::new(),
        }))
    }
}
