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
    /// Subject of the task, in one line
    subject: String,
    /// Longer description
    #[arg(long, short, value_name = "TEXT", default_value = "")]
    description: String,
    /// Conditions for completion
    #[arg(long, value_name = "TEXT", default_value = "")]
    acceptance: String,
    /// Task that must finish first (may be repeated)
    #[arg(long, value_name = "ID", value_delimiter = ',', add = completion::tasks())]
    after: Vec<TaskId>,
    /// Priority from P0 (highest) to P3 (lowest)
    #[arg(long, short, value_name = "P0..P3", default_value = "P2")]
    priority: Priority,
    /// Your own ID, for example gh-12
    #[arg(long, value_name = "ID")]
    id: Option<TaskId>,
    /// Label to filter by (may be repeated)
    #[arg(long, value_name = "WORD")]
    label: Vec<String>,
    /// Board or epic it belongs to
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// Branch to start from and land on
    #[arg(long, value_name = "BRANCH")]
    base_branch: Option<String>,
    /// Refuse completion until a plan is approved
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
