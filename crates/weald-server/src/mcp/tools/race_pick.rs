//! `race_pick`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::races::PickEntry;

use super::{Audience, Call, Effect, Fault, JsonObject, Lasts, TaskRef, Tool, answers};

pub struct RacePick;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which task.
    task_id: TaskRef,
    /// Which entry: its letter, its worktree or its agent.
    entry: String,
    /// What was done and how it was checked, where the entry's agent reported nothing.
    report: Option<String>,
}

impl Tool for RacePick {
    const NAME: &'static str = "race_pick";
    const TITLE: &'static str = "Pick the winner of a race";
    const DESCRIPTION: &'static str = "Lands one entry of a race, which completes the task; the others go to the trash. If it does not land, nothing is picked and all entries are kept.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Lead;
    type Input = Input;
    type Output = answers::agents::Worked;

    fn lasts(_: &Input) -> Lasts {
        Lasts::Long
    }

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let request = PickEntry {
            task: input.task_id.word()?,
            entry: input.entry,
            report: input.report,
        };
        call.perform(request).await
    }
}
