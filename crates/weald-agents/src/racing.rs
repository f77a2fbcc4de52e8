//! Races: the trees of their entries, what the entries came to, and the pick.

use serde::{Deserialize, Serialize};
use weald_core::agent::{Agent, AgentId, Verification};
use weald_core::agent_rules::AgentInput;
use weald_core::cost::own;
use weald_core::id::TaskId;
use weald_core::name::TreeName;
use weald_core::races;
use weald_core::task::Task;
use weald_core::tree::TreeStatus;

use super::AgentError;
use super::Agents;
use weald_trees::inside::DiffStyle;
use weald_trees::{Against, Binding, BranchExists, Created, NewTree, RemoveRequest, Removed};

/// An entry of a race, with what it came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EntryView {
    pub entry: String,
    pub agent: AgentId,
    pub tree: Option<TreeName>,
    pub branch: Option<String>,
    pub driver: String,
    /// How its agent ended, or stands.
    pub state: String,
    /// What its command said at its end.
    pub exit: Option<i32>,
    /// How long it took, or takes.
    pub seconds: i64,
    /// How many files it changed.
    pub files: usize,
    /// Lines, where its tree is there to be looked at.
    pub added: Option<u64>,
    /// Lines, where its tree is there to be looked at.
    pub deleted: Option<u64>,
    /// Whether it checked its work.
    pub verification: Verification,
    /// Tokens that it read and wrote, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// What it cost, where that is known.
    pub cost_usd: Option<f64>,
    /// The first line of its report.
    pub report: String,
    /// Whether it was picked.
    pub picked: bool,
}

impl Agents<'_> {
    /// Makes the trees of a race. If one can't be made, none is left.
    pub fn make_race(&self, task: &Task, count: usize) -> Result<Vec<Created>, AgentError> {
        let base = self.trees.free_name_for(task)?;
        let mut made: Vec<Created> = Vec::new();
        for index in 0..count {
            let name = format!("{base}-{}", races::letter(index));
            let before = self.trees.record(&self.trees.name(&name)?)?;
            let new = NewTree {
                name: Some(name),
                entry_of: Some(task.id.clone()),
                // What an earlier race left of its branch is in the vault, and in the trash.
                branch_exists: match before.is_some_and(|tree| tree.status == TreeStatus::Trashed) {
                    true => BranchExists::Recreate,
                    false => BranchExists::Error,
                },
                ..NewTree::default()
            };
            match self.trees.create(&new) {
                Ok(created) => made.push(created),
                Err(error) => {
                    let names = made.iter().map(|created| &created.tree.name);
                    self.take_away(names.cloned());
                    return Err(error.into());
                }
            }
        }
        Ok(made)
    }

    /// Puts trees of a race into the trash; what can't go is told, and stays.
    pub fn take_away(&self, names: impl IntoIterator<Item = TreeName>) -> Vec<Removed> {
        let request = RemoveRequest {
            discard: true,
            reason: Some("its race has ended".to_owned()),
            ..RemoveRequest::default()
        };
        let mut removed = Vec::new();
        for name in names {
            match self.trees.remove(Some(name.as_str()), &request) {
                Ok(one) => removed.push(one),
                Err(error) => self.trees.engine.notice(format!("{name} stays: {error}")),
            }
        }
        removed
    }

    /// Records where an entry works.
    pub fn place_entry(&self, agent: &Agent, created: &Created) -> Result<Agent, AgentError> {
        let tree = &created.tree;
        let placed = AgentInput::Placed {
            tree: tree.name.clone(),
            tree_id: tree.id,
            branch: tree.branch.clone(),
        };
        Ok(self.trees.engine.decide_agent(agent.id, placed)?)
    }

    /// The entries of a task's newest race, side by side.
    pub fn race(&self, id: &TaskId) -> Result<(Task, Vec<EntryView>), AgentError> {
        let task = self.trees.engine.task(id)?.task;
        let agents = self.trees.engine.agents_on(id)?;
        let entries = races::entries(&agents);
        if entries.is_empty() {
            return Err(races::RaceRefusal::NoRace { task: id.clone() }.into());
        }
        let picked = races::picked(&task, &entries).map(|agent| agent.id);
        let views = entries.iter().map(|agent| self.entry_view(agent, picked));
        let views = views.collect::<Result<_, _>>()?;
        Ok((task, views))
    }

    fn entry_view(&self, agent: &Agent, picked: Option<AgentId>) -> Result<EntryView, AgentError> {
        let ended = agent.end.as_ref().map(|end| end.at);
        let until = ended.map_or_else(|| self.trees.now(), Ok)?;
        let report = agent.report.as_ref();
        let (mut files, mut lines) = (report.map_or(0, |report| report.files_changed.len()), None);
        let tree = agent.tree.as_ref().map(TreeName::as_str);
        // A tree that is gone, or can't be looked at, is told by its agent's report alone.
        if let Ok(diff) = self.trees.diff(tree, Against::Base, DiffStyle::Files) {
            let count = |part: fn(&weald_trees::ChangedFile) -> Option<u64>| -> u64 {
                diff.files.iter().filter_map(part).sum()
            };
            lines = Some((count(|file| file.added), count(|file| file.deleted)));
            let mut names: Vec<_> = diff.files.iter().map(|file| &file.path).collect();
            names.sort();
            names.dedup();
            files = names.len();
        }
        let used = own(agent);
        let first = report.and_then(|report| report.report.trim().lines().next());
        Ok(EntryView {
            entry: agent.entry().unwrap_or_default().to_owned(),
            agent: agent.id,
            tree: agent.tree.clone(),
            branch: agent.branch.clone(),
            driver: agent.driver.clone(),
            state: match &agent.end {
                Some(end) => end.outcome.as_str().to_owned(),
                None => agent.status.to_string(),
            },
            exit: agent.code,
            seconds: until.duration_since(agent.started_at).as_secs(),
            files,
            added: lines.map(|(added, _)| added),
            deleted: lines.map(|(_, deleted)| deleted),
            verification: report.map_or(Verification::None, |report| report.verification),
            tokens: Some(used.tokens()).filter(|tokens| *tokens > 0),
            cost_usd: used.cost_usd,
            report: first.unwrap_or_default().to_owned(),
            picked: picked == Some(agent.id),
        })
    }

    /// Gives the task the tree of an entry. Whoever comes second is refused.
    pub fn bind_pick(&self, id: &TaskId, name: &str) -> Result<Agent, AgentError> {
        let task = self.trees.engine.task(id)?.task;
        let agents = self.trees.engine.agents_on(id)?;
        let agent = races::pick(&task, &agents, name)?.clone();
        let tree = agent.tree.clone().ok_or_else(|| AgentError::NoTree {
            agent: agent.id.to_string(),
        })?;
        let diff = self
            .trees
            .diff(Some(tree.as_str()), Against::Base, DiffStyle::Files);
        if diff.is_ok_and(|diff| diff.files.is_empty()) {
            return Err(races::RaceRefusal::NotDone {
                agent: agent.id,
                how: "it changed nothing".to_owned(),
            }
            .into());
        }
        self.trees.bind(id, tree.as_str(), Binding::default())?;
        Ok(agent)
    }
}
