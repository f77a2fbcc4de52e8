//! Supervisors that are gone: the next command notices, says so in the record, and gives the task back.

use weald_core::agent::{Agent, Outcome};
use weald_core::agent_rules::AgentInput;
use weald_core::id::Token;
use weald_core::session::ProcessState;
use weald_core::store::{AgentFilter, Durability, Write};
use weald_core::task::{Task, TaskStatus};
use weald_core::task_rules::TaskInput;
use weald_core::tree::Run;
use weald_core::tree_rules::{self, TreeInput};

use super::RecordError;
use super::claiming::leave;
use super::records::{decide_agent, require_agent};
use crate::engine::Engine;
use crate::tasks::move_in;

/// After so many crashes in a row a task waits for a person.
const CRASHES: usize = 3;

impl Engine {
    /// Marks agents as crashed whose supervisor is proven gone, and gives their tasks back. Whatever they wrote stays in
    /// their trees. Answers those that it marked.
    pub fn reap_agents(&self) -> Result<Vec<Agent>, RecordError> {
        let open = self.agents(&AgentFilter::OPEN)?;
        let mut reaped = Vec::new();
        for agent in open.iter().filter(|agent| self.is_orphaned(agent)) {
            let done = self.change(None, Durability::Process, |tx| {
                let current = require_agent(tx, agent.id)?;
                // Somebody else may have been faster.
                match !current.status.is_over() && self.is_orphaned(&current) {
                    true => crash(tx, &current).map(Some),
                    false => Ok::<_, RecordError>(None),
                }
            })?;
            reaped.extend(done);
        }
        Ok(reaped)
    }

    /// Whether nobody watches over an agent any more though it is not over: its supervisor is proven gone.
    pub fn is_orphaned(&self, agent: &Agent) -> bool {
        let supervisor = agent.supervisor.as_ref();
        supervisor.is_some_and(|process| self.processes.state(process) == ProcessState::Gone)
    }
}

fn crash(tx: &mut dyn Write, agent: &Agent) -> Result<Agent, RecordError> {
    let why = match agent.supervised {
        true => format!("its supervisor is gone while it was {}", agent.status),
        false => "the process that started it is gone".to_owned(),
    };
    let crashed = decide_agent(tx, agent, AgentInput::Crash { why })?;
    leave(tx, agent)?;
    end_run(tx, agent)?;
    let Some(task) = tx.task(&agent.task)? else {
        return Ok(crashed);
    };
    let is_held = task
        .lease
        .as_ref()
        .is_some_and(|lease| lease.token == agent.token);
    // The others of a race, or the next phase, work under the same claim.
    let siblings = tx.agents(&AgentFilter::open_on(&task.id))?;
    if !is_held || task.status != TaskStatus::InProgress || !siblings.is_empty() {
        return Ok(crashed);
    }
    match agent.entry() {
        // Others of the race may be done: somebody picks, or drops it.
        Some(_) => park_race(tx, &task, agent.token)?,
        None => give_back(tx, &task, agent)?,
    }
    Ok(crashed)
}

/// Nothing runs in the tree of an agent whose supervisor is gone.
fn end_run(tx: &mut dyn Write, agent: &Agent) -> Result<(), RecordError> {
    let tree = match agent.tree_id {
        Some(id) => tx.tree_by_id(id)?,
        None => None,
    };
    let is_its = |run: &&Run| Some(&run.process) == agent.supervisor.as_ref();
    let Some((tree, process)) = tree.and_then(|tree| {
        let process = tree.runs.iter().find(is_its)?.process.clone();
        Some((tree, process))
    }) else {
        return Ok(());
    };
    let ended = TreeInput::RunEnds {
        process,
        timed_out: false,
        code: None,
    };
    // A tree that is on its way to the trash needs no such note.
    if let Ok((_, change)) = tree_rules::decide(&tree, ended, tx.now()) {
        tx.record(Some(&agent.session), change)?;
    }
    Ok(())
}

/// Lets the task of a race wait for somebody to pick, once nobody is at work on it and nobody has picked.
pub(super) fn park_race(tx: &mut dyn Write, task: &Task, token: Token) -> Result<(), RecordError> {
    let is_held = task
        .lease
        .as_ref()
        .is_some_and(|lease| lease.token == token);
    let open = tx.agents(&AgentFilter::open_on(&task.id))?;
    if !is_held || !open.is_empty() || task.worktree.is_some() {
        return Ok(());
    }
    let park = TaskInput::Park {
        token: Some(token),
        reason: format!(
            "its race has ended; see it and pick: weald race show {}",
            task.id
        ),
    };
    move_in(tx, task.owner.as_ref(), task, park)?;
    Ok(())
}

impl Engine {
    /// Gives the task of an agent back that crashed under its supervisor's eyes.
    pub fn give_back_crashed(&self, agent: &Agent) -> Result<(), RecordError> {
        self.change(None, Durability::Process, |tx| {
            let Some(task) = tx.task(&agent.task)? else {
                return Ok(());
            };
            give_back(tx, &task, agent)
        })
    }
}

fn give_back(tx: &mut dyn Write, task: &Task, agent: &Agent) -> Result<(), RecordError> {
    let release = TaskInput::Release {
        token: Some(agent.token),
    };
    let released = move_in(tx, Some(&agent.session), task, release)?;
    let all = tx.agents(&AgentFilter::on(&task.id))?;
    let before = all.iter().rev().filter(|known| known.id != agent.id);
    let in_a_row = before.take_while(|known| {
        let outcome = known.end.as_ref().map(|end| end.outcome);
        outcome == Some(Outcome::Crashed)
    });
    if in_a_row.count() + 1 < CRASHES {
        return Ok(());
    }
    let block = TaskInput::Block {
        reason: format!(
            "{CRASHES} agents in a row crashed on it, the last one was {}; see weald agent logs {}, to continue: weald resume {}",
            agent.id, agent.id, task.id
        ),
    };
    move_in(tx, Some(&agent.session), &released, block)?;
    Ok(())
}
