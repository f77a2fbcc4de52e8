//! `worktree_status`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::looking::ShowTree;

use super::{Audience, Call, Effect, Fault, JsonObject, Tool, answers};

pub struct WorktreeStatus;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which worktree; your own unless given.
    name: Option<String>,
}

impl Tool for WorktreeStatus {
    const NAME: &'static str = "worktree_status";
    const TITLE: &'static str = "Inspect a worktree";
    const DESCRIPTION: &'static str = "Branch, dirty or clean, staged, unstaged and untracked counts, commits ahead of its base and behind its target. Its commits are imported.";
    const EFFECT: Effect = Effect::Settles;
    const AUDIENCE: Audience = Audience::Confined;
    type Input = Input;
    type Output = answers::OneTree;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let tree = call.tree(input.name).await?;
        call.perform(ShowTree { tree }).await
    }
}
