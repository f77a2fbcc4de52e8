//! `agent_pause`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::orders::PauseAgent;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers};

pub struct AgentPause;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which agent: its id, its task, its name or its worktree.
    agent: TaskRef,
}

impl Tool for AgentPause {
    const NAME: &'static str = "agent_pause";
    const TITLE: &'static str = "Pause an agent";
    const DESCRIPTION: &'static str = "Stops all processes of an agent until agent_resume. It keeps its claim and its name, and its time limit does not run.";
    const EFFECT: Effect = Effect::Settles;
    const AUDIENCE: Audience = Audience::Lead;
    const ALSO: &'static [(&'static str, &'static str)] = &[("id", "agent")];
    type Input = Input;
    type Output = answers::agents::Agents;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let agent: String = input.agent.word()?.into();
        call.perform(PauseAgent { agent }).await
    }
}
