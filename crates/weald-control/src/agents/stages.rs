//! The stage of a task that has phases: what each said last.

use serde::{Deserialize, Serialize};
use weald_core::agent::{Agent, AgentId};
use weald_core::id::TaskId;
use weald_core::phases::since_landing;

use super::RecordError;
use crate::engine::Engine;

/// One phase of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageView {
    pub phase: String,
    pub agent: AgentId,
    /// `PASS`, `FAIL`, or how its agent stands.
    pub state: String,
    /// What it wants fixed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub must_fix: Vec<String>,
    /// How often it was done.
    pub runs: u32,
}

impl Engine {
    /// The phases of a task since it last landed, in the order in which they came; none for a task without any.
    pub fn stages(&self, task: &TaskId) -> Result<Vec<StageView>, RecordError> {
        Ok(stages_in(&self.agents_on(task)?))
    }

    /// The same as they stood when an agent began: that of the landing, say.
    pub fn stages_before(&self, agent: &Agent) -> Result<Vec<StageView>, RecordError> {
        let mut agents = self.agents_on(&agent.task)?;
        agents.retain(|other| other.id < agent.id);
        Ok(stages_in(&agents))
    }
}

fn stages_in(agents: &[Agent]) -> Vec<StageView> {
    let mut stages: Vec<StageView> = Vec::new();
    for agent in since_landing(agents) {
        let Some(phase) = agent.phase() else {
            continue;
        };
        let before = stages.iter().position(|stage| stage.phase == phase);
        let runs = before.map_or(0, |before| stages.remove(before).runs);
        stages.push(StageView {
            runs: runs + 1,
            ..stage(agent, phase)
        });
    }
    stages
}

fn stage(agent: &Agent, phase: &str) -> StageView {
    let verdict = agent.verdict.as_ref();
    StageView {
        phase: phase.to_owned(),
        agent: agent.id,
        state: match verdict {
            Some(verdict) => verdict.as_str().to_owned(),
            None => agent.status.to_string(),
        },
        must_fix: verdict
            .map(|verdict| verdict.must_fix.clone())
            .unwrap_or_default(),
        runs: 0,
    }
}

/// The stages in one line: `plan PASS, build PASS, review running`.
pub fn stages_in_words(stages: &[StageView]) -> String {
    let word = |stage: &StageView| format!("{} {}", stage.phase, stage.state);
    stages.iter().map(word).collect::<Vec<_>>().join(", ")
}
