//! What came out of a task's phases, for people and programs.

use std::io::{self, Write};

use serde_json::json;
use weald_app::supervision::PhasesEnd;
use weald_app::{Failure, Ground, Landings, StageView, TreeView, exit, stages_in_words};
use weald_core::agent::Agent;
use weald_core::landing::{Landing, LandingStatus};
use weald_core::task::Task;
use weald_sandbox::interrupted;

use super::work_told;
use crate::context::Context;
use crate::ui::{Fields, Out, because, clean, indented};

fn in_a_word(end: PhasesEnd) -> &'static str {
    match end {
        PhasesEnd::Passed => "passed",
        PhasesEnd::Blocked => "blocked",
        PhasesEnd::Stopped => "stopped",
        PhasesEnd::Only => "done",
    }
}

pub fn answer(
    context: &Context<'_>,
    ground: &Ground,
    agent: &Agent,
    outcome: PhasesEnd,
) -> Result<u8, Failure> {
    let engine = &ground.engine;
    let task = engine.task(&agent.task)?.task;
    let trees = ground.trees(context)?;
    let landing = match agent.end.as_ref().and_then(|end| end.landing) {
        Some(id) => Some(Landings::new(&trees).landing(id)?),
        None => None,
    };
    let tree = agent.tree.as_ref();
    let tree = tree.and_then(|name| trees.named(Some(name.as_str())).ok());
    let view = tree.map(|tree| trees.view(tree));
    let stages = match outcome {
        // What has landed is settled, and told here all the same.
        PhasesEnd::Passed => engine.stages_before(agent)?,
        _ => engine.stages(&agent.task)?,
    };
    context.tell(engine);
    context.ui.answer(
        || {
            let phase = json!({
                "outcome": in_a_word(outcome),
                "stages": stages,
                "must_fix": agent.verdict.as_ref().map(|verdict| &verdict.must_fix),
            });
            Fields::new()
                .with("phase", &phase)
                .with("task", &task)
                .with("tree", &view)
                .with("agent", agent)
                .with(
                    "landing",
                    &landing.as_ref().map(weald_app::landing::as_json),
                )
        },
        |out| {
            tell(
                out,
                outcome,
                agent,
                &task,
                landing.as_ref(),
                &stages,
                view.as_ref(),
            )
        },
    )?;
    Ok(exit_of(outcome, agent, landing.as_ref()))
}

fn exit_of(outcome: PhasesEnd, agent: &Agent, landing: Option<&Landing>) -> u8 {
    let is_conflict = landing.is_some_and(|landing| landing.status == LandingStatus::Conflict);
    match outcome {
        PhasesEnd::Stopped => interrupted().map_or(exit::REFUSED, |signal| 128 + signal),
        PhasesEnd::Only if agent.verdict.as_ref().is_some_and(|said| said.passes()) => exit::DONE,
        PhasesEnd::Passed if agent.is_done() => exit::DONE,
        PhasesEnd::Passed if is_conflict => exit::CONFLICT,
        _ => exit::REFUSED,
    }
}

fn tell(
    out: &mut Out,
    outcome: PhasesEnd,
    agent: &Agent,
    task: &Task,
    landing: Option<&Landing>,
    stages: &[StageView],
    view: Option<&TreeView>,
) -> io::Result<()> {
    let (id, phase) = (&task.id, agent.phase().unwrap_or_default());
    let words = stages_in_words(stages);
    match outcome {
        PhasesEnd::Passed => return work_told::tell(out, agent, task, landing, view),
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
    writeln!(out, "  so far: {words}")?;
    if let Some(tree) = view.map(|view| &view.tree) {
        let path = tree.path.display();
        writeln!(out, "  kept: worktree {path} (branch {})", tree.branch)?;
    }
    writeln!(out, "  output: weald agent logs {}", agent.id)?;
    writeln!(out, "  continue: weald phase {id}")
}
