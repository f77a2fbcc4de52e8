//! `worktree_list`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::looking::ListTrees;

use super::{Audience, Call, Effect, Fault, JsonObject, Tool, answers};

pub struct WorktreeList;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Look into every worktree now.
    fresh: Option<bool>,
}

impl Tool for WorktreeList {
    const NAME: &'static str = "worktree_list";
    const TITLE: &'static str = "List worktrees";
    const DESCRIPTION: &'static str = "Every worktree with path, branch, task and whether it is dirty, as last seen. fresh inspects each of them now.";
    const EFFECT: Effect = Effect::Reads;
    const AUDIENCE: Audience = Audience::Teammate;
    type Input = Input;
    type Output = answers::Trees;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let request = ListTrees {
            fresh: input.fresh == Some(true),
            all: false,
        };
        call.perform(request).await
    }
}
