//! `worktree_remove`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::Caller;
use weald_app::operations::keeping::RemoveTree;
use weald_app::operations::looking::ShowTree;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers};

pub struct WorktreeRemove;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which worktree.
    name: String,
    /// Also with work in it that is nowhere else. It can still be restored from the trash.
    force: Option<bool>,
    /// Also while another session refers to it, such as a teammate of yours.
    referenced: Option<bool>,
    /// Complete its task.
    complete_task: Option<bool>,
    /// Why, for the record.
    reason: Option<String>,
}

impl Tool for WorktreeRemove {
    const NAME: &'static str = "worktree_remove";
    const TITLE: &'static str = "Remove a worktree";
    const DESCRIPTION: &'static str = "Moves a worktree to the trash. Refused while it has uncommitted changes or commits that the target lacks, unless force is given; while another session refers to it, unless referenced is given; and always while something runs in it. worktree_restore restores it.";
    const EFFECT: Effect = Effect::Removes;
    const AUDIENCE: Audience = Audience::Lead;
    const ALSO: &'static [(&'static str, &'static str)] = &[("discard_changes", "force")];
    type Input = Input;
    type Output = answers::TreeOutcome;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let complete_task = input.complete_task == Some(true);
        let caller = match complete_task {
            true => holder(&input.name, call).await?,
            false => Caller::default(),
        };
        let request = RemoveTree {
            tree: input.name,
            discard: input.force == Some(true),
            force: u8::from(input.referenced == Some(true)),
            complete_task,
            reason: input.reason,
        };
        call.perform_as(caller, request).await
    }
}

/// The caller, with its own token for the task of a tree.
async fn holder(name: &str, call: &Call<'_>) -> Result<Caller, Fault> {
    let tree = Some(name.to_owned());
    let shown = call.perform(ShowTree { tree }).await?;
    match TaskRef::of(&shown["tree"]["task"]) {
        Some(task) => Ok(call.held(Some(task), None).await?.1),
        None => Ok(Caller::default()),
    }
}
