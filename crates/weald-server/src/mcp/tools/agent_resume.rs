//! `agent_resume`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::orders::ResumeAgent;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers};

pub struct AgentResume;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which agent: its id, its task, its name or its worktree.
    agent: TaskRef,
}

impl Tool for AgentResume {
    const NAME: &'static str = "agent_resume";
    const TITLE: &'static str = "Resume a paused agent";
    const DESCRIPTION: &'static str =
        "Continues an agent that agent_pause stopped. For one that has ended use agent_restart.";
    const EFFECT: Effect = Effect::Settles;
    const AUDIENCE: Audience = Audience::Lead;
    const ALSO: &'static [(&'static str, &'static str)] = &[("id", "agent")];
    type Input = Input;
    type Output = answers::agents::Agents;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let agent: String = input.agent.word()?.into();
        call.perform(ResumeAgent { agent }).await
    }
}
