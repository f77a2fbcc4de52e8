//! `request_plan`, of the classroom profile

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::messages::SendMessage;
use weald_core::message::{MessageType, Urgency};

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers, parsed};

pub struct RequestPlan;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Whom: the name of an agent or a worker.
    teammate: String,
    /// What the plan is for, in words.
    #[serde(default)]
    task: String,
    /// The task that the plan is for.
    task_id: Option<TaskRef>,
}

impl Tool for RequestPlan {
    const NAME: &'static str = "request_plan";
    const TITLE: &'static str = "Ask a teammate for its plan";
    const DESCRIPTION: &'static str = "Asks a teammate to send its plan before it continues. The plan arrives in your inbox; judge it with review_plan. A task created with needs_plan can't be completed without an approved plan.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Lead;
    type Input = Input;
    type Output = answers::messages::Messages;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let about = match input.task.trim() {
            "" => "your task",
            task => task,
        };
        let text = format!(
            "Before you continue, send me your plan for {about}: submit_plan, or weald msg send NAME PLAN --type plan. Wait for the verdict."
        );
        let request = SendMessage {
            to: parsed("teammate", &input.teammate)?,
            text,
            kind: MessageType::Message,
            priority: Urgency::Steer,
            task: input.task_id.map(|task| task.word()).transpose()?,
        };
        call.perform(request).await
    }
}
