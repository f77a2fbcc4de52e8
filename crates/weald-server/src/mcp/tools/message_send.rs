//! `message_send`

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, Words, answers};

pub struct MessageSend;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// To whom: the name of a session.
    to: String,
    /// The words.
    text: String,
    /// message, result, question, plan or shutdown. Default: message.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// urgent, steer or info. Default: info.
    priority: Option<String>,
    /// The task it is about.
    task_id: Option<TaskRef>,
}

impl Tool for MessageSend {
    const NAME: &'static str = "message_send";
    const TITLE: &'static str = "Send a message";
    const DESCRIPTION: &'static str = "Sends a message to another session: an agent, a teammate or the lead. Does not wait; to get an answer use ask.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Confined;
    const ALSO: &'static [(&'static str, &'static str)] = &[
        ("content", "text"),
        ("message", "text"),
        ("msg_type", "type"),
    ];
    type Input = Input;
    type Output = answers::messages::Messages;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let words = Words::of(&["msg", "send"])
            .flag("type", input.kind)
            .flag("priority", input.priority)
            .flag("task", input.task_id);
        call.run(words.rest([input.to, input.text])).await
    }
}
