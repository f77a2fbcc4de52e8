//! `weald tell-tracker`: the process that tells a tracker what became of its tasks. Started by weald itself.

use clap::Args;

use weald_app::{Failure, tracker};

use crate::context::Context;

/// Report task results to the tracker (run by weald itself)
#[derive(Args)]
pub struct TellTracker {}

impl TellTracker {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        context.step_back();
        tracker::tell(context)?;
        Ok(0)
    }
}
