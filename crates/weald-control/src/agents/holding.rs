//! One claim for several agents: the phases of a task, the entries of a race.
//!
//! The claim belongs to a session that is the process at work (`phase-12`, `race-12`), so another one can't begin the same
//! while it lives, and another process can continue after its end. The agents renew the claim by its token.

use weald_core::agent::Agent;
use weald_core::id::{TaskId, Token};
use weald_core::name::SessionName;
use weald_core::store::{AgentFilter, Durability};
use weald_core::task::Task;
use weald_core::task_rules::TaskInput;

use super::RecordError;
use super::reaping::park_race;
use crate::engine::Engine;
use crate::tasks::{decide_task, require_task};

/// The longest name of a session.
const LONGEST: usize = 64;

/// The session that holds a task for several agents.
pub fn holder(kind: &str, task: &TaskId) -> Option<SessionName> {
    let name: String = format!("{kind}-{task}").chars().take(LONGEST).collect();
    name.trim_end_matches('.').parse().ok()
}

impl Engine {
    /// Claims a task in the name of this process. What an earlier process of the same name held is held on to.
    pub fn hold_task(
        &self,
        session: &SessionName,
        by: Option<&SessionName>,
        id: &TaskId,
        reopen: bool,
    ) -> Result<Task, RecordError> {
        self.register_given(session, Some(std::process::id()))?;
        let held = self.change(Some(session), Durability::Process, |tx| {
            let task = require_task(tx, id)?;
            let own = task
                .lease
                .as_ref()
                .filter(|lease| lease.session == *session);
            let Some(lease) = own else {
                return self.claim_for_agent(tx, session, by, Some(id), reopen);
            };
            let renew = TaskInput::Renew {
                token: Some(lease.token),
                ttl: self.settings.lease_ttl,
            };
            Ok(decide_task(tx, Some(session), &task, renew)?)
        });
        held.inspect_err(|_| self.leave(session))
    }

    /// Ends a session that holds nothing any more; one that does is left to the process that continues.
    pub fn leave(&self, session: &SessionName) {
        if self
            .session(session)
            .is_ok_and(|view| view.holds.is_empty())
        {
            let _ = self.end(session);
        }
    }

    /// Every agent that worked on a task, from the first to the last.
    pub fn agents_on(&self, task: &TaskId) -> Result<Vec<Agent>, RecordError> {
        self.agents(&AgentFilter::on(task))
    }

    /// After the last entry of a race its task waits for somebody to pick one. Nothing happens while one is at work, or
    /// when the task is not under that claim any more.
    pub fn await_pick(&self, task: &TaskId, token: Token) -> Result<(), RecordError> {
        self.change(None, Durability::Process, |tx| {
            let task = require_task(tx, task)?;
            park_race(tx, &task, token)
        })
    }
}
