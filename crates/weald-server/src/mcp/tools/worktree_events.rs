//! `worktree_events`

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, Words, answers};

pub struct WorktreeEvents;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only about this worktree.
    name: Option<String>,
    /// Only about this task.
    task_id: Option<TaskRef>,
    /// Only those after this sequence number.
    since: Option<u64>,
    /// At most so many, 200 at most; 20 unless given.
    limit: Option<u64>,
}

impl Tool for WorktreeEvents {
    const NAME: &'static str = "worktree_events";
    const TITLE: &'static str = "Read the log";
    const DESCRIPTION: &'static str = "What happened, newest last: worktrees, tasks, landings, agents. Each event has a sequence number; to continue from it pass it as since.";
    const EFFECT: Effect = Effect::Reads;
    const AUDIENCE: Audience = Audience::Confined;
    type Input = Input;
    type Output = answers::Events;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let words = Words::of(&["events"])
            .flag("tree", input.name)
            .flag("task", input.task_id)
            .flag("since", input.since)
            .flag("limit", input.limit);
        call.list("events", words).await
    }
}
