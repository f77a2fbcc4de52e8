//! `weald agent restart`

use std::time::Duration;

use clap::Args;
use weald_app::supervision::{launch, put_back, start_in_main};
use weald_app::{AgentRequest, Agents, Failure, Ground, NewTree, exit};
use weald_core::agent::{Agent, AgentStatus, Goal, Outcome};
use weald_core::task::{Task, TaskStatus};

use super::orders::{ended, stop};
use super::{Which, answer, wait_for};
use crate::context::Context;
use weald_app::supervision::tell_placed;

/// How long a new agent has to begin.
const BEGINNING: Duration = Duration::from_secs(60);

/// Restart an agent that has ended
///
/// Runs the same command in the same worktree. Continues the agent's conversation if it has one, unless --fresh is given.
/// If the agent can't be started, its task is not changed.
#[derive(Args)]
pub struct Restart {
    #[command(flatten)]
    which: Which,
    /// Start a new conversation
    #[arg(long, conflicts_with = "resume")]
    fresh: bool,
    /// Continue its conversation; refused if it has none
    #[arg(long)]
    resume: bool,
    /// Stop it first if it is running; reopen its task if finished
    #[arg(long)]
    force: bool,
}

impl Restart {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        ground.warn_of_settings(context);
        let agent = self.which.find(&ground)?;
        let request = self.request(context, &ground, &agent)?;
        if !agent.status.is_over() {
            self.end_first(context, &ground, &agent)?;
        }
        let before = ground.engine.task(&agent.task)?.task;
        let launched = match agent.in_main {
            true => start_in_main(context, &ground, &agent.task, &request)?,
            false => in_its_tree(context, &ground, &agent, &request)?,
        };
        began(&ground, &launched, &before)?;
        let told = format!("continues the work of {}", agent.id);
        answer(context, &ground, launched.id, &told)
    }

    /// What is started; whatever can be refused is refused before anything is stopped.
    fn request(
        &self,
        context: &Context<'_>,
        ground: &Ground,
        agent: &Agent,
    ) -> Result<AgentRequest, Failure> {
        let id = agent.id;
        let refused = |code: &'static str, message: String, hint: String| {
            Err(Failure::new(code, exit::REFUSED, message).hint(hint))
        };
        let pulse = format!("weald agent pulse {id}");
        let found = Agents::new(&ground.trees(context)?).diagnose(&agent.task)?;
        if let Some(newest) = found.newest.filter(|newest| newest.id != id) {
            return refused(
                "agent_superseded",
                format!("{} worked on task {} after {id}", newest.id, agent.task),
                pulse,
            );
        }
        if agent.in_main {
            context.refuse_agent("an agent in the main checkout")?;
        }
        if agent.goal == Goal::Stay {
            return refused(
                "agent_has_a_part",
                format!("{id} belongs to a race or a phase, which restarts it itself"),
                pulse,
            );
        }
        let status = found.task.status;
        if matches!(status, TaskStatus::Completed | TaskStatus::Cancelled) && !self.force {
            return refused(
                "task_finished",
                format!("task {} is {status}", agent.task),
                format!("to open it again: weald agent restart {id} --force"),
            );
        }
        if self.resume && agent.conversation.is_none() {
            return refused(
                "no_conversation",
                format!("{id} has no conversation to continue"),
                format!("to begin one: weald agent restart {id} --fresh"),
            );
        }
        if !agent.status.is_over() && !self.force {
            return refused(
                "agent_running",
                format!("{id} is {}", agent.status),
                format!("to stop it first: weald agent restart {id} --force"),
            );
        }
        let own_name = agent.session.as_str() == id.to_string();
        let request = AgentRequest {
            session: (!own_name).then(|| agent.session.clone()),
            command: agent.command.clone(),
            model: agent.model.clone(),
            role: agent.role.clone(),
            brief: agent.brief.clone(),
            resumes: Some(id),
            conversation: agent.conversation.clone().filter(|_| !self.fresh),
            reopen: true,
            in_main: agent.in_main,
            ..AgentRequest::new(agent.driver.clone(), agent.goal)
        };
        Agents::new(&ground.trees(context)?).require_driver(&request)?;
        Ok(request)
    }

    fn end_first(
        &self,
        context: &Context<'_>,
        ground: &Ground,
        agent: &Agent,
    ) -> Result<(), Failure> {
        context.note(&format!("stopping {}", agent.id));
        stop(ground, agent.id, "it is being restarted".to_owned(), false)?;
        ended(ground, agent.id).map(drop)
    }
}

fn in_its_tree(
    context: &Context<'_>,
    ground: &Ground,
    agent: &Agent,
    request: &AgentRequest,
) -> Result<Agent, Failure> {
    let new = NewTree {
        name: agent.tree.as_ref().map(ToString::to_string),
        ..NewTree::default()
    };
    let told = |agent: &Agent, created: &_| tell_placed(context, agent, created);
    launch(context, ground, Some(&agent.task), request, new, told)
}

/// Waits until the new agent works. One that can't be started leaves the task as it was.
fn began(ground: &Ground, agent: &Agent, before: &Task) -> Result<(), Failure> {
    let begun = wait_for(ground, agent.id, BEGINNING, |agent| {
        agent.status != AgentStatus::Starting
    })?;
    let end = begun.and_then(|agent| agent.end);
    match end.filter(|end| end.outcome == Outcome::NotStarted) {
        None => Ok(()),
        Some(end) => {
            put_back(ground, agent, before);
            Err(Failure::new(
                "agent_not_started",
                exit::REFUSED,
                format!("{} can't be started: {}", agent.id, end.why),
            )
            .hint(format!(
                "its task is {} as before; weald task show {}",
                before.status, before.id
            )))
        }
    }
}
