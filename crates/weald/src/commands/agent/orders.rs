//! `weald agent pause`, `resume` and `stop`

use std::time::Duration;

use clap::Args;
use weald_app::{Failure, Ground, exit};
use weald_core::agent::{Agent, AgentId, AgentStatus, Wanted};
use weald_core::agent_rules::AgentInput;

use super::{Which, answer, wait_for};
use crate::context::Context;

/// How long a supervisor has to obey.
const OBEDIENCE: Duration = Duration::from_secs(10);

/// How long an agent that is stopped has to end: also what it left has to be taken in.
const END: Duration = Duration::from_secs(120);

/// Pause an agent and all its processes
///
/// Continue it with `weald agent resume`. Meanwhile it keeps its claim and name, and its time limit does not run.
#[derive(Args)]
pub struct Pause {
    #[command(flatten)]
    which: Which,
}

/// Resume a paused agent
#[derive(Args)]
pub struct Resume {
    #[command(flatten)]
    which: Which,
}

/// Stop an agent and keep its worktree
///
/// The agent is asked to exit; after one second all its processes are killed. Its task is marked as failed, or released
/// with --release.
#[derive(Args)]
pub struct Stop {
    #[command(flatten)]
    which: Which,
    /// Release the task so that another agent can claim it
    #[arg(long)]
    release: bool,
    /// Reason to record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Wait until the agent has ended
    #[arg(long)]
    wait: bool,
}

impl Pause {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let agent = self.which.find(&ground)?;
        obeyed(&ground, &agent, Wanted::Pause, AgentStatus::Paused)?;
        let told = format!("is paused; to continue it: weald agent resume {}", agent.id);
        answer(context, &ground, agent.id, &told)
    }
}

impl Resume {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let agent = self.which.find(&ground)?;
        obeyed(&ground, &agent, Wanted::Run, AgentStatus::Running)?;
        answer(context, &ground, agent.id, "continues")
    }
}

impl Stop {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let agent = self.which.find(&ground)?;
        let who = context.actor(&ground.engine, None)?;
        let stopped = || {
            who.map_or("it was stopped".to_owned(), |who| {
                format!("{who} stopped it")
            })
        };
        let why = self.reason.unwrap_or_else(stopped);
        stop(&ground, agent.id, why, self.release)?;
        let told = match self.wait {
            true => {
                ended(&ground, agent.id)?;
                "is stopped; its worktree is kept"
            }
            false => "was asked to stop; its worktree is kept",
        };
        answer(context, &ground, agent.id, told)
    }
}

/// Asks an agent to stop.
pub fn stop(ground: &Ground, id: AgentId, why: String, release: bool) -> Result<(), Failure> {
    let stop = Wanted::Stop { why, release };
    ground.engine.decide_agent(id, AgentInput::Want(stop))?;
    Ok(())
}

/// Waits until an agent is over.
pub fn ended(ground: &Ground, id: AgentId) -> Result<Agent, Failure> {
    let ended = wait_for(ground, id, END, |agent| agent.status.is_over())?;
    ended.ok_or_else(|| {
        Failure::new(
            "agent_busy",
            exit::BUSY,
            format!("{id} was asked to stop but has not ended yet"),
        )
        .hint(format!("weald agent wait {id}"))
    })
}

/// Has a supervisor obey, and waits until it did.
fn obeyed(
    ground: &Ground,
    agent: &Agent,
    wanted: Wanted,
    status: AgentStatus,
) -> Result<(), Failure> {
    let id = agent.id;
    // One that is being started has nothing to stop yet.
    wait_for(ground, id, OBEDIENCE, |agent| {
        agent.status != AgentStatus::Starting
    })?;
    ground.engine.decide_agent(id, AgentInput::Want(wanted))?;
    let obeyed = wait_for(ground, id, OBEDIENCE, |agent| {
        agent.status == status || agent.status.is_over() || agent.status == AgentStatus::Finishing
    })?;
    match obeyed {
        Some(agent) if agent.status == status => Ok(()),
        Some(agent) => Err(Failure::new(
            "agent_over",
            exit::REFUSED,
            format!("{id} ended first ({})", agent.status),
        )),
        None => Err(Failure::new(
            "agent_busy",
            exit::BUSY,
            format!("the supervisor of {id} did not answer; the request is still pending"),
        )
        .hint(format!("weald agent pulse {id}"))),
    }
}
