//! `worktree_remove`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_core::id::Token;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, Words, answers};

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
        let token = match input.complete_task {
            Some(true) => own_token(&input.name, call).await?,
            _ => None,
        };
        let words = Words::of(&["rm"])
            .switch("discard", input.force)
            .switch("force", input.referenced)
            .switch("complete-task", input.complete_task)
            .flag("token", token)
            .flag("reason", input.reason)
            .rest([input.name]);
        call.run(words).await
    }
}

/// The caller's own token for the task of a tree.
async fn own_token(name: &str, call: &Call<'_>) -> Result<Option<Token>, Fault> {
    let shown = call.run(Words::of(&["show"]).rest([name])).await?;
    match TaskRef::of(&shown["tree"]["task"]) {
        Some(task) => Ok(call.held(Some(task), None).await?.1.token),
        None => Ok(None),
    }
}
