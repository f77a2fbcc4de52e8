//! `weald task list`

use std::io::Write;

use clap::Args;
use clap::builder::PossibleValuesParser;
use weald_app::Failure;
use weald_core::name::SessionName;
use weald_core::store::{TaskClass, TaskFilter};
use weald_core::task::Task as Record;
use weald_server::broker::Ask;

use super::super::inside::{Inside, field};
use super::print_tasks;
use crate::completion;
use crate::context::Context;
use crate::ui::Fields;

/// What `--status` takes: the statuses, and words people use for sets of them.
const STATUSES: [&str; 10] = [
    "pending",
    "in_progress",
    "needs_merge",
    "blocked",
    "failed",
    "completed",
    "cancelled",
    "ready",
    "waiting",
    "done",
];

/// List tasks
///
/// Lists them in order of creation.
#[derive(Args)]
pub struct List {
    /// Only tasks with this status (may be repeated)
    ///
    /// `blocked` includes tasks that wait for other tasks.
    #[arg(long, short, value_name = "STATUS", value_delimiter = ',', value_parser = PossibleValuesParser::new(STATUSES))]
    status: Vec<String>,
    /// Only tasks of this session
    #[arg(long, value_name = "NAME", add = completion::sessions())]
    owner: Option<SessionName>,
    /// Only tasks with this label
    #[arg(long, value_name = "WORD")]
    label: Option<String>,
    /// Maximum number of tasks
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

impl List {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let filter = TaskFilter {
            classes: self
                .status
                .iter()
                .flat_map(|word| TaskClass::named(word))
                .collect(),
            owner: self.owner,
            label: self.label,
            limit: self.limit,
            ..TaskFilter::default()
        };
        let (tasks, total) = context.engine()?.tasks(&filter)?;
        context.ui.answer(
            || Fields::new().with("tasks", &tasks).with("total", &total),
            |out| match tasks.is_empty() {
                true => writeln!(out, "no tasks"),
                false => print_tasks(out, &tasks),
            },
        )
    }

    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let reply = inside.ask(Ask::TaskList {
            status: self.status,
            owner: self.owner,
            label: self.label,
            limit: self.limit,
        })?;
        let tasks: Vec<Record> = field(&reply, "tasks")?;
        inside.print(&reply, |out| match tasks.is_empty() {
            true => writeln!(out, "no tasks"),
            false => print_tasks(out, &tasks),
        })
    }
}
