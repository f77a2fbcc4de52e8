//! `trash_list`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::trash::ListTrash;

use super::{Audience, Call, Effect, Fault, JsonObject, Tool, answers};

pub struct TrashList;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

impl Tool for TrashList {
    const NAME: &'static str = "trash_list";
    const TITLE: &'static str = "List removed worktrees";
    const DESCRIPTION: &'static str = "Removed worktrees that worktree_restore can restore, each with its number, name, branch, size and when it was removed.";
    const EFFECT: Effect = Effect::Reads;
    const AUDIENCE: Audience = Audience::Lead;
    type Input = Input;
    type Output = answers::Trash;

    async fn call(_: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        call.perform(ListTrash {}).await
    }
}
