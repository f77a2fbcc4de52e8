//! `weald phase`

use std::io::{self, Write};

use clap::Args;
use weald_app::operations::Operation;
use weald_app::operations::works::{Phased, RunPhases};
use weald_app::supervision::PhasesEnd;
use weald_app::{Failure, stages_in_words};

use super::work::How;
use super::work_told;
use crate::completion;
use crate::context::Context;
use crate::ui::{Out, because, clean, indented};

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
    /// Task ID, or its worktree, agent, branch or path
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
        let answer = context.perform(RunPhases {
            task: self.task,
            only: self.only.is_some(),
            first: self.only.or(self.from),
            how: self.how.wish(),
        })?;
        context.ui.show(&answer, |out| tell(out, &answer))?;
        Ok(RunPhases::exit(&answer))
    }
}

/// What came out of a task's phases.
pub fn tell(out: &mut Out, phased: &Phased) -> io::Result<()> {
    let Phased {
        task, agent, tree, ..
    } = phased;
    let (id, phase) = (&task.id, agent.phase().unwrap_or_default());
    match phased.phase.outcome {
        PhasesEnd::Passed => {
            let landing = phased.landing.as_ref();
            return work_told::tell_parts(out, agent, task, landing, tree.as_ref());
        }
        PhasesEnd::Blocked => {
            let report = task.report.as_deref().unwrap_or_default();
            writeln!(out, "✗ task {id} is blocked: {}", clean(report))?;
        }
        PhasesEnd::Stopped => {
            let why = agent.end.as_ref().map(|end| indented(&end.why, 4));
            let why = why.unwrap_or_default();
            let told = format!("✗ phase {phase} was not completed");
            writeln!(out, "{}", because(told, &why))?;
        }
        PhasesEnd::Only => writeln!(out, "phase {phase} is done")?,
    }
    writeln!(out, "  so far: {}", stages_in_words(&phased.phase.stages))?;
    if let Some(tree) = tree.as_ref().map(|view| &view.tree) {
        let path = tree.path.display();
        writeln!(out, "  kept: worktree {path} (branch {})", tree.branch)?;
    }
    writeln!(out, "  output: weald agent logs {}", agent.id)?;
    writeln!(out, "  continue: weald phase {id}")
}
