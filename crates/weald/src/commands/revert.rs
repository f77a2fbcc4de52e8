//! `weald revert`

use clap::Args;
use weald_app::Failure;
use weald_app::operations::Operation;
use weald_app::operations::landing::RevertLanding;
use weald_core::meant::Word;

use super::land::told_one;
use crate::context::Context;

/// Undo a landing on its target
///
/// Adds a revert commit through the same queue and gate, and reopens the task.
#[derive(Args)]
pub struct Revert {
    /// Landing number, or a worktree or task: what it landed last
    #[arg(value_name = "LANDING")]
    landing: Word,
}

impl Revert {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let landing = self.landing;
        let one = context.perform(RevertLanding { landing })?;
        context.ui.show(&one, |out| told_one(out, &one.landing))?;
        Ok(RevertLanding::exit(&one))
    }
}
