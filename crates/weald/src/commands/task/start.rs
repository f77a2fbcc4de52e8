//! `weald task start`

use clap::Args;
use weald_app::Failure;
use weald_core::id::TaskId;
use weald_core::name::SessionName;
use weald_core::task_rules::TaskInput;

use super::decide;
use crate::cli::SessionArg;
use crate::completion;
use crate::context::Context;

/// Start a task without a claim
///
/// For people, who need no lease.
#[derive(Args)]
pub struct Start {
    /// The task
    #[arg(value_name = "ID", add = completion::tasks())]
    id: TaskId,
    /// Session that works on it (default: your own)
    #[arg(long, value_name = "NAME")]
    owner: Option<SessionName>,
    #[command(flatten)]
    session: SessionArg,
}

impl Start {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let owner = match self.owner {
            Some(owner) => Some(owner),
            None => context.actor(&engine, self.session.session.as_ref())?,
        };
        decide(context, &self.id, &self.session, TaskInput::Start { owner })
    }
}
