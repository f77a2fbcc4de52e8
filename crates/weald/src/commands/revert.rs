//! `weald revert`

use clap::Args;
use weald_core::id::LandingId;
use weald_engine::LandRequest;

use super::land::{Mode, finish};
use crate::context::Context;
use crate::errors::Failure;

/// Undo a landing on its target
///
/// Makes a commit that takes it back, through the same queue and gate; its task is open again.
#[derive(Args)]
pub struct Revert {
    /// Which landing, by number
    #[arg(value_name = "LANDING")]
    landing: LandingId,
}

impl Revert {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.landing_ground()?;
        let queued = ground.trees(context)?.queue_revert(self.landing)?;
        finish(
            context,
            ground,
            &[queued.id],
            &LandRequest::default(),
            Mode::Work,
        )
    }
}
