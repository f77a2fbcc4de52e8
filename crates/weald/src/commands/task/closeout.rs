//! `weald task closeout`

use clap::{Args, ValueEnum};
use weald_core::id::TaskId;
use weald_core::task_rules::TaskInput;
use weald_engine::RemoveRequest;

use super::print_task;
use crate::completion;
use crate::context::Context;
use crate::errors::Failure;

/// Say how a task's tree is dealt with at the end, and do it
#[derive(Args)]
pub struct Closeout {
    /// The task
    #[arg(value_name = "ID", add = completion::tasks())]
    id: TaskId,
    /// Keep its tree, or put it into the trash
    #[arg(value_name = "WHAT")]
    action: Action,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Complete the task
    #[arg(long)]
    complete_task: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Action {
    Keep,
    Remove,
}

impl Closeout {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let tree = ground.engine.task(&self.id)?.task.worktree;
        let tree = tree.as_ref().map(|name| name.as_str());
        match (self.action, tree) {
            (Action::Keep, Some(tree)) => drop(trees.keep(Some(tree))?),
            (Action::Remove, Some(tree)) => {
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
            let token = context.token(&self.id, None);
            let input = TaskInput::Complete {
                token,
                report: Some(self.reason.clone()),
            };
            ground.engine.move_task(actor.as_ref(), &self.id, input)?;
        }
        context.tell(&ground.engine);
        print_task(context, &ground.engine.task(&self.id)?.task)
    }
}
