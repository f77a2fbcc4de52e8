//! `weald tell-tracker`: the process that tells a tracker what became of its tasks. Started by weald itself.

use clap::Args;

use super::pool::step_back;
use crate::context::Context;
use crate::errors::Failure;
use crate::tracker;

/// Tell the tracker what became of its tasks (weald starts this itself)
#[derive(Args)]
pub struct TellTracker {}

impl TellTracker {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        step_back(context);
        tracker::tell(context)?;
        Ok(0)
    }
}
