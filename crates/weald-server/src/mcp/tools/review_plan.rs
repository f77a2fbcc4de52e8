//! `review_plan`, of the classroom profile

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, Words, answers};

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
        let words = Words::of(&["msg", "reply"])
            .switch("approve", Some(input.approve))
            .switch("reject", Some(!input.approve));
        let about = [input.request_id.to_string(), input.feedback];
        call.run(words.rest(about)).await
    }
}
