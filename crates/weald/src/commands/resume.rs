//! `weald resume`

use clap::Args;
use weald_app::Failure;
use weald_app::operations::works::ResumeTask;

use super::work::{How, print_ended};
use crate::completion;
use crate::context::Context;

/// Resume a task where its last agent ended
///
/// Runs the same command in the same worktree (recreated from its branch if it is gone) and, if the driver supports it, in
/// the agent's own conversation. Finished work that has not landed yet lands. An agent that worked in the main checkout
/// continues there.
#[derive(Args)]
pub struct Resume {
    /// The task
    #[arg(value_name = "TASK", add = completion::tasks())]
    task: String,
    /// Start a new conversation
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    how: How,
    /// Accepted for compatibility; the task resumes where it ran before
    #[arg(long, hide = true)]
    use_worktree: bool,
    /// Return at once; the agent runs in the background
    #[arg(long)]
    detach: bool,
}

impl Resume {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let _ = self.use_worktree;
        let answer = context.perform(ResumeTask {
            task: self.task,
            fresh: self.fresh,
            detach: self.detach,
            how: self.how.wish(),
        })?;
        print_ended(context, &answer)
    }
}
