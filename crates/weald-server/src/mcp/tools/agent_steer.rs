//! `agent_steer`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::orders::SteerAgent;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers};

pub struct AgentSteer;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which agent: its id, its task, its name or its worktree.
    agent: TaskRef,
    /// The words.
    text: String,
    /// Before everything else.
    urgent: Option<bool>,
}

impl Tool for AgentSteer {
    const NAME: &'static str = "agent_steer";
    const TITLE: &'static str = "Send an agent a message";
    const DESCRIPTION: &'static str = "Sends a message to an agent's inbox. An agent with open input reads it at once, any other when it reads its inbox.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Lead;
    const ALSO: &'static [(&'static str, &'static str)] =
        &[("id", "agent"), ("content", "text"), ("message", "text")];
    type Input = Input;
    type Output = answers::messages::Messages;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let request = SteerAgent {
            agent: input.agent.word()?.into(),
            text: input.text,
            urgent: input.urgent.unwrap_or_default(),
        };
        call.perform(request).await
    }
}
