//! `task_complete`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::Report;
use weald_app::operations::claims::CompleteTask;
use weald_core::agent::Verification;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers};

pub struct TaskComplete;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which task; your own unless given.
    task_id: Option<TaskRef>,
    /// What was done, for whoever reads it next.
    report: Option<String>,
    /// Paths that you changed.
    #[serde(default)]
    files_changed: Vec<String>,
    /// passed or failed, if you checked your work.
    verified: Option<String>,
    /// By what you checked it, such as cargo test. Only with verified.
    verified_by: Option<String>,
    /// The token of your claim, if your session is not the one that claimed it.
    token: Option<u64>,
}

impl Tool for TaskComplete {
    const NAME: &'static str = "task_complete";
    const TITLE: &'static str = "Complete a task";
    const DESCRIPTION: &'static str = "Marks your task as done, with a report of what you did. In a sandbox: commit first; your prompt says whether your work lands when you end. Elsewhere only for a task that has nothing to land: land completes a task whose work landed. Returns the task and the tasks that it made ready. Your default worktree is reset; it stays on disk.";
    const EFFECT: Effect = Effect::Settles;
    const AUDIENCE: Audience = Audience::Confined;
    type Input = Input;
    type Output = answers::FinishedTask;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        if input.verified_by.is_some() && input.verified.is_none() {
            return Err(no_verdict());
        }
        let (id, caller) = call.held(input.task_id, input.token).await?;
        let verification = match input.verified.as_deref() {
            None => Verification::None,
            Some("passed") => Verification::Passed,
            Some("failed") => Verification::Failed,
            Some(word) => return Err(no_such_verdict(word)),
        };
        let report = Report {
            text: input.report,
            files_changed: input.files_changed,
            verification,
            verified_by: input.verified_by.unwrap_or_default(),
        };
        call.perform_as(caller, CompleteTask { id, report }).await
    }
}

/// As the command line has it: what checked the work says nothing without what came out.
fn no_verdict() -> Fault {
    Fault::new(
        "bad_arguments",
        2,
        "verified_by is given without verified; the task is unchanged",
    )
    .hint("give verified, too: passed or failed")
}

fn no_such_verdict(word: &str) -> Fault {
    let message = format!("invalid value '{word:.100}' for verified");
    Fault::new("invalid_value", 2, message).hint("give passed or failed")
}
