//! `spawn_teammate`, of the classroom profile

use schemars::JsonSchema;
use serde::Deserialize;
use weald_core::name::{NameError, SessionName};

use super::super::words::plain;
use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, Words, answers};

pub struct SpawnTeammate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The name it works under; messages go to it.
    name: String,
    /// What it is to do: a task is made of it. The first line is the subject.
    prompt: Option<String>,
    /// The task it works on, instead of a prompt.
    task_id: Option<TaskRef>,
    /// What part it plays; told with the prompt.
    role: Option<String>,
    /// What kind of agent: claude, codex, command, or a name that is configured. Default: as configured.
    driver: Option<String>,
    /// A shell command to run instead of an agent.
    command: Option<String>,
}

impl Tool for SpawnTeammate {
    const NAME: &'static str = "spawn_teammate";
    const TITLE: &'static str = "Start a teammate";
    const DESCRIPTION: &'static str = "Starts an agent under a name, on a task or on a prompt that a task is made of, in a worktree and a sandbox of its own. The same as agent_spawn otherwise.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Lead;
    type Input = Input;
    type Output = answers::agents::Agents;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        check(&input.name)?;
        let is_new = input.task_id.is_none();
        let task = match (input.task_id, input.prompt) {
            (Some(task), _) => task,
            (None, Some(prompt)) => add(&prompt, input.role.as_deref(), call).await?,
            (None, None) => {
                return Err(Fault::new("bad_arguments", 2, "what is it to do?")
                    .hint("give prompt, or task_id"));
            }
        };
        let task = plain(task.to_string())?;
        let words = Words::of(&["agent", "spawn", &task])
            .flag("name", Some(input.name))
            .flag("driver", input.driver);
        let command = input
            .command
            .map(|line| ["sh".to_owned(), "-c".to_owned(), line]);
        let spawned = call.run(words.rest(command.into_iter().flatten())).await;
        if spawned.is_err() && is_new {
            // Nobody asked for the task without its teammate.
            let words = Words::of(&["task", "cancel"]).flag("reason", Some("nobody was started"));
            let _ = call.run(words.rest([task])).await;
        }
        spawned
    }
}

/// Refuses a name that nobody can have before a task is made for it.
fn check(name: &str) -> Result<(), Fault> {
    let parsed = name.parse::<SessionName>();
    let refused = |code, error: NameError| Err(Fault::new(code, 2, error.to_string()));
    match parsed.map(|name| name.require_free()) {
        Err(error) => refused("invalid_name", error),
        Ok(Err(error)) => refused("name_reserved", error),
        Ok(Ok(())) => Ok(()),
    }
}

/// Makes a task of a prompt.
async fn add(prompt: &str, role: Option<&str>, call: &Call<'_>) -> Result<TaskRef, Fault> {
    let subject = prompt.trim().lines().next().unwrap_or_default();
    let rest = prompt
        .trim()
        .strip_prefix(subject)
        .unwrap_or_default()
        .trim();
    let role = role.map(|role| format!("Your part: {role}"));
    let parts = [Some(rest.to_owned()).filter(|rest| !rest.is_empty()), role];
    let description: Vec<_> = parts.into_iter().flatten().collect();
    let words = Words::of(&["task", "add"])
        .flag("description", Some(description.join("\n\n")))
        .rest([subject]);
    let answer = call.run(words).await?;
    TaskRef::of(&answer["task"]["id"])
        .ok_or_else(|| Fault::new("bad_answer", 70, "the new task has no id"))
}
