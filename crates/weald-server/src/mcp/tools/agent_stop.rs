//! `agent_stop`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::orders::StopAgent;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers};

pub struct AgentStop;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which agent: its id, its task, its name or its worktree.
    agent: TaskRef,
    /// Give the task back, so that somebody else may take it.
    release: Option<bool>,
    /// Why.
    reason: Option<String>,
    /// Answer only when it is over.
    wait: Option<bool>,
}

impl Tool for AgentStop {
    const NAME: &'static str = "agent_stop";
    const TITLE: &'static str = "Stop an agent";
    const DESCRIPTION: &'static str = "Stops an agent and all its processes. Its worktree and its work are kept; its task is marked as failed, or released with release.";
    const EFFECT: Effect = Effect::Removes;
    const AUDIENCE: Audience = Audience::Lead;
    const ALSO: &'static [(&'static str, &'static str)] = &[("id", "agent")];
    type Input = Input;
    type Output = answers::agents::Agents;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let request = StopAgent {
            agent: input.agent.word()?.into(),
            release: input.release.unwrap_or_default(),
            reason: input.reason,
            wait: input.wait.unwrap_or_default(),
        };
        call.perform(request).await
    }
}
