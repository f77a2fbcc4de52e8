//! `weald task done`

use clap::Args;
use weald_core::task_rules::TaskInput;

use super::HeldTask;
use crate::context::Context;
use crate::errors::Failure;

/// Finish a task
///
/// The answer lists what became ready by it.
#[derive(Args)]
pub struct Done {
    #[command(flatten)]
    held: HeldTask,
    /// What was done
    #[arg(long, value_name = "TEXT")]
    report: Option<String>,
}

impl Done {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        self.held.decide(context, |token| TaskInput::Complete {
            token,
            report: self.report,
        })
    }
}
