//! `agent_diff`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::DiffStyle;
use weald_app::operations::orders::DiffAgent;
use weald_core::git_diff::DiffOptions;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers};

/// How much of a patch is told.
const PATCH: usize = 256 << 10;

pub struct AgentDiff;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which agent: its id, its task, its name or its worktree.
    agent: TaskRef,
    /// Add the patch, cut at 256 KiB.
    patch: Option<bool>,
}

impl Tool for AgentDiff {
    const NAME: &'static str = "agent_diff";
    const TITLE: &'static str = "See what an agent changed";
    const DESCRIPTION: &'static str = "What an agent changed so far in its worktree, or what it landed: files, and the patch if you ask for it.";
    const EFFECT: Effect = Effect::Reads;
    const AUDIENCE: Audience = Audience::Lead;
    const ALSO: &'static [(&'static str, &'static str)] = &[("id", "agent")];
    type Input = Input;
    type Output = answers::Diff;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let agent: String = input.agent.word()?.into();
        let list = DiffAgent {
            agent,
            style: DiffStyle::Files,
            options: DiffOptions::default(),
            reader: None,
        };
        let patch = DiffAgent {
            style: DiffStyle::Patch,
            ..list.clone()
        };
        let mut answer = call.perform(list).await?;
        if input.patch == Some(true) {
            let (patch, is_cut) = call.patch(patch, PATCH).await?;
            answer.insert("patch".to_owned(), patch.into());
            if is_cut {
                answer.insert("truncated".to_owned(), true.into());
            }
        }
        Ok(answer)
    }
}
