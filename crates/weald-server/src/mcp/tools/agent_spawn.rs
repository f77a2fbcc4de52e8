//! `agent_spawn`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::starts::SpawnAgent;
use weald_app::supervision::AgentWish;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers, parsed, shell};

pub struct AgentSpawn;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which task.
    task_id: TaskRef,
    /// What kind of agent: claude, codex, command, or a name that is configured. Default: as configured; with a command: command.
    driver: Option<String>,
    /// The name it works under; messages go to it. Default: its id.
    name: Option<String>,
    /// What part it plays; told with the task.
    role: Option<String>,
    /// Extra instructions, given to the agent with the task.
    prompt: Option<String>,
    /// Which model it uses.
    model: Option<String>,
    /// A shell command to run instead of an agent. It finds its prompt in $WEALD_PROMPT_FILE.
    command: Option<String>,
    /// Whether its work lands by itself at its end. Default: as configured.
    land: Option<bool>,
    /// How often it is resumed automatically when its work conflicts or its tests fail. Default: as configured.
    retries: Option<u32>,
    /// Also while finished tasks have worktrees that nobody decided on.
    force: Option<bool>,
}

impl Tool for AgentSpawn {
    const NAME: &'static str = "agent_spawn";
    const TITLE: &'static str = "Start an agent";
    const DESCRIPTION: &'static str = "Starts an agent on a task, in a worktree and a sandbox of its own, in the background. Its work is committed when it ends, and lands if land is true (default: as configured). Returns as soon as it is running; follow it with check_agents and wait_agents.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Lead;
    const ALSO: &'static [(&'static str, &'static str)] = &[("task", "task_id")];
    type Input = Input;
    type Output = answers::agents::Agents;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let name = input.name.as_deref();
        let name = name.map(|name| parsed("name", name)).transpose()?;
        let request = SpawnAgent {
            task: input.task_id.word()?.into(),
            how: AgentWish {
                land: input.land,
                model: input.model,
                driver: input.driver,
                name,
                role: input.role,
                prompt: input.prompt,
                feedback: None,
                retries: input.retries,
                command: shell(input.command),
                interactive: false,
            },
            force: input.force.unwrap_or_default(),
        };
        call.perform(request).await
    }
}
