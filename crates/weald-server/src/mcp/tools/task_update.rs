//! `task_update`

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, Words, answers};

pub struct TaskUpdate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which task; your own unless given.
    task_id: Option<TaskRef>,
    /// New subject.
    subject: Option<String>,
    /// New description.
    description: Option<String>,
    /// New acceptance notes.
    acceptance: Option<String>,
    /// New priority, P0 to P3.
    priority: Option<String>,
    /// Labels to add.
    #[serde(default)]
    add_labels: Vec<String>,
    /// Labels to take away.
    #[serde(default)]
    remove_labels: Vec<String>,
    /// Tasks that it has to wait for, too.
    #[serde(default)]
    add_blocked_by: Vec<TaskRef>,
    /// Tasks that it need not wait for any more.
    #[serde(default)]
    remove_blocked_by: Vec<TaskRef>,
    /// What to do with it: start (without a claim), release (give it back), renew (hold it for longer), fail (give up),
    /// cancel (not wanted) or reopen.
    action: Option<Action>,
    /// Why, for fail and cancel.
    reason: Option<String>,
    /// The token of the claim, if your session is not the one that claimed it.
    token: Option<u64>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Start,
    Release,
    Renew,
    Fail,
    Cancel,
    Reopen,
}

impl Tool for TaskUpdate {
    const NAME: &'static str = "task_update";
    const TITLE: &'static str = "Change a task";
    const DESCRIPTION: &'static str = "Change a task's words, labels or dependencies, or move it with action. release and fail are for the task that you claimed. To finish it call land with a report, or task_complete if there is nothing to land.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Confined;
    type Input = Input;
    type Output = answers::OneTask;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let (task, token) = call.held(input.task_id.clone(), input.token).await?;
        let mut answer = None;
        if let Some(words) = input.edit() {
            answer = Some(call.run(words.rest(&task)).await?);
        }
        if let Some(words) = input.dependencies() {
            answer = Some(call.run(words.rest(&task)).await?);
        }
        if let Some(action) = input.action {
            let words = action.words(token, input.reason.as_deref());
            answer = Some(call.run(words.rest(&task)).await?);
        }
        answer.ok_or_else(|| {
            Fault::new("bad_arguments", 2, "nothing to change is given")
                .hint("give a field to change, or an action")
        })
    }
}

impl Input {
    fn edit(&self) -> Option<Words> {
        let texts = [
            &self.subject,
            &self.description,
            &self.acceptance,
            &self.priority,
        ];
        let is_some = texts.iter().any(|text| text.is_some())
            || !(self.add_labels.is_empty() && self.remove_labels.is_empty());
        is_some.then(|| {
            Words::of(&["task", "edit"])
                .flag("subject", self.subject.as_ref())
                .flag("description", self.description.as_ref())
                .flag("acceptance", self.acceptance.as_ref())
                .flag("priority", self.priority.as_ref())
                .flags("label", &self.add_labels)
                .flags("unlabel", &self.remove_labels)
        })
    }

    fn dependencies(&self) -> Option<Words> {
        let is_some = !(self.add_blocked_by.is_empty() && self.remove_blocked_by.is_empty());
        is_some.then(|| {
            Words::of(&["task", "dep"])
                .flags("add", &self.add_blocked_by)
                .flags("remove", &self.remove_blocked_by)
        })
    }
}

impl Action {
    fn words(self, token: Option<u64>, reason: Option<&str>) -> Words {
        match self {
            Self::Start => Words::of(&["task", "start"]),
            Self::Release => Words::of(&["task", "release"]).flag("token", token),
            Self::Renew => Words::of(&["task", "renew"]).flag("token", token),
            Self::Fail => Words::of(&["task", "fail"])
                .flag("token", token)
                .flag("report", reason),
            Self::Cancel => Words::of(&["task", "cancel"]).flag("reason", reason),
            Self::Reopen => Words::of(&["task", "reopen"]),
        }
    }
}
