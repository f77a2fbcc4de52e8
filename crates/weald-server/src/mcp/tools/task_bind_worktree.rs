//! `task_bind_worktree`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::bindings::{BindTask, UnbindTask};

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers, parsed};

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
        let id = input.task_id.word()?;
        match (input.name, input.unbind) {
            (None, Some(true)) => call.perform(UnbindTask { id }).await,
            (Some(tree), None | Some(false)) => {
                let owner = input.owner.as_deref();
                let request = BindTask {
                    id,
                    tree,
                    start: false,
                    owner: owner.map(|name| parsed("owner", name)).transpose()?,
                    rebind: input.rebind.unwrap_or_default(),
                };
                call.perform(request).await
            }
            _ => {
                let message = "a task is bound to a worktree, or unbound";
                Err(Fault::new("bad_arguments", 2, message).hint("give either name or unbind"))
            }
        }
    }
}
