//! `request_shutdown`, of the classroom profile

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::messages::SendMessage;
use weald_core::message::{MessageType, Urgency};

use super::{Audience, Call, Effect, Fault, JsonObject, Tool, answers, parsed};

pub struct RequestShutdown;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Whom: the name of an agent or a worker.
    teammate: String,
    /// Why.
    reason: Option<String>,
}

impl Tool for RequestShutdown {
    const NAME: &'static str = "request_shutdown";
    const TITLE: &'static str = "Ask a teammate to stop";
    const DESCRIPTION: &'static str = "Asks a teammate to stop. It answers (shutdown_reply in your inbox) and ends; its task is released and its worktree is kept.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Lead;
    const ALSO: &'static [(&'static str, &'static str)] = &[("name", "teammate")];
    type Input = Input;
    type Output = answers::messages::Messages;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let reason = input.reason.unwrap_or_else(|| "please stop".to_owned());
        let request = SendMessage {
            to: parsed("teammate", &input.teammate)?,
            text: reason,
            kind: MessageType::Shutdown,
            priority: Urgency::Info,
            task: None,
        };
        call.perform(request).await
    }
}
