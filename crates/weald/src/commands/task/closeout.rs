//! `weald task closeout`

use clap::{Args, ValueEnum};
use weald_app::{Failure, RemoveRequest};
use weald_core::id::{TaskId, Token};
use weald_core::task_rules::TaskInput;

use super::print_task;
use crate::completion;
use crate::context::Context;

/// Keep or remove a task's worktree and record the reason
#[derive(Args)]
pub struct Closeout {
    /// The task
    #[arg(value_name = "ID", add = completion::tasks())]
    id: TaskId,
    /// Keep the worktree, or move it to the trash
    #[arg(value_name = "WHAT")]
    action: Action,
    /// Reason to record
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Also complete the task
    #[arg(long)]
    complete_task: bool,
    /// Claim token of the task (default: $WEALD_TOKEN if $WEALD_TASK is this task)
    #[arg(long, value_name = "N")]
    token: Option<Token>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Action {
    Keep,
    Remove,
}

impl Closeout {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let complete = TaskInput::Complete {
            token: context.token(&self.id, self.token),
            report: Some(self.reason.clone()),
        };
        if self.complete_task {
            // What would be refused at the end is refused before anything is touched.
            ground.engine.try_task(&self.id, complete.clone())?;
        }
        let tree = ground.engine.task(&self.id)?.task.worktree;
        let tree = tree.as_ref().map(|name| name.as_str());
        match (self.action, tree) {
            (Action::Keep, Some(tree)) => drop(trees.keep(Some(tree))?),
            (Action::Remove, Some(tree)) => {
                trees.require_own(&trees.named(Some(tree))?)?;
                drop(trees.remove(Some(tree), &RemoveRequest::default())?)
            }
            (_, None) => {}
        }
        let action = match self.action {
            Action::Keep => "keep",
            Action::Remove => "remove",
        };
        trees.closeout(&self.id, action, &self.reason)?;
        if self.complete_task {
            let actor = context.actor(&ground.engine, None)?;
            ground
                .engine
                .move_task(actor.as_ref(), &self.id, complete)?;
        }
        context.tell(&ground.engine);
        print_task(context, &ground.engine.task(&self.id)?.task)
    }
}
