//! `check_agents`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::AgentSort;
use weald_app::operations::agent_views::ListAgents;
use weald_core::id::Seq;

use super::{Audience, Call, Effect, Fault, JsonObject, Tool, answers};

pub struct CheckAgents;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Also those that are over.
    all: Option<bool>,
    /// Only in these: running, waiting, stalled, paused, starting, finishing, exited, crashed, unknown; or stuck, failed, done.
    #[serde(default)]
    state: Vec<String>,
    /// Only what changed after this place of the log: `seq` of the answer before.
    since: Option<u64>,
    /// At most so many.
    limit: Option<u64>,
}

impl Tool for CheckAgents {
    const NAME: &'static str = "check_agents";
    const TITLE: &'static str = "See agents";
    const DESCRIPTION: &'static str = "Running agents with state, last action and idle time, and alerts: what needs you, each with a command that helps. Cheap; call it between your own steps.";
    const EFFECT: Effect = Effect::Reads;
    const AUDIENCE: Audience = Audience::Lead;
    type Input = Input;
    type Output = answers::agents::Board;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let states = input.state.iter().flat_map(|words| words.split(','));
        let request = ListAgents {
            all: input.all == Some(true),
            states: states.map(str::to_owned).collect(),
            sort: AgentSort::Id,
            limit: input
                .limit
                .map_or(ListAgents::LIMIT, |limit| limit as usize),
            offset: 0,
            since: input.since.map(Seq),
        };
        call.perform(request).await
    }
}
