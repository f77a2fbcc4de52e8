//! `task_create`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::tasks::AddTask;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers, parsed, words};

pub struct TaskCreate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// What is to be done, in one line.
    subject: String,
    /// More words, for whoever does it.
    description: Option<String>,
    /// What has to hold for it to be done.
    acceptance: Option<String>,
    /// Tasks that have to be completed before.
    #[serde(default)]
    blocked_by: Vec<TaskRef>,
    /// P0 (now) to P3 (when nothing else is left); P2 unless given.
    priority: Option<String>,
    /// Words to filter by.
    #[serde(default)]
    labels: Vec<String>,
    /// What it belongs to: a board, an epic.
    plan: Option<String>,
    /// It can't be completed before somebody approved a plan for it.
    needs_plan: Option<bool>,
    /// An id of another tracker, such as gh-12.
    task_id: Option<TaskRef>,
}

impl Tool for TaskCreate {
    const NAME: &'static str = "task_create";
    const TITLE: &'static str = "Create a task";
    const DESCRIPTION: &'static str = "Adds a task to the board for an agent to claim. Returns the task with its id. List the tasks it depends on in blocked_by.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Teammate;
    type Input = Input;
    type Output = answers::OneTask;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let priority = input.priority.as_deref();
        let priority = priority.map(|word| parsed("priority", word)).transpose()?;
        let request = AddTask {
            subject: input.subject,
            description: input.description.unwrap_or_default(),
            acceptance: input.acceptance.unwrap_or_default(),
            blocked_by: words(&input.blocked_by)?,
            priority: priority.unwrap_or_default(),
            id: input.task_id.map(|task| task.id()).transpose()?,
            labels: input.labels,
            plan: input.plan,
            base_branch: None,
            needs_plan: input.needs_plan.unwrap_or_default(),
        };
        call.perform(request).await
    }
}
