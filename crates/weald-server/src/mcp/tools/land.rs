//! `land`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::OnConflict;
use weald_app::operations::Caller;
use weald_app::operations::landing::LandTrees;
use weald_core::id::Token;
use weald_core::landing::Strategy;

use super::{Audience, Call, Effect, Fault, JsonObject, Lasts, TaskRef, Tool, answers, word};

pub struct Land;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which worktree or task; your own unless given.
    name: Option<String>,
    /// What was done and how it was checked, for the task that is completed by it.
    report: Option<String>,
    /// The message of the commit that lands; from its commits and its task unless given.
    message: Option<String>,
    /// squash, merge, rebase or ff; as configured unless given.
    strategy: Option<String>,
    /// Only say what would happen.
    dry_run: Option<bool>,
    /// Queue it and return; land_status tells the rest.
    no_wait: Option<bool>,
    /// Keep the worktree after it landed.
    keep: Option<bool>,
}

impl Tool for Land {
    const NAME: &'static str = "land";
    const TITLE: &'static str = "Land a worktree";
    const DESCRIPTION: &'static str = "Lands the commits of a worktree on its target: merges them onto its tip, tests the result, moves the target. Commit first. This is how a task ends: landing completes it, with your report, and moves the worktree to the trash; in a sandbox both happen when you end. Check each outcome: landed; conflict (merge the target into the worktree and resolve it there, commit, land again); red (the tests failed, see log; fix it, commit, land again); refused (see reason). After a conflict task_claim takes the task again.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Confined;
    type Input = Input;
    type Output = answers::Landings;

    fn lasts(_: &Input) -> Lasts {
        Lasts::Long
    }

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let tree = call.tree(input.name).await?;
        let token = match &tree {
            Some(name) => own_token(name, call).await,
            None => None,
        };
        let strategy = input.strategy.as_deref();
        let strategy = strategy.map(|given| word("strategy", given, Strategy::WORDS));
        let strategy = strategy.transpose()?;
        let request = LandTrees {
            names: tree.into_iter().collect(),
            strategy,
            no_wait: input.no_wait.unwrap_or_default(),
            dry_run: input.dry_run.unwrap_or_default(),
            keep: input.keep.unwrap_or_default(),
            force: false,
            stop_on_conflict: false,
            at_conflict: OnConflict::Abort,
            commit: None,
            message: input.message,
            report: input.report,
            leaves: false,
        };
        let caller = Caller {
            token,
            ..Caller::default()
        };
        call.perform_as(caller, request).await
    }
}

/// The caller's own token for the task of a tree; what can't be told, the landing will say.
async fn own_token(name: &str, call: &Call<'_>) -> Option<Token> {
    if call.is_confined() {
        return None;
    }
    let session = call.session().await.ok()?;
    if session.get("tree")?.as_str() != Some(name) {
        return None;
    }
    let task = TaskRef::of(session.get("task")?);
    call.held(task, None).await.ok()?.1.token
}
