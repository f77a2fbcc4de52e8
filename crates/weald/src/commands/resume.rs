//! `weald resume`

use clap::Args;
use weald_app::Failure;
use weald_app::operations::works::ResumeTask;
use weald_app::supervision::AgentWish;

use super::work::{How, attached_or_ended};
use crate::attaching::require_terminal;
use crate::completion;
use crate::context::Context;

/// Resume a task where its last agent ended
///
/// Runs the same command in the same worktree (recreated from its branch if it is gone) and, if the driver supports it, in
/// the agent's own conversation. Finished work that has not landed yet lands. An agent that worked in the main checkout
/// continues there.
#[derive(Args)]
pub struct Resume {
    /// Task ID, or its worktree, agent, branch or path
    #[arg(value_name = "TASK", add = completion::tasks())]
    task: String,
    /// Start a new conversation
    #[arg(long)]
    fresh: bool,
    /// Tell the agent what to change; it runs again
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
    /// Open the agent's own interface on this terminal
    #[arg(long, short, conflicts_with_all = ["detach", "land"])]
    interactive: bool,
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
        if self.interactive {
            require_terminal()?;
        }
        let answer = context.perform(ResumeTask {
            task: self.task,
            fresh: self.fresh,
            detach: self.detach || self.interactive,
            how: AgentWish {
                interactive: self.interactive,
                feedback: self.feedback,
                ..self.how.wish()
            },
        })?;
        attached_or_ended(context, &answer, self.interactive)
    }
}
