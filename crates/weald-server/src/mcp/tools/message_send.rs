//! `message_send`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::messages::SendMessage;
use weald_core::message::MessageType;

use super::{
    Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers, parsed, urgency, word,
};

/// Those that begin something.
const KINDS: [&str; 5] = ["message", "result", "question", "plan", "shutdown"];

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
        let kind = |text: &str| word("type", text, &KINDS);
        let request = SendMessage {
            to: parsed("to", &input.to)?,
            text: input.text,
            kind: input
                .kind
                .as_deref()
                .map_or(Ok(MessageType::Message), kind)?,
            priority: urgency(input.priority.as_deref())?,
            task: input.task_id.map(|task| task.word()).transpose()?,
        };
        call.perform(request).await
    }
}
