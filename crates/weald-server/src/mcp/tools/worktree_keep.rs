//! `worktree_keep`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::keeping::KeepTree;

use super::{Audience, Call, Effect, Fault, JsonObject, Tool, answers};

pub struct WorktreeKeep;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which worktree; your own unless given.
    name: Option<String>,
    /// Let clean-up take it again.
    undo: Option<bool>,
}

impl Tool for WorktreeKeep {
    const NAME: &'static str = "worktree_keep";
    const TITLE: &'static str = "Keep a worktree";
    const DESCRIPTION: &'static str =
        "Keeps a worktree: no clean-up removes it, until this is called with undo.";
    const EFFECT: Effect = Effect::Settles;
    const AUDIENCE: Audience = Audience::Teammate;
    type Input = Input;
    type Output = answers::TreeOutcome;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let tree = call.tree(input.name).await?;
        let undo = input.undo == Some(true);
        call.perform(KeepTree { tree, undo }).await
    }
}
