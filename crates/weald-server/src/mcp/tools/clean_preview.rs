//! `clean_preview`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::cleaning::CleanTrees;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, age, answers, words};

pub struct CleanPreview;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// For how long a worktree must be unused, such as 2h; 0: any. Default: as configured.
    min_age: Option<String>,
    /// Only worktrees of these tasks.
    #[serde(default)]
    task_ids: Vec<TaskRef>,
}

impl Tool for CleanPreview {
    const NAME: &'static str = "clean_preview";
    const TITLE: &'static str = "Preview a clean-up";
    const DESCRIPTION: &'static str = "Which worktrees are finished and can be removed, and what keeps each of the others. Changes nothing: remove one with worktree_remove; a person removes all with weald clean --apply.";
    const EFFECT: Effect = Effect::Reads;
    const AUDIENCE: Audience = Audience::Lead;
    type Input = Input;
    type Output = answers::Clean;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let min_age = input.min_age.as_deref();
        let request = CleanTrees {
            apply: false,
            min_age: min_age.map(|text| age("min_age", text)).transpose()?,
            tasks: words(&input.task_ids)?,
            tree: None,
            orphans: false,
            fetch: false,
        };
        call.perform(request).await
    }
}
