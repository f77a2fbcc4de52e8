//! `spawn_teammate`, of the classroom profile

use schemars::JsonSchema;
use serde::Deserialize;
use weald_core::name::{NameError, SessionName};

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, Words, answers};

pub struct SpawnTeammate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The name it works under; messages go to it.
    name: String,
    /// Its role, such as "backend developer"; part of every prompt.
    role: Option<String>,
    /// Standing instructions; part of every prompt.
    prompt: Option<String>,
    /// The one task it works on. Without it the teammate claims tasks by itself, one after the other, as long as there are
    /// some.
    task_id: Option<TaskRef>,
    /// What kind of agent: claude, codex, command, or a name that is configured. Default: as configured.
    driver: Option<String>,
    /// A shell command to run instead of an agent.
    command: Option<String>,
}

impl Tool for SpawnTeammate {
    const NAME: &'static str = "spawn_teammate";
    const TITLE: &'static str = "Start a teammate";
    const DESCRIPTION: &'static str = "Starts a named teammate, with a role and a prompt, in the background. It claims ready tasks by itself, each in the task's own worktree and sandbox, and ends after a while without work or after request_shutdown. With task_id it does only that task, like agent_spawn. Create the tasks first: a prompt is not a task.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Lead;
    type Input = Input;
    type Output = answers::agents::Teammate;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        check(&input.name)?;
        let command = match input.task_id {
            Some(_) => Words::of(&["agent", "spawn"]),
            None => Words::of(&["worker", "--detach"]),
        };
        let words = command
            .flag("name", Some(input.name))
            .flag("role", input.role)
            .flag("prompt", input.prompt)
            .flag("driver", input.driver);
        call.run(match &input.task_id {
            Some(task) => words.on(task, input.command)?,
            None => words.command(input.command),
        })
        .await
    }
}

/// Refuses a name that nobody can have.
fn check(name: &str) -> Result<(), Fault> {
    let parsed = name.parse::<SessionName>();
    let refused = |code, error: NameError| {
        Err(Fault::new(code, 2, error.to_string()).hint("choose another name, such as alice"))
    };
    match parsed.map(|name| name.require_free()) {
        Err(error) => refused("invalid_name", error),
        Ok(Err(error)) => refused("name_reserved", error),
        Ok(Ok(())) => Ok(()),
    }
}
