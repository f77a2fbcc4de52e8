//! `weald agent spawn` and `weald agent restart`

use clap::Args;
use weald_app::Failure;
use weald_app::operations::starts::{Conversation, RestartAgent, SpawnAgent};

use super::{Which, print_agent};
use crate::commands::work::How;
use crate::completion;
use crate::context::Context;

/// Start an agent on a task in the background
///
/// Like `weald work --detach`, returns as soon as the agent's supervisor is running. Refused while finished tasks still have
/// worktrees that need a decision: land, keep or remove.
#[derive(Args)]
pub struct Spawn {
    /// Task ID, its worktree, or the subject of a new task
    #[arg(value_name = "TASK", add = completion::tasks())]
    task: String,
    #[command(flatten)]
    how: How,
    /// Start it in its own interface, detached
    #[arg(long, short)]
    interactive: bool,
    /// Start even if finished tasks still have worktrees
    #[arg(long)]
    force: bool,
}

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

impl Spawn {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let mut how = self.how.wish();
        how.interactive = self.interactive;
        let answer = context.perform(SpawnAgent {
            task: self.task,
            how,
            force: self.force,
        })?;
        let agent = &answer.view().agent;
        let told = format!(
            "works on task {}; attach with: weald attach {}",
            agent.task, agent.id
        );
        print_agent(context, &answer, &told)
    }
}

impl Restart {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(RestartAgent {
            agent: self.which.id,
            conversation: match (self.fresh, self.resume) {
                (true, _) => Conversation::New,
                (_, true) => Conversation::Continued,
                _ => Conversation::Any,
            },
            force: self.force,
        })?;
        let before = answer.view().agent.resumes;
        let before = before.map_or(String::new(), |id| id.to_string());
        print_agent(context, &answer, &format!("continues the work of {before}"))
    }
}
