//! `weald phase`

use clap::Args;
use weald_app::supervision::{Phases, find};
use weald_app::{Failure, Ground};
use weald_core::id::TaskId;

use super::phase_told::answer;
use super::work::How;
use crate::completion;
use crate::context::Context;
use crate::following::follow;

/// Run a task in phases: plan, build, review, qa
///
/// Runs one agent per phase in the task's worktree. Each ends with a verdict: a phase that fails with something to fix goes
/// back to `build`, and after three failures of a phase the task is blocked and its owner notified. When all phases have
/// passed, the work lands.
///
/// After an interruption, the same command continues after the last completed phase. `weald config show phase.list` lists the
/// phases; `phase.commands`, `phase.drivers` and `phase.prompts` set how each one runs.
#[derive(Args)]
pub struct Phase {
    /// The task
    #[arg(value_name = "TASK", add = completion::tasks())]
    task: String,
    /// Run only this phase and land nothing
    #[arg(long, value_name = "PHASE", conflicts_with = "from")]
    only: Option<String>,
    /// Start with this phase, even if it was completed before
    #[arg(long, value_name = "PHASE")]
    from: Option<String>,
    #[command(flatten)]
    how: How,
}

impl Phase {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        ground.warn_of_settings(context);
        let task = find(&ground, &self.task)?;
        let only = self.only.is_some();
        let first = self.only.or(self.from);
        go_on(context, &ground, task, &self.how, first, only)
    }
}

/// Continues with the phases of a task: with `first`, or after the last one that was completed.
pub fn go_on(
    context: &Context<'_>,
    ground: &Ground,
    task: TaskId,
    how: &How,
    first: Option<String>,
    only: bool,
) -> Result<u8, Failure> {
    let phases = Phases {
        task,
        request: how.request(ground),
        is_open: how.command.is_empty() && how.driver.is_none(),
        first,
        only,
        follow: &|ground, id| follow(context, ground, id),
    };
    let (agent, end) = phases.conduct(context, ground)?;
    answer(context, ground, &agent, end)
}
