//! `agent_pulse`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::agent_views::PulseAgent;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers};

pub struct AgentPulse;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which agent: its id, its task, its name or its worktree.
    agent: TaskRef,
}

impl Tool for AgentPulse {
    const NAME: &'static str = "agent_pulse";
    const TITLE: &'static str = "Show one agent";
    const DESCRIPTION: &'static str = "One agent in full: state, task, worktree, what it did last and when, its open question, its report once it has ended.";
    const EFFECT: Effect = Effect::Reads;
    const AUDIENCE: Audience = Audience::Lead;
    const ALSO: &'static [(&'static str, &'static str)] = &[("id", "agent")];
    type Input = Input;
    type Output = answers::agents::Agents;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let agent: String = input.agent.word()?.into();
        call.perform(PulseAgent { agent }).await
    }
}
