//! `weald task dep`

use clap::Args;
use weald_app::Failure;
use weald_core::id::TaskId;

use super::{print_task, warn_of_missing};
use crate::cli::SessionArg;
use crate::completion;
use crate::context::Context;

/// Change the dependencies of a task
#[derive(Args)]
pub struct Dep {
    /// The task
    #[arg(value_name = "ID", add = completion::tasks())]
    id: TaskId,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    session: SessionArg,
}

#[derive(Args)]
#[group(required = true, multiple = true)]
struct Changes {
    /// Add a dependency on this task (may be repeated)
    #[arg(long, value_name = "ID", value_delimiter = ',', add = completion::tasks())]
    add: Vec<TaskId>,
    /// Remove the dependency on this task (may be repeated)
    #[arg(long, value_name = "ID", value_delimiter = ',', add = completion::tasks())]
    remove: Vec<TaskId>,
}

impl Dep {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let actor = context.actor(&engine, self.session.session.as_ref())?;
        let task = engine.change_dependencies(
            actor.as_ref(),
            &self.id,
            &self.changes.add,
            &self.changes.remove,
        )?;
        context.tell(&engine);
        warn_of_missing(context, &engine, &task)?;
        print_task(context, &task)
    }
}
