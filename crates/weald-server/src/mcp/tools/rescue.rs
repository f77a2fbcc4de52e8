//! `rescue`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::rescues::{self, RescueTask};
use weald_app::supervision::AgentWish;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers, shell};

pub struct Rescue;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which task.
    task_id: TaskRef,
    /// Also commit what is not committed, on the worktree's branch.
    commit: Option<bool>,
    /// continue (an agent goes on in the same worktree), restart (one begins again in a fresh worktree; the old one goes to
    /// the trash) or trash. Without it nothing but the snapshot is made.
    choice: Option<Choice>,
    /// A shell command to run instead of the agent, for continue and restart.
    command: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Choice {
    Continue,
    Restart,
    Trash,
}

impl Tool for Rescue {
    const NAME: &'static str = "rescue";
    const TITLE: &'static str = "Rescue a task's work";
    const DESCRIPTION: &'static str = "Shows what a crashed or failed agent left: how it ended, its last output, its worktree and the uncommitted changes, which are saved as a snapshot first. choice decides what happens next; an agent that it starts runs in the background.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Lead;
    type Input = Input;
    type Output = answers::agents::Rescued;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let request = RescueTask {
            task: input.task_id.word()?,
            commit: input.commit.unwrap_or_default(),
            choice: input.choice.map(|choice| match choice {
                Choice::Continue => rescues::Rescue::Continue,
                Choice::Restart => rescues::Rescue::Restart,
                Choice::Trash => rescues::Rescue::Trash,
            }),
            detach: true,
            how: AgentWish {
                land: None,
                model: None,
                driver: None,
                name: None,
                role: None,
                prompt: None,
                feedback: None,
                retries: None,
                command: shell(input.command),
                interactive: false,
            },
        };
        call.perform(request).await
    }
}
