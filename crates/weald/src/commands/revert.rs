//! `weald revert`

use clap::Args;
use weald_app::landing::{Mode, work_landings};
use weald_app::{Failure, LandRequest, Landings};
use weald_core::id::LandingId;
use weald_sandbox::{catch_hangup, catch_interrupts};

use super::land::answer_one;
use crate::context::Context;

/// Undo a landing on its target
///
/// Adds a revert commit through the same queue and gate, and reopens the task.
#[derive(Args)]
pub struct Revert {
    /// Landing number
    #[arg(value_name = "LANDING")]
    landing: LandingId,
}

impl Revert {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        catch_interrupts();
        catch_hangup();
        let ground = context.landing_ground()?;
        let queued = Landings::new(&ground.trees(context)?).queue_revert(self.landing)?;
        let request = LandRequest::default();
        let worked = work_landings(context, ground, &[queued.id], &request, Mode::Work)?;
        let code = answer_one(context, &worked.ground, &worked.landings[0])?;
        Ok(worked.exit.unwrap_or(code))
    }
}
