//! `conflicts`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::conflicts::FindConflicts;

use super::{Audience, Call, Effect, Fault, JsonObject, Tool, answers};

pub struct Conflicts;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only what concerns this worktree or task.
    name: Option<String>,
}

impl Tool for Conflicts {
    const NAME: &'static str = "conflicts";
    const TITLE: &'static str = "Show conflicts";
    const DESCRIPTION: &'static str = "Which worktrees would conflict with the target and with each other, including uncommitted work, before any of it lands. Changes nothing.";
    const EFFECT: Effect = Effect::Reads;
    const AUDIENCE: Audience = Audience::Teammate;
    type Input = Input;
    type Output = answers::Conflicts;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let names = input.name.into_iter().collect();
        call.perform(FindConflicts { names, tell: false }).await
    }
}
