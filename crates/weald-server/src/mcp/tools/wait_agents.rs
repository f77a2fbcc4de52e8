//! `wait_agents`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::orders::WaitForAgents;
use weald_core::SignedDuration;

use super::{Audience, Call, Effect, Fault, JsonObject, Lasts, TaskRef, Tool, answers, words};

/// Clients wait for a minute, by default.
fn patience() -> u64 {
    50
}

pub struct WaitAgents;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which: ids, tasks, names or worktrees. Default: all that are at work.
    #[serde(default)]
    agents: Vec<TaskRef>,
    /// Until the first one is over.
    any: Option<bool>,
    /// At most so long, from 30 to 1800.
    #[serde(default = "patience")]
    #[schemars(range(min = 30, max = 1800))]
    timeout_seconds: u64,
}

impl Tool for WaitAgents {
    const NAME: &'static str = "wait_agents";
    const TITLE: &'static str = "Wait for agents";
    const DESCRIPTION: &'static str = "Waits until agents have ended, or until the timeout: then timed_out is true and they keep running. Call it again, or call check_agents in between: an agent may be waiting for your answer.";
    const EFFECT: Effect = Effect::Reads;
    const AUDIENCE: Audience = Audience::Lead;
    const ALSO: &'static [(&'static str, &'static str)] = &[("ids", "agents")];
    type Input = Input;
    type Output = answers::agents::Waited;

    fn lasts(_: &Input) -> Lasts {
        Lasts::Long
    }

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        // As much as the schema allows.
        let seconds = i64::try_from(input.timeout_seconds).unwrap_or(i64::MAX);
        let request = WaitForAgents {
            agents: words(&input.agents)?.into_iter().map(Into::into).collect(),
            any: input.any.unwrap_or_default(),
            timeout: SignedDuration::from_secs(seconds),
        };
        call.perform(request).await
    }
}
