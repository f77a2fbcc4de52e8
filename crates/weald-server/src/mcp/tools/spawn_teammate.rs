//! `spawn_teammate`, of the classroom profile

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::starts::{SpawnAgent, StartWorker};
use weald_app::supervision::AgentWish;
use weald_core::name::{NameError, SessionName};

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers, shell};

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
        let how = AgentWish {
            land: None,
            model: None,
            driver: input.driver,
            name: Some(checked(&input.name)?),
            role: input.role,
            prompt: input.prompt,
            feedback: None,
            retries: None,
            command: shell(input.command),
            interactive: false,
        };
        let Some(task) = input.task_id else {
            let request = StartWorker {
                max: None,
                idle_timeout: None,
                how,
            };
            return call.perform(request).await;
        };
        let request = SpawnAgent {
            task: task.word()?.into(),
            how,
            force: false,
        };
        call.perform(request).await
    }
}

/// A name that somebody can have.
fn checked(name: &str) -> Result<SessionName, Fault> {
    let refused = |code, error: NameError| {
        Fault::new(code, 2, error.to_string()).hint("choose another name, such as alice")
    };
    let name: SessionName = name
        .parse()
        .map_err(|error| refused("invalid_name", error))?;
    let free = name.require_free();
    free.map_err(|error| refused("name_reserved", error))?;
    Ok(name)
}
