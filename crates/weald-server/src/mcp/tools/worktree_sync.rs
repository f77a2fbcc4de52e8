//! `worktree_sync`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::making::SyncTree;

use super::{Audience, Call, Effect, Fault, JsonObject, Tool, answers};

pub struct WorktreeSync;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which worktree; your own unless given.
    name: Option<String>,
    /// Put its commits on top of the target's instead of merging those.
    rebase: Option<bool>,
}

impl Tool for WorktreeSync {
    const NAME: &'static str = "worktree_sync";
    const TITLE: &'static str = "Bring the target into a worktree";
    const DESCRIPTION: &'static str = "Merges the newest target into a worktree. outcome conflict: the files in conflicts have conflict markers; resolve them there, git add them, and git commit (operation rebase: git rebase --continue). Then land again.";
    const EFFECT: Effect = Effect::Settles;
    const AUDIENCE: Audience = Audience::Confined;
    type Input = Input;
    type Output = answers::Synced;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let tree = call.tree(input.name).await?;
        call.perform(SyncTree {
            tree,
            rebase: input.rebase == Some(true),
        })
        .await
    }
}
