//! `task_get`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::tasks::ShowTask;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers};

pub struct TaskGet;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which task; your own unless given.
    task_id: Option<TaskRef>,
}

impl Tool for TaskGet {
    const NAME: &'static str = "task_get";
    const TITLE: &'static str = "Show a task";
    const DESCRIPTION: &'static str = "Everything about one task: description, acceptance, dependencies, claim, worktree, report.";
    const EFFECT: Effect = Effect::Reads;
    const AUDIENCE: Audience = Audience::Confined;
    type Input = Input;
    type Output = answers::OneTask;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let (id, _) = call.held(input.task_id, None).await?;
        call.perform(ShowTask { id }).await
    }
}
