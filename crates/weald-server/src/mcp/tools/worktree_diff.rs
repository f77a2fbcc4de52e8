//! `worktree_diff`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::DiffStyle;
use weald_app::operations::looking::DiffTree;
use weald_core::git_diff::DiffOptions;

use super::{Audience, Call, Effect, Fault, JsonObject, Tool, answers};

pub struct WorktreeDiff;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which worktree; your own unless given.
    name: Option<String>,
    /// Compare with where it left the target instead of where it began.
    against_target: Option<bool>,
    /// Add the patch, cut at 256 KiB.
    patch: Option<bool>,
}

impl Tool for WorktreeDiff {
    const NAME: &'static str = "worktree_diff";
    const TITLE: &'static str = "Show what changed in a worktree";
    const DESCRIPTION: &'static str = "Paths that changed in a worktree since it began: committed, staged, unstaged and untracked. patch adds the diff.";
    const EFFECT: Effect = Effect::Reads;
    const AUDIENCE: Audience = Audience::Confined;
    type Input = Input;
    type Output = answers::Diff;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let tree = call.tree(input.name).await?;
        let list = DiffTree {
            tree,
            against_target: input.against_target == Some(true),
            style: DiffStyle::Files,
            options: DiffOptions::default(),
            reader: None,
        };
        let patch = DiffTree {
            style: DiffStyle::Patch,
            ..list.clone()
        };
        let mut answer = call.perform(list).await?;
        if input.patch == Some(true) {
            let (patch, is_cut) = call.patch(patch, 256 << 10).await?;
            answer.insert("patch".to_owned(), patch.into());
            if is_cut {
                answer.insert("truncated".to_owned(), true.into());
            }
        }
        Ok(answer)
    }
}
