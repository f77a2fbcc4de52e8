//! `submit_plan`, of the classroom profile

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::looking::ShowOwnRun;
use weald_app::operations::messages::SendMessage;
use weald_core::message::{MessageType, Urgency};

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers, parsed};

pub struct SubmitPlan;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The plan.
    plan: String,
    /// To whom. Default: whoever started you, otherwise `lead`.
    to: Option<String>,
    /// The task that it is for; your own unless given.
    task_id: Option<TaskRef>,
}

impl Tool for SubmitPlan {
    const NAME: &'static str = "submit_plan";
    const TITLE: &'static str = "Send your plan";
    const DESCRIPTION: &'static str = "Sends your plan to the lead. The verdict (plan_verdict) arrives in your inbox: wait for it with message_inbox before you continue.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Confined;
    type Input = Input;
    type Output = answers::messages::Messages;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let (mut to, mut task) = (input.to, input.task_id);
        if call.is_confined() && (to.is_none() || task.is_none()) {
            let own = call.perform(ShowOwnRun {}).await?;
            let lead = own.get("lead").and_then(|lead| lead.as_str());
            to = to.or_else(|| lead.map(str::to_owned));
            task = task.or_else(|| TaskRef::of(&own.get("task")?["id"]));
        } else if task.is_none() {
            task = call.session().await?.get("task").and_then(TaskRef::of);
        }
        let request = SendMessage {
            to: parsed("to", to.as_deref().unwrap_or("lead"))?,
            text: input.plan,
            kind: MessageType::Plan,
            priority: Urgency::Info,
            task: task.map(|task| task.word()).transpose()?,
        };
        call.perform(request).await
    }
}
