//! `weald status --all`: every tree with the phase of its work, its agent and the room it takes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weald_core::agent::AgentId;
use weald_core::agent_view::AgentState;
use weald_core::file_view::phase;
use weald_core::store::{TaskClass, TaskFilter};
use weald_core::task::TaskStatus;
use weald_core::tree::Tree;

use crate::Upkeep;
use weald_agents::{AgentError, AgentQuery, AgentView};
use weald_trees::TreeError;
use weald_trees::inside::{MeasureSize, Size};
use weald_trees::side_by_side::side_by_side;
use weald_trees::view::TreeView;

/// How long one tree is measured, in milliseconds.
const MEASURE: u64 = 1_000;

/// A tree in the overview.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TreeOverview {
    #[serde(flatten)]
    pub view: TreeView,
    /// Where its work stands: `planning`, `implementing`, `verifying`, `needs_merge`, `complete`, or the part that its
    /// agent plays.
    pub phase: String,
    /// Its agent that is not over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// How that one stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_state: Option<AgentState>,
    /// What its files take on their disk; absent if it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Whether that is all of it; measuring ends after a second.
    pub bytes_whole: bool,
}

/// How far the tasks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskProgress {
    pub completed: u64,
    /// All but those that are not wanted any more.
    pub total: u64,
}

/// Everything that goes on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Overview {
    /// Every tree that is there or should be.
    pub trees: Vec<TreeOverview>,
    /// Agents that are not over.
    pub agents: Vec<AgentView>,
    /// How far the tasks are.
    pub progress: TaskProgress,
}

/// Where an overview comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Every tree is looked into and measured.
    Now,
    /// From what is known.
    Known,
}

impl Upkeep<'_> {
    /// Looks at everything that goes on.
    pub fn overview(&self, freshness: Freshness) -> Result<Overview, AgentError> {
        let views = match freshness {
            Freshness::Now => self.trees.list_fresh()?,
            Freshness::Known => self.trees.list()?,
        };
        let sizes = match freshness {
            Freshness::Now => side_by_side(&views, 1, |view| self.size(&view.tree).ok()),
            Freshness::Known => vec![None; views.len()],
        };
        let agents = self
            .trees
            .engine
            .agent_list(self.trees.place, &AgentQuery::default())?
            .agents;
        let by_tree: BTreeMap<_, _> = agents
            .iter()
            .filter_map(|view| Some((view.agent.tree_id?, view)))
            .collect();
        let mut trees = Vec::new();
        for (view, size) in views.into_iter().zip(sizes) {
            let agent = by_tree.get(&view.tree.id);
            trees.push(TreeOverview {
                phase: match agent.and_then(|view| view.agent.role.clone()) {
                    Some(role) => role,
                    None => self.phase_of(&view.tree)?.to_owned(),
                },
                agent: agent.map(|view| view.agent.id),
                agent_state: agent.map(|view| view.state),
                bytes: size.map(|size| size.bytes),
                bytes_whole: size.is_some_and(|size| size.is_whole),
                view,
            });
        }
        Ok(Overview {
            trees,
            progress: self.progress()?,
            agents,
        })
    }

    fn phase_of(&self, tree: &Tree) -> Result<&'static str, AgentError> {
        self.trees.engine.look(|tx| {
            let task = match &tree.task {
                Some(id) => tx.task(id)?,
                None => None,
            };
            let landing = tx.landings_of(&tree.name)?.pop();
            let landing = landing.filter(|landing| landing.tree_id == tree.id);
            let status = landing.map(|landing| landing.status);
            Ok(phase(tree, task.as_ref(), status))
        })
    }

    fn size(&self, tree: &Tree) -> Result<Size, TreeError> {
        let site = self.trees.site(tree)?;
        let job = MeasureSize { millis: MEASURE };
        self.trees.visit(tree.name.as_str(), &site, job)
    }

    fn progress(&self) -> Result<TaskProgress, AgentError> {
        self.trees.engine.look(|tx| {
            let count = |classes: Vec<TaskClass>| {
                tx.count_tasks(&TaskFilter {
                    classes,
                    ..TaskFilter::default()
                })
            };
            let cancelled = count(vec![TaskClass::Status(TaskStatus::Cancelled)])?;
            Ok(TaskProgress {
                completed: count(vec![TaskClass::Status(TaskStatus::Completed)])?,
                total: count(Vec::new())?.saturating_sub(cancelled),
            })
        })
    }
}
