//! `agent_spawn`

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::words::plain;
use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, Words, answers};

pub struct AgentSpawn;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which task.
    #[serde(alias = "task")]
    task_id: TaskRef,
    /// What kind of agent: claude, codex, command, or a name that is configured. Default: as configured; with a command: command.
    driver: Option<String>,
    /// The name it works under; messages go to it. Default: its id.
    name: Option<String>,
    /// Which model it uses.
    model: Option<String>,
    /// A shell command to run instead of an agent. It finds its prompt in $WEALD_PROMPT_FILE.
    command: Option<String>,
    /// Whether its work lands by itself at its end. Default: as configured.
    land: Option<bool>,
    /// Also while finished tasks have worktrees that nobody decided on.
    force: Option<bool>,
}

impl Tool for AgentSpawn {
    const NAME: &'static str = "agent_spawn";
    const TITLE: &'static str = "Start an agent";
    const DESCRIPTION: &'static str = "Starts an agent on a task, in a worktree and a sandbox of its own, in the background. What it leaves is committed and lands by itself, unless land is false. Answers as soon as it works; see check_agents and wait_agents.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Lead;
    type Input = Input;
    type Output = answers::agents::Agents;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let task = plain(input.task_id.to_string())?;
        let words = Words::of(&["agent", "spawn", &task])
            .flag("driver", input.driver)
            .flag("name", input.name)
            .flag("model", input.model)
            .switch("land", Some(input.land == Some(true)))
            .switch("no-land", Some(input.land == Some(false)))
            .switch("force", input.force);
        let command = input
            .command
            .map(|line| ["sh".to_owned(), "-c".to_owned(), line]);
        call.run(words.rest(command.into_iter().flatten())).await
    }
}
