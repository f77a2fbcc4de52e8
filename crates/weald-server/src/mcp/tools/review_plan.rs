//! `review_plan`, of the classroom profile

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::messages::ReplyToMessage;
use weald_core::message::RequestState;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers, parsed};

pub struct ReviewPlan;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The number of the message with the plan.
    request_id: TaskRef,
    /// Yes or no.
    approve: bool,
    /// What to change, or what to mind.
    #[serde(default)]
    feedback: String,
}

impl Tool for ReviewPlan {
    const NAME: &'static str = "review_plan";
    const TITLE: &'static str = "Judge a plan";
    const DESCRIPTION: &'static str = "Approves or rejects a plan that was sent to you, with feedback. A second verdict on the same plan is ignored.";
    const EFFECT: Effect = Effect::Settles;
    const AUDIENCE: Audience = Audience::Lead;
    type Input = Input;
    type Output = answers::messages::Replied;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let request = ReplyToMessage {
            id: parsed("request_id", &input.request_id.to_string())?,
            text: input.feedback,
            kind: None,
            verdict: Some(RequestState::verdict(input.approve)),
        };
        call.perform(request).await
    }
}
