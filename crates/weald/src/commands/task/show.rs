//! `weald task show`

use std::io::{self, Write};

use clap::Args;
use weald_app::{Failure, StageView, TaskDetail, stages_in_words};
use weald_core::Timestamp;
use weald_core::id::TaskId;
use weald_server::broker::Ask;

use super::super::inside::{Inside, field};
use super::print_line;
use crate::completion;
use crate::context::Context;
use crate::ui::{DIM, Fields, Out, ago, clean, left, paint};

/// Show a task
#[derive(Args)]
pub struct Show {
    /// The task (default: $WEALD_TASK)
    #[arg(value_name = "ID", add = completion::all_tasks())]
    id: Option<TaskId>,
}

impl Show {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let id = context.task(self.id)?;
        let engine = context.engine()?;
        let detail = engine.task(&id)?;
        let stages = engine.stages(&id)?;
        let now = context.now();
        context.ui.answer(
            || {
                Fields::new()
                    .with("task", &detail)
                    .with_some("stages", Some(&stages).filter(|stages| !stages.is_empty()))
            },
            |out| print_detail(out, &detail, &stages, now),
        )
    }

    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let reply = inside.ask(Ask::TaskShow { id: self.id })?;
        let detail: TaskDetail = field(&reply, "task")?;
        let now = inside.context.now();
        inside.print(&reply, |out| print_detail(out, &detail, &[], now))
    }
}

/// One task, for people.
pub fn print_detail(
    out: &mut Out,
    detail: &TaskDetail,
    stages: &[StageView],
    now: Timestamp,
) -> io::Result<()> {
    let task = &detail.task;
    print_line(out, task)?;
    let mut line = |name: &str, value: String| match value.is_empty() {
        true => Ok(()),
        false => writeln!(
            out,
            "  {} {}",
            paint(DIM, format!("{name:<11}")),
            clean(&value)
        ),
    };
    let ids = |ids: &[TaskId]| {
        ids.iter()
            .map(TaskId::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let owner = match (&task.owner, &task.lease) {
        (Some(owner), Some(lease)) => {
            format!(
                "{owner} (token {}, {})",
                lease.token,
                left(lease.expires_at, now)
            )
        }
        (Some(owner), None) => owner.to_string(),
        (None, _) => String::new(),
    };
    let waiting = match detail.waiting_for.is_empty() {
        true => String::new(),
        false => detail.waiting_for.to_string(),
    };
    line("owner", owner)?;
    line("waits for", waiting)?;
    line("after", ids(&task.blocked_by))?;
    line("blocks", ids(&detail.blocks))?;
    line("labels", task.labels.join(", "))?;
    line("plan", text(&task.plan))?;
    line(
        "worktree",
        task.worktree
            .as_ref()
            .map_or_else(String::new, ToString::to_string),
    )?;
    line("phases", stages_in_words(stages))?;
    line("acceptance", task.acceptance.clone())?;
    line("report", text(&task.report))?;
    line("created", format!("{} ago", ago(task.created_at, now)))?;
    line("updated", format!("{} ago", ago(task.updated_at, now)))?;
    match task.description.is_empty() {
        true => Ok(()),
        false => writeln!(out, "\n{}", clean(&task.description)),
    }
}
