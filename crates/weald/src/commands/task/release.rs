//! `weald task release`

use clap::Args;
use weald_app::Failure;
use weald_core::task_rules::TaskInput;

use super::HeldTask;
use crate::context::Context;

/// Release a claimed task
#[derive(Args)]
pub struct Release {
    #[command(flatten)]
    held: HeldTask,
}

impl Release {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        self.held
            .decide(context, |token| TaskInput::Release { token })
    }
}
