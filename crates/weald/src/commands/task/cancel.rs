//! `weald task cancel`

use clap::Args;
use weald_app::Failure;
use weald_core::id::TaskId;
use weald_core::task_rules::TaskInput;

use super::decide;
use crate::cli::SessionArg;
use crate::completion;
use crate::context::Context;

/// Cancel a task
///
/// From then on, its holder can no longer update it.
#[derive(Args)]
pub struct Cancel {
    /// The task
    #[arg(value_name = "ID", add = completion::tasks())]
    id: TaskId,
    /// Reason to record
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
