//! `land_status`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Audience, Call, Effect, Fault, JsonObject, Tool, Words, answers};

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
        let limit = input.limit.unwrap_or(20);
        let words = match (input.all, &input.name) {
            (Some(false), _) => Words::of(&["queue", "status"]),
            (_, None) => Words::of(&["queue", "status", "--all"]).flag("limit", Some(limit)),
            // Those of one worktree may be older than all of that.
            (_, Some(_)) => Words::of(&["queue", "status", "--all"]).flag("limit", Some(u32::MAX)),
        };
        let mut answer = call.run(words).await?;
        if let (Some(name), Some(Value::Array(queue))) = (input.name, answer.get_mut("queue")) {
            queue.retain(|landing| landing["tree"] == name.as_str());
            queue.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        Ok(answer)
    }
}
