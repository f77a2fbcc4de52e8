//! `task_list`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::tasks::ListTasks;

use super::{Audience, Call, Effect, Fault, JsonObject, Tool, answers, parsed};

pub struct TaskList;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only tasks in these: pending, in_progress, completed, failed, needs_merge, blocked, cancelled, ready, waiting, done.
    #[serde(default)]
    status: Vec<String>,
    /// Only those of this session.
    owner: Option<String>,
    /// Only those with this label.
    label: Option<String>,
    /// At most so many; 100 unless given.
    limit: Option<u64>,
}

impl Tool for TaskList {
    const NAME: &'static str = "task_list";
    const TITLE: &'static str = "List tasks";
    const DESCRIPTION: &'static str = "The board: tasks with status, owner, dependencies and worktree. Look here before you claim one.";
    const EFFECT: Effect = Effect::Reads;
    const AUDIENCE: Audience = Audience::Confined;
    type Input = Input;
    type Output = answers::Tasks;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let owner = input.owner.as_deref();
        let request = ListTasks {
            status: input.status,
            owner: owner.map(|name| parsed("owner", name)).transpose()?,
            label: input.label,
            limit: Some(input.limit.unwrap_or(100)),
        };
        call.perform(request).await
    }
}
