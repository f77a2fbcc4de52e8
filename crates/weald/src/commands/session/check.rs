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

/// Ask whether a session lives, or whether a task is somebody else's
///
/// Ask whether a session lives (exit 0: alive, 1: dead or unknown), or whether a task is somebody else's (exit 1).
#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    which: Which,
    /// Ask about this task instead
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
                None => writeln!(out, "task {task}: nobody holds it"),
            },
        )
    }
}
