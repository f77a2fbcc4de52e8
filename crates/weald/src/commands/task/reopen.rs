//! `weald task reopen`

use clap::Args;
use weald_app::Failure;
use weald_core::id::TaskId;
use weald_core::task_rules::TaskInput;

use super::decide;
use crate::cli::SessionArg;
use crate::completion;
use crate::context::Context;

/// Reopen a finished, failed, blocked or cancelled task
#[derive(Args)]
pub struct Reopen {
    /// The task
    #[arg(value_name = "ID", add = completion::ended_tasks())]
    id: TaskId,
    #[command(flatten)]
    session: SessionArg,
}

impl Reopen {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        decide(context, &self.id, &self.session, TaskInput::Reopen)
    }
}
