//! `reply`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::messages::ReplyToMessage;
use weald_core::message::RequestState;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers, parsed};

pub struct Reply;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which message.
    message_id: TaskRef,
    /// The words.
    #[serde(default)]
    text: String,
    /// Yes or no, to a plan or a shutdown.
    approve: Option<bool>,
}

impl Tool for Reply {
    const NAME: &'static str = "reply";
    const TITLE: &'static str = "Reply to a request";
    const DESCRIPTION: &'static str = "Answers a question, or judges a plan or a shutdown (approve or reject). A second reply to the same message is ignored.";
    const EFFECT: Effect = Effect::Settles;
    const AUDIENCE: Audience = Audience::Confined;
    const ALSO: &'static [(&'static str, &'static str)] =
        &[("id", "message_id"), ("content", "text")];
    type Input = Input;
    type Output = answers::messages::Replied;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let request = ReplyToMessage {
            id: parsed("message_id", &input.message_id.to_string())?,
            text: input.text,
            kind: None,
            verdict: input.approve.map(RequestState::verdict),
        };
        call.perform(request).await
    }
}
