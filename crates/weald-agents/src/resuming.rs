//! Going on with a task: what became of it, and the agent that continues.

use weald_core::agent::{Agent, Goal};
use weald_core::id::TaskId;
use weald_core::resuming::{self, Diagnosis};
use weald_core::task::{Task, TaskStatus};
use weald_core::task_rules::{self, TaskInput};

use super::Agents;
use super::{AgentError, AgentRequest, newest_on};
use weald_control::tasks::TaskError;

/// What became of a task.
pub struct Resumption {
    pub task: Task,
    pub diagnosis: Diagnosis,
    /// The newest agent that worked on it.
    pub newest: Option<Agent>,
}

impl Agents<'_> {
    /// Finds out what became of a task.
    pub fn diagnose(&self, id: &TaskId) -> Result<Resumption, AgentError> {
        let task = self.trees.engine.task(id)?.task;
        let newest = self.trees.engine.look(|tx| newest_on(tx, id))?;
        let diagnosis = resuming::diagnose(&task, newest.as_ref(), self.trees.now()?);
        Ok(Resumption {
            task,
            diagnosis,
            newest,
        })
    }

    /// Refuses a cancelled task: a person has to reopen it first.
    pub fn require_wanted(&self, task: &Task) -> Result<(), AgentError> {
        if task.status != TaskStatus::Cancelled {
            return Ok(());
        }
        let start = TaskInput::Start { owner: None };
        match task_rules::decide(task, start, self.trees.now()?) {
            Ok(_) => Ok(()),
            Err(refusal) => Err(TaskError::Refused(refusal).into()),
        }
    }

    /// The agent that goes on with a task: as the last one, in its own conversation, where `request` says nothing else.
    pub fn continuing(
        &self,
        found: &Resumption,
        request: AgentRequest,
    ) -> Result<AgentRequest, AgentError> {
        self.require_wanted(&found.task)?;
        let Some(last) = &found.newest else {
            return Ok(AgentRequest {
                reopen: true,
                ..request
            });
        };
        let landing = match last.end.as_ref().and_then(|end| end.landing) {
            Some(id) => self.trees.engine.look(|tx| tx.landing(id))?,
            None => None,
        };
        let is_same = request.driver == last.driver;
        Ok(AgentRequest {
            command: match request.command.is_empty() && is_same {
                true => last.command.clone(),
                false => request.command,
            },
            conversation: last.conversation.clone().filter(|_| is_same),
            model: request
                .model
                .or_else(|| last.model.clone().filter(|_| is_same)),
            begin_at: match request.goal {
                Goal::Stay => request.begin_at,
                _ => resuming::begin_at(Some(last), landing.as_ref()),
            },
            brief: request.brief.or_else(|| last.brief.clone()),
            retry: resuming::retries_before(last),
            retries: request.retries.or(last.retries),
            resumes: Some(last.id),
            reopen: true,
            ..request
        })
    }
}
