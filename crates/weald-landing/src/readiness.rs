//! Whether those who worked in a tree say that it is ready.

use weald_core::agent::Agent;
use weald_core::preconditions::missing;
use weald_core::races;
use weald_core::store::AgentFilter;
use weald_core::tree::Tree;

use super::{LandError, LandRequest};
use crate::Landings;
use crate::refusal::Refusal;

impl Landings<'_> {
    /// Errors when those who worked in a tree don't say that it is ready; whoever lands it may say so with a report.
    pub fn require_ready(&self, name: &str, report: Option<&str>) -> Result<(), LandError> {
        let request = LandRequest {
            report: report.map(str::to_owned),
            ..LandRequest::default()
        };
        match self.unready(&self.trees.named(Some(name))?, &request)? {
            Some(refusal) => Err(refusal.into()),
            None => Ok(()),
        }
    }

    /// An entry of a race is picked, not landed: otherwise the race would go on without it.
    pub(super) fn refuse_entry(&self, tree: &Tree, report: Option<&str>) -> Result<(), LandError> {
        if tree.task.is_some() || tree.scratch_for.is_some() {
            return Ok(());
        }
        let all = AgentFilter {
            open: false,
            task: None,
        };
        let agents = self.trees.engine.look(|tx| tx.agents(&all))?;
        let is_its = |agent: &&Agent| agent.tree_id == Some(tree.id);
        let entry = agents.iter().find(is_its);
        let Some((agent, letter)) = entry.and_then(|agent| Some((agent, agent.entry()?))) else {
            return Ok(());
        };
        let id = &agent.task;
        let of_task = agents.iter().filter(|agent| agent.task == *id);
        let of_task: Vec<Agent> = of_task.cloned().collect();
        let task = self.trees.engine.look(|tx| tx.task(id))?;
        match task.is_some_and(|task| races::is_open(&task, &of_task)) {
            false => Ok(()),
            true => Err(Refusal::RaceUndecided(
                tree.name.clone(),
                id.clone(),
                letter.to_owned(),
                report.map(str::to_owned),
            )
            .into()),
        }
    }

    /// What speaks against landing a tree, by its task and the reports of its agents; nothing for a tree without a task.
    pub(super) fn unready(
        &self,
        tree: &Tree,
        request: &LandRequest,
    ) -> Result<Option<Refusal>, LandError> {
        let Some(id) = &tree.task else {
            return Ok(None);
        };
        let filter = AgentFilter {
            open: false,
            task: Some(id.clone()),
        };
        let found = self
            .trees
            .engine
            .look(|tx| Ok::<_, LandError>((tx.task(id)?, tx.agents(&filter)?)))?;
        let (Some(task), agents) = found else {
            return Ok(None);
        };
        let requirement = self.trees.config.landing_requires;
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
        Ok(Some(Refusal::NotReady(
            tree.name.clone(),
            id.clone(),
            missing,
            request.by_agent,
        )))
    }
}
