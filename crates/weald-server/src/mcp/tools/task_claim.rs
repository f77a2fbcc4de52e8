//! `task_claim`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::claims::ClaimTask;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers};

pub struct TaskClaim;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which task; the next ready one unless given.
    task_id: Option<TaskRef>,
}

impl Tool for TaskClaim {
    const NAME: &'static str = "task_claim";
    const TITLE: &'static str = "Claim a task";
    const DESCRIPTION: &'static str = "Claims a task, or the next ready one, and gives you a worktree for it. Returns the task, your claim, and the worktree with its absolute path and branch: work only below that path. It becomes the default worktree of your other calls. Finish with land and a report. Error nothing_ready: there is no work.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Confined;
    type Input = Input;
    type Output = answers::ClaimedTask;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let id = input.task_id.map(|task| task.word()).transpose()?;
        let request = ClaimTask {
            id,
            ttl: None,
            with_tree: true,
        };
        call.perform(request).await
    }
}
