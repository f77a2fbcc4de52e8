//! `agent_restart`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::starts::{Conversation, RestartAgent};

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers};

pub struct AgentRestart;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which agent: its id, its task, its name or its worktree.
    agent: TaskRef,
    /// Begin a new conversation.
    fresh: Option<bool>,
    /// Stop it first if it still works; open its task again if that is finished.
    force: Option<bool>,
}

impl Tool for AgentRestart {
    const NAME: &'static str = "agent_restart";
    const TITLE: &'static str = "Restart an agent";
    const DESCRIPTION: &'static str = "Restarts an agent that has ended: the same command on the same task in the same worktree, continuing its conversation if it has one. force first stops an agent that is still running, and reopens a finished task.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Lead;
    const ALSO: &'static [(&'static str, &'static str)] = &[("id", "agent")];
    type Input = Input;
    type Output = answers::agents::Agents;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let request = RestartAgent {
            agent: input.agent.word()?.into(),
            conversation: match input.fresh {
                Some(true) => Conversation::New,
                _ => Conversation::Any,
            },
            force: input.force.unwrap_or_default(),
        };
        call.perform(request).await
    }
}
