//! `worktree_create`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::BranchExists;
use weald_app::operations::making::{CreateTree, EnsureTree, TreeWishes};
use weald_core::tree::TreeKind;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers};

pub struct WorktreeCreate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// What to call it; after its task unless given.
    name: Option<String>,
    /// The task it is for.
    task_id: Option<TaskRef>,
    /// The commit or branch it starts from; as configured unless given.
    base_ref: Option<String>,
    /// One that is there already is the answer; one whose directory is gone is made again.
    reuse: Option<bool>,
}

impl Tool for WorktreeCreate {
    const NAME: &'static str = "worktree_create";
    const TITLE: &'static str = "Create a worktree";
    const DESCRIPTION: &'static str = "Creates a worktree outside the main checkout, on its own branch. Returns its absolute path and branch. For a task call task_claim instead, which creates one.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Lead;
    type Input = Input;
    type Output = answers::TreeOutcome;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let name = input.name;
        let wishes = TreeWishes {
            task: input.task_id.map(|task| task.word()).transpose()?,
            base: input.base_ref,
            target: None,
            kind: TreeKind::Sealed,
            branch_exists: BranchExists::Error,
            no_pool: false,
        };
        match input.reuse == Some(true) {
            true => call.perform(EnsureTree { name, wishes }).await,
            false => {
                let request = CreateTree {
                    name,
                    wishes,
                    scratch_for: None,
                    branch: None,
                };
                call.perform(request).await
            }
        }
    }
}
