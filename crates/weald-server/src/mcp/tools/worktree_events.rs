//! `worktree_events`

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::events::ListEvents;
use weald_core::id::Seq;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers, parsed};

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
        let limit = input.limit.unwrap_or(20);
        let name = input.name.as_deref();
        let request = ListEvents {
            since: input.since.map(Seq),
            task: input.task_id.map(|task| task.word()).transpose()?,
            tree: name.map(|name| parsed("name", name)).transpose()?,
            limit: parsed::<NonZeroU64>("limit", &limit.to_string())?.get(),
        };
        call.perform(request).await
    }
}
