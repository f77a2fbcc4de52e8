//! `weald task claim`

use std::io::{self, Write};

use clap::Args;
use weald_core::id::TaskId;
use weald_core::task::{Lease, Task as Record};
use weald_core::{SignedDuration, Timestamp};
use weald_server::broker::Ask;

use super::super::inside::{Inside, field};
use super::print_line;
use crate::cli::{SessionArg, duration};
use crate::completion;
use crate::context::Context;
use crate::errors::Failure;
use crate::ui::{Fields, Out, left};

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
            |out| print_claim(out, &claimed.task, lease, context.now()),
        )
    }

    /// The same from inside a tree: the run's own claim, again.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let session = self.session.session.as_ref();
        let reply = inside.ask_as(session, None, Ask::TaskClaim { id: self.id })?;
        let (task, lease): (Record, Lease) = (field(&reply, "task")?, field(&reply, "lease")?);
        let now = inside.context.now();
        inside.print(&reply, |out| print_claim(out, &task, &lease, now))
    }
}

fn print_claim(out: &mut Out, task: &Record, lease: &Lease, now: Timestamp) -> io::Result<()> {
    print_line(out, task)?;
    writeln!(
        out,
        "claimed by {} with token {} ({})",
        lease.session,
        lease.token,
        left(lease.expires_at, now)
    )?;
    writeln!(
        out,
        "finish it: weald task done {} --token {}",
        task.id, lease.token
    )
}
