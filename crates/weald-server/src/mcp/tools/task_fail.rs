//! `task_fail`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::Report;
use weald_app::operations::claims::FailTask;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers};

pub struct TaskFail;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which task; your own unless given.
    task_id: Option<TaskRef>,
    /// Why it can't be done, for whoever takes it next.
    reason: Option<String>,
    /// The token of the claim, if your session is not the one that claimed it.
    token: Option<u64>,
}

impl Tool for TaskFail {
    const NAME: &'static str = "task_fail";
    const TITLE: &'static str = "Give up a task";
    const DESCRIPTION: &'static str = "Marks your task as failed, with the reason. Its worktree is kept with everything in it; task_update with action reopen puts the task back on the board.";
    const EFFECT: Effect = Effect::Settles;
    const AUDIENCE: Audience = Audience::Confined;
    const ALSO: &'static [(&'static str, &'static str)] = &[("report", "reason")];
    type Input = Input;
    type Output = answers::OneTask;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let (id, caller) = call.held(input.task_id, input.token).await?;
        let report = Report {
            text: input.reason,
            ..Report::default()
        };
        call.perform_as(caller, FailTask { id, report }).await
    }
}
