//! `ask`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use weald_app::operations::messages::AskQuestion;
use weald_core::error_code::ErrorCode;

use super::{
    Audience, Call, Effect, Fault, JsonObject, Lasts, TaskRef, Tool, answers, parsed, urgency,
    waiting,
};
use crate::broker::Reply;

/// How to go on when nobody answered.
const NEXT: &str = "no answer yet; it will arrive in your inbox: continue with something else and call \
                    message_inbox, or wait there with wait_seconds. Don't ask again";

pub struct Ask;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Whom: the name of a session.
    to: String,
    /// The question.
    text: String,
    /// Wait so long for the answer; 0 is not at all.
    #[serde(default = "patience")]
    #[schemars(range(max = 1800))]
    timeout_seconds: u64,
    /// The task it is about.
    task_id: Option<TaskRef>,
    /// urgent, steer or info. Default: info.
    priority: Option<String>,
}

/// Clients wait for a minute, by default.
fn patience() -> u64 {
    50
}

impl Tool for Ask {
    const NAME: &'static str = "ask";
    const TITLE: &'static str = "Ask a question";
    const DESCRIPTION: &'static str = "Asks another session and waits for the answer, at most timeout_seconds. A later answer arrives in your inbox: don't ask twice.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Confined;
    const ALSO: &'static [(&'static str, &'static str)] = &[("question", "text")];
    type Input = Input;
    type Output = answers::messages::Asked;

    fn lasts(input: &Input) -> Lasts {
        Lasts::waiting(input.timeout_seconds)
    }

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let request = AskQuestion {
            to: parsed("to", &input.to)?,
            text: input.text,
            priority: urgency(input.priority.as_deref())?,
            task: input.task_id.map(|task| task.word()).transpose()?,
            wait: waiting(input.timeout_seconds),
        };
        match call.perform(request).await {
            Ok(answer) => Ok(told(answer)),
            Err(fault) if fault.code == ErrorCode::NoAnswer => Ok(unanswered(&fault)),
            Err(fault) => Err(fault),
        }
    }
}

/// The question, with its answer if that was waited for.
fn told(mut answer: JsonObject) -> JsonObject {
    let messages = answer.get("messages").and_then(Value::as_array);
    let count = messages.map_or(0, Vec::len);
    let question = messages.and_then(|list| list.first()?.get("id").cloned());
    answer.insert("question".to_owned(), question.unwrap_or_default());
    answer.insert("answered".to_owned(), (count > 1).into());
    if count < 2 {
        answer.insert("next".to_owned(), NEXT.into());
    }
    answer
}

/// The question stands; its answer comes later.
fn unanswered(fault: &Fault) -> JsonObject {
    let details = &fault.details;
    let told = Reply::new()
        .with("messages", &[(); 0])
        .with("question", &details["message"])
        .with("answered", &false)
        .with("next", NEXT);
    match &details["notices"] {
        Value::Null => told.answer,
        notices => told.with("notices", notices).answer,
    }
}
