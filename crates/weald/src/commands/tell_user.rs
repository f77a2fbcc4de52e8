//! `weald tell-user`: the process that notifies the user. Started by weald itself.

use clap::Args;

use weald_app::{Failure, notifier};

use crate::context::Context;

/// Notify the user of what is on standard input (run by weald itself)
#[derive(Args)]
pub struct TellUser {}

impl TellUser {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        context.step_back();
        notifier::tell(context)?;
        Ok(0)
    }
}
