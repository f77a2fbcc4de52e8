//! `race_show`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::races::ShowRace;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers};

pub struct RaceShow;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which task.
    task_id: TaskRef,
}

impl Tool for RaceShow {
    const NAME: &'static str = "race_show";
    const TITLE: &'static str = "Compare the entries of a race";
    const DESCRIPTION: &'static str = "The entries of a race side by side: state, files and lines changed, whether they were checked, cost, and the first line of each report.";
    const EFFECT: Effect = Effect::Reads;
    const AUDIENCE: Audience = Audience::Lead;
    type Input = Input;
    type Output = answers::agents::Race;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let task = input.task_id.word()?;
        call.perform(ShowRace { task }).await
    }
}
