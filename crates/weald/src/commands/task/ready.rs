//! `weald task ready`

use std::io::Write;

use clap::Args;
use weald_app::Failure;
use weald_core::store::{TaskClass, TaskFilter, TaskOrder};
use weald_core::task::Task as Record;
use weald_server::broker::Ask;

use super::super::inside::{Inside, field};
use super::print_tasks;
use crate::context::Context;
use crate::ui::Fields;

/// List tasks that can be claimed now, most urgent first
#[derive(Args)]
pub struct Ready {
    /// Maximum number of tasks
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: u64,
}

impl Ready {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let filter = TaskFilter {
            classes: vec![TaskClass::Ready],
            order: TaskOrder::Claim,
            limit: Some(self.limit),
            ..TaskFilter::default()
        };
        let (tasks, total) = context.engine()?.tasks(&filter)?;
        if total > tasks.len() as u64 {
            context.note(&format!("{} of {total}; --limit shows more", tasks.len()));
        }
        context.ui.answer(
            || Fields::new().with("tasks", &tasks).with("total", &total),
            |out| match tasks.is_empty() {
                true => writeln!(out, "nothing is ready"),
                false => print_tasks(out, &tasks),
            },
        )
    }

    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let reply = inside.ask(Ask::TaskReady {
            limit: Some(self.limit),
        })?;
        let tasks: Vec<Record> = field(&reply, "tasks")?;
        inside.print(&reply, |out| match tasks.is_empty() {
            true => writeln!(out, "nothing is ready"),
            false => print_tasks(out, &tasks),
        })
    }
}
