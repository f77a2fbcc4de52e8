//! `weald agent take`

use clap::Args;
use weald_app::Failure;
use weald_app::operations::starts::TakeAgent;

use super::Which;
use crate::attaching::require_terminal;
use crate::commands::attach::attach_new;
use crate::context::Context;

/// Open a headless agent's conversation in its own interface
///
/// Stops the agent if it is running, then starts it again in the same worktree and conversation, attached to this terminal.
/// When that ends, `weald resume TASK` continues the conversation headless.
#[derive(Args)]
pub struct Take {
    #[command(flatten)]
    which: Which,
}

impl Take {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        require_terminal()?;
        let taken = context.perform(TakeAgent {
            agent: self.which.id,
        })?;
        attach_new(context, taken.view().agent.id)
    }
}
