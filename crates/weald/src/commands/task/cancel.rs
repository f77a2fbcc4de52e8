//! `weald task cancel`

use clap::Args;
use weald_app::Failure;
use weald_core::id::TaskId;
use weald_core::task_rules::TaskInput;

use super::decide;
use crate::cli::SessionArg;
use crate::completion;
use crate::context::Context;

/// Say that a task is not wanted
///
/// Whoever holds it is refused from then on.
#[derive(Args)]
pub struct Cancel {
    /// The task
    #[arg(value_name = "ID", add = completion::tasks())]
    id: TaskId,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    session: SessionArg,
}

impl Cancel {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        decide(
            context,
            &self.id,
            &self.session,
            TaskInput::Cancel {
                reason: self.reason,
            },
        )
    }
}
