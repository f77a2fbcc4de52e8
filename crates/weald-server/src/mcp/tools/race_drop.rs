//! `race_drop`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::races::DropRace;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers};

pub struct RaceDrop;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which task.
    task_id: TaskRef,
}

impl Tool for RaceDrop {
    const NAME: &'static str = "race_drop";
    const TITLE: &'static str = "End a race without a winner";
    const DESCRIPTION: &'static str = "Stops the entries of a race that are still running, and moves all of their worktrees to the trash. The task is free again.";
    const EFFECT: Effect = Effect::Removes;
    const AUDIENCE: Audience = Audience::Lead;
    type Input = Input;
    type Output = answers::agents::Dropped;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let task = input.task_id.word()?;
        call.perform(DropRace { task }).await
    }
}
