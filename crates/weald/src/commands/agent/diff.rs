//! `weald agent diff`

use clap::Args;
use weald_app::Failure;
use weald_app::operations::orders::DiffAgent;

use super::Which;
use crate::commands::diff::{Style, print};
use crate::context::Context;

/// Show what an agent changed in its worktree or landed
#[derive(Args)]
pub struct Diff {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    style: Style,
}

impl Diff {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(DiffAgent {
            agent: self.which.id,
            style: self.style.wanted(context),
            options: self.style.options(),
            reader: context.ui.reader(),
        })?;
        print(context, &answer)
    }
}
