//! `weald task fail`

use clap::Args;
use weald_core::task_rules::TaskInput;

use super::HeldTask;
use crate::context::Context;
use crate::errors::Failure;

/// Give up on a task
#[derive(Args)]
pub struct Fail {
    #[command(flatten)]
    held: HeldTask,
    /// Why
    #[arg(long, alias = "reason", value_name = "TEXT")]
    report: Option<String>,
}

impl Fail {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        self.held.decide(context, |token| TaskInput::Fail {
            token,
            report: self.report,
        })
    }
}
