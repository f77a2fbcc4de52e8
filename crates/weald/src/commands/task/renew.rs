//! `weald task renew`

use clap::Args;
use weald_app::Failure;
use weald_core::SignedDuration;
use weald_core::task_rules::TaskInput;
use weald_server::broker::Ask;

use super::super::inside::Inside;
use super::HeldTask;
use crate::cli::duration;
use crate::context::Context;

/// Renew the claim on a task
///
/// Works even after the lease has expired, as long as nobody took over.
#[derive(Args)]
pub struct Renew {
    #[command(flatten)]
    held: HeldTask,
    /// Lease time from now on (default: lease.ttl)
    #[arg(long, value_name = "15m", value_parser = duration)]
    ttl: Option<SignedDuration>,
}

impl Renew {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let default = || Ok::<_, Failure>(context.config(&context.place()?)?.config.lease_ttl);
        let ttl = self.ttl.map_or_else(default, Ok)?;
        self.held
            .decide(context, |token| TaskInput::Renew { token, ttl })
    }

    /// The same from inside a tree, for as long as is configured.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        self.held.ask(inside, |id| Ask::TaskRenew { id })
    }
}
