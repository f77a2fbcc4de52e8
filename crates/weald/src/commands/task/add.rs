//! `weald task add`

use clap::Args;
use weald_app::{Failure, NewTask};
use weald_core::id::TaskId;
use weald_core::task::Priority;

use super::{print_task, warn_of_missing};
use crate::cli::SessionArg;
use crate::completion;
use crate::context::Context;

/// Add a task
#[derive(Args)]
pub struct Add {
    /// What is to be done, in one line
    subject: String,
    /// More words
    #[arg(long, short, value_name = "TEXT", default_value = "")]
    description: String,
    /// What has to hold for it to be done
    #[arg(long, value_name = "TEXT", default_value = "")]
    acceptance: String,
    /// Wait for this task (may be repeated)
    #[arg(long, value_name = "ID", value_delimiter = ',', add = completion::tasks())]
    after: Vec<TaskId>,
    /// P0 (now) to P3 (when nothing else is left)
    #[arg(long, short, value_name = "P0..P3", default_value = "P2")]
    priority: Priority,
    /// An id of your own, as gh-12
    #[arg(long, value_name = "ID")]
    id: Option<TaskId>,
    /// A word to filter by (may be repeated)
    #[arg(long, value_name = "WORD")]
    label: Vec<String>,
    /// The board or epic it belongs to
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// Start from this branch and land on it
    #[arg(long, value_name = "BRANCH")]
    base_branch: Option<String>,
    /// Refuse completion until a plan was approved
    #[arg(long)]
    needs_plan: bool,
    #[command(flatten)]
    session: SessionArg,
}

impl Add {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let actor = context.actor(&engine, self.session.session.as_ref())?;
        let new = NewTask {
            id: self.id,
            subject: self.subject,
            description: self.description,
            acceptance: self.acceptance,
            priority: self.priority,
            blocked_by: self.after,
            labels: self.label,
            plan: self.plan,
            base_branch: self.base_branch,
            needs_plan: self.needs_plan,
        };
        let task = engine.add_task(actor.as_ref(), new)?;
        context.tell(&engine);
        warn_of_missing(context, &engine, &task)?;
        print_task(context, &task)
    }
}
