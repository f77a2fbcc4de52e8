//! `race`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::races::StartRace;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers, shell};

pub struct Race;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which task.
    task_id: TaskRef,
    /// How many agents; as many as there are drivers, and two at least, unless given.
    #[schemars(range(min = 2, max = 26))]
    count: Option<u64>,
    /// What kinds of agents, one an entry: claude, codex. Default: as configured.
    #[serde(default)]
    drivers: Vec<String>,
    /// Which model they use.
    model: Option<String>,
    /// A shell command that every entry runs instead of an agent; $WEALD_ROLE tells them apart.
    command: Option<String>,
}

impl Tool for Race {
    const NAME: &'static str = "race";
    const TITLE: &'static str = "Start a race";
    const DESCRIPTION: &'static str = "Gives several agents the same task, each in its own worktree, in the background. race_show compares the results, race_pick lands one of them, race_drop ends the race without a winner.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Lead;
    type Input = Input;
    type Output = answers::agents::Race;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let request = StartRace {
            task: input.task_id.word()?.into(),
            // As much as the schema allows.
            count: input.count.and_then(|count| u8::try_from(count).ok()),
            drivers: input.drivers,
            model: input.model,
            command: shell(input.command),
            detach: true,
        };
        call.perform(request).await
    }
}
