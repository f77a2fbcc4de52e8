//! `weald task edit`

use clap::Args;
use weald_app::Failure;
use weald_core::id::TaskId;
use weald_core::task::Priority;
use weald_core::task_rules::TaskEdit;

use super::print_task;
use crate::cli::SessionArg;
use crate::completion;
use crate::context::Context;

/// Edit a task
#[derive(Args)]
pub struct Edit {
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
    /// New subject
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,
    /// New description
    #[arg(long, short, value_name = "TEXT")]
    description: Option<String>,
    /// New acceptance notes
    #[arg(long, value_name = "TEXT")]
    acceptance: Option<String>,
    /// New priority
    #[arg(long, short, value_name = "P0..P3")]
    priority: Option<Priority>,
    /// New board or epic; empty removes it
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// New branch to start from and land on; empty removes it
    #[arg(long, value_name = "BRANCH")]
    base_branch: Option<String>,
    /// Add a label (may be repeated)
    #[arg(long, value_name = "WORD")]
    label: Vec<String>,
    /// Remove a label (may be repeated)
    #[arg(long, value_name = "WORD")]
    unlabel: Vec<String>,
    /// Whether completion needs an approved plan
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    needs_plan: Option<bool>,
}

impl Edit {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let actor = context.actor(&engine, self.session.session.as_ref())?;
        let changes = self.changes;
        let edit = TaskEdit {
            subject: changes.subject,
            description: changes.description,
            acceptance: changes.acceptance,
            priority: changes.priority,
            plan: changes.plan,
            base_branch: changes.base_branch,
            add_labels: changes.label,
            remove_labels: changes.unlabel,
            needs_plan: changes.needs_plan,
            ..TaskEdit::default()
        };
        let task = engine.edit_task(actor.as_ref(), &self.id, edit)?;
        context.tell(&engine);
        print_task(context, &task)
    }
}
