//! `land_status`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use weald_app::operations::queue::QueueStatus;

use super::{Audience, Call, Effect, Fault, JsonObject, Tool, answers};

pub struct LandStatus;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only those of this worktree.
    name: Option<String>,
    /// Also those that have ended; true unless given.
    all: Option<bool>,
    /// At most so many; 20 unless given.
    limit: Option<u64>,
}

impl Tool for LandStatus {
    const NAME: &'static str = "land_status";
    const TITLE: &'static str = "Show the queue";
    const DESCRIPTION: &'static str =
        "Queued and finished landings, newest first, with outcome, conflicts and the gate log.";
    const EFFECT: Effect = Effect::Reads;
    const AUDIENCE: Audience = Audience::Teammate;
    type Input = Input;
    type Output = answers::Queue;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let limit = input.limit.unwrap_or(20) as usize;
        let request = QueueStatus {
            all: input.all != Some(false),
            // Those of one worktree may be older than all of that.
            limit: Some(input.name.as_ref().map_or(limit, |_| usize::MAX)),
        };
        let mut answer = call.perform(request).await?;
        if let (Some(name), Some(Value::Array(queue))) = (input.name, answer.get_mut("queue")) {
            queue.retain(|landing| landing["tree"] == name.as_str());
            queue.truncate(limit);
        }
        Ok(answer)
    }
}
