//! `task_bind_worktree`

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, Words, answers};

pub struct TaskBindWorktree;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which task.
    task_id: TaskRef,
    /// Which worktree; not with unbind.
    name: Option<String>,
    /// Start the task for this session.
    owner: Option<String>,
    /// Let older bindings of both go.
    rebind: Option<bool>,
    /// Undo the binding instead. The worktree stays.
    unbind: Option<bool>,
}

impl Tool for TaskBindWorktree {
    const NAME: &'static str = "task_bind_worktree";
    const TITLE: &'static str = "Bind a task to a worktree";
    const DESCRIPTION: &'static str = "Binds an existing worktree to a task, for work that was started without one. Claiming the task then uses it. The status does not change unless an owner is given.";
    const EFFECT: Effect = Effect::Settles;
    const AUDIENCE: Audience = Audience::Lead;
    const ALSO: &'static [(&'static str, &'static str)] =
        &[("worktree_name", "name"), ("worktree", "name")];
    type Input = Input;
    type Output = answers::OneTask;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let task = input.task_id.to_string();
        let words = match (input.name, input.unbind) {
            (None, Some(true)) => Words::of(&["task", "unbind"]).rest([task]),
            (Some(name), None | Some(false)) => Words::of(&["task", "bind"])
                .flag("owner", input.owner)
                .switch("rebind", input.rebind)
                .rest([task, name]),
            _ => {
                let message = "a task is bound to a worktree, or unbound";
                return Err(
                    Fault::new("bad_arguments", 2, message).hint("give either name or unbind")
                );
            }
        };
        call.run(words).await
    }
}
