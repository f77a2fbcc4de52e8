//! `weald session heartbeat`

use clap::Args;
use weald_app::Failure;
use weald_core::id::TaskId;
use weald_core::name::TreeName;

use super::{Which, print_session};
use crate::completion;
use crate::context::Context;

/// Report that a session is alive
///
/// Optionally records the task and the worktree it works on.
#[derive(Args)]
pub struct Heartbeat {
    #[command(flatten)]
    which: Which,
    /// Task you work on
    #[arg(long, value_name = "ID", add = completion::tasks())]
    task: Option<TaskId>,
    /// Worktree you work in
    #[arg(long, value_name = "NAME")]
    tree: Option<TreeName>,
    /// Also renew your claims
    #[arg(long)]
    renew: bool,
}

impl Heartbeat {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let name = self.which.resolve(context, &engine)?;
        let view = engine.heartbeat(&name, self.task, self.tree)?;
        if self.renew {
            engine.renew_held(&name)?;
        }
        context.tell(&engine);
        print_session(context, &view)
    }
}
