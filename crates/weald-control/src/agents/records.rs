//! Agents' records: look them up, change them.

use weald_core::agent::{Agent, AgentId, FinalReport};
use weald_core::agent_rules::{self, AgentInput};
use weald_core::id::{TaskId, Token};
use weald_core::store::{AgentFilter, Durability, Read, StoreError, Write};

use super::RecordError;
use super::claiming::leave;
use crate::engine::Engine;

impl Engine {
    pub fn agent(&self, id: AgentId) -> Result<Agent, RecordError> {
        self.look(|tx| require_agent(tx, id))
    }

    /// Agents by filter, by number.
    pub fn agents(&self, filter: &AgentFilter) -> Result<Vec<Agent>, RecordError> {
        Ok(self.look(|tx| tx.agents(filter))?)
    }

    /// Decides one input on an agent, and records it. Its session ends with it.
    pub fn decide_agent(&self, id: AgentId, input: AgentInput) -> Result<Agent, RecordError> {
        let durability = match input {
            AgentInput::End(_) | AgentInput::Report { .. } => Durability::Power,
            _ => Durability::Process,
        };
        self.change(None, durability, |tx| {
            let agent = require_agent(tx, id)?;
            let next = decide_agent(tx, &agent, input)?;
            if next.status.is_over() {
                leave(tx, &next)?;
            }
            Ok(next)
        })
    }

    /// What an agent says at its end. Twice, or under an old claim, it is refused.
    pub fn report_agent(
        &self,
        id: AgentId,
        token: Token,
        report: FinalReport,
    ) -> Result<Agent, RecordError> {
        self.change(None, Durability::Power, |tx| {
            let agent = require_agent(tx, id)?;
            let task = crate::tasks::require_task(tx, &agent.task)?;
            // Whoever took the task over speaks for it now.
            let token = match task.token == agent.token {
                true => token,
                false => task.token,
            };
            let input = AgentInput::Report { token, report };
            decide_agent(tx, &agent, input)
        })
    }
}

/// Decides one input on an agent and records it.
pub(super) fn decide_agent(
    tx: &mut dyn Write,
    agent: &Agent,
    input: AgentInput,
) -> Result<Agent, RecordError> {
    let (next, change) = agent_rules::decide(agent, input, tx.now())?;
    tx.record(Some(&next.session), change)?;
    Ok(next)
}

pub(crate) fn require_agent(tx: &(impl Read + ?Sized), id: AgentId) -> Result<Agent, RecordError> {
    tx.agent(id)?.ok_or_else(|| RecordError::NotFound {
        name: id.to_string(),
    })
}

/// The newest agent on a task.
pub fn newest_on(tx: &(impl Read + ?Sized), task: &TaskId) -> Result<Option<Agent>, StoreError> {
    let filter = AgentFilter::on(task);
    Ok(tx.agents(&filter)?.pop())
}
