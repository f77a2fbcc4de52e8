//! `weald session check`

use std::io::Write;

use clap::Args;
use serde_json::json;
use weald_app::{Failure, exit};
use weald_core::id::TaskId;
use weald_core::session::Liveness;

use super::{Which, print_session};
use crate::completion;
use crate::context::Context;
use crate::ui::Fields;

/// Check whether a session is alive or a task is taken
///
/// Exits 0 if the session is alive, 1 if it is dead or unknown. With --task, exits 1 if another session that may be alive
/// holds the task.
#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    which: Which,
    /// Check this task instead
    #[arg(long, value_name = "ID", add = completion::tasks())]
    task: Option<TaskId>,
}

impl Check {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let name = self.which.resolve(context, &engine)?;
        let Some(task) = self.task else {
            let view = engine.session(&name)?;
            print_session(context, &view)?;
            return Ok(if view.liveness == Liveness::Alive {
                exit::DONE
            } else {
                exit::REFUSED
            });
        };
        let contest = engine.contest(&name, &task)?;
        if let (true, Some(owner)) = (contest.contested, &contest.owner) {
            let liveness = contest.liveness.map_or("unknown", Liveness::as_str);
            let message = format!("task {task} is held by {owner} ({liveness})");
            return Err(Failure::new("task_contested", exit::REFUSED, message)
                .hint("weald task ready")
                .details(json!({"contest": contest})));
        }
        context.ui.answer(
            || Fields::new().with("contest", &contest),
            |out| match &contest.owner {
                Some(owner) => writeln!(out, "task {task}: held by {owner}, not contested"),
                None => writeln!(out, "task {task}: not claimed"),
            },
        )
    }
}
