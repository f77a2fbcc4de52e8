//! `worktree_restore`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::trash::RestoreTree;

use super::{Audience, Call, Effect, Fault, JsonObject, Tool, answers};

pub struct WorktreeRestore;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its name, or its number in the trash.
    name: String,
}

impl Tool for WorktreeRestore {
    const NAME: &'static str = "worktree_restore";
    const TITLE: &'static str = "Restore a worktree";
    const DESCRIPTION: &'static str =
        "Restores a worktree from the trash: files, index, branch and binding.";
    const EFFECT: Effect = Effect::Settles;
    const AUDIENCE: Audience = Audience::Lead;
    type Input = Input;
    type Output = answers::OneTree;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        call.perform(RestoreTree { tree: input.name }).await
    }
}
