//! `weald task claim`

use std::io::Write;

use clap::Args;
use weald_core::SignedDuration;
use weald_core::id::TaskId;

use super::print_line;
use crate::cli::{SessionArg, duration};
use crate::completion;
use crate::context::Context;
use crate::errors::Failure;
use crate::ui::{Fields, left};

/// Take a task, or the next one that is ready
///
/// The answer holds the token that every later step needs.
#[derive(Args)]
pub struct Claim {
    /// The task (default: the next ready one, by priority, then age)
    #[arg(value_name = "ID", add = completion::tasks())]
    id: Option<TaskId>,
    /// How long before others may take over (default: lease.ttl)
    #[arg(long, value_name = "15m", value_parser = duration)]
    ttl: Option<SignedDuration>,
    #[command(flatten)]
    session: SessionArg,
}

impl Claim {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let session = context.session(&engine, self.session.session.as_ref())?;
        let claimed = engine.claim(&session, self.id.as_ref(), self.ttl)?;
        context.tell(&engine);
        let lease = &claimed.lease;
        context.ui.answer(
            || {
                Fields::new()
                    .with("task", &claimed.task)
                    .with("lease", lease)
            },
            |out| {
                print_line(out, &claimed.task)?;
                let left = left(lease.expires_at, context.now());
                writeln!(
                    out,
                    "claimed by {} with token {} ({left})",
                    lease.session, lease.token
                )?;
                writeln!(
                    out,
                    "finish it: weald task done {} --token {}",
                    claimed.task.id, lease.token
                )
            },
        )
    }
}
