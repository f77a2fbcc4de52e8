//! What came out of an agent's work, in words: what happened, what was kept, what to do next.

use std::io::{self, Write};

use weald_core::agent::{Agent, Goal, Outcome};
use weald_core::landing::Landing;
use weald_core::task::Task;
use weald_engine::TreeView;

use crate::ui::{Out, because, clean, clean_line};

/// Tells it.
pub fn tell(
    out: &mut Out,
    agent: &Agent,
    task: &Task,
    landing: Option<&Landing>,
    tree: Option<&TreeView>,
) -> io::Result<()> {
    let id = &task.id;
    let Some(end) = &agent.end else {
        let state = agent.status;
        return writeln!(out, "{} works on task {id} ({state})", agent.id);
    };
    let why = clean_line(&end.why);
    match (end.outcome, landing) {
        (Outcome::Done, Some(landing)) if landing.new_tip.is_some() => landed(out, landing)?,
        (Outcome::Done, Some(_)) => writeln!(
            out,
            "✓ Agent finished; there was nothing to land, task {id} is {}",
            task.status
        )?,
        (Outcome::Done, None) => writeln!(out, "✓ Agent finished; task {id} is {}", task.status)?,
        (Outcome::NotLanded, _) => {
            writeln!(out, "✗ Agent finished, but its work did not land: {why}")?
        }
        (outcome, _) => {
            let how = outcome.as_str().replace('_', " ");
            let told = format!("✗ Agent {} is over ({how})", agent.id);
            writeln!(out, "{}", because(told, &why))?;
        }
    }
    if let Some(report) = agent
        .report
        .as_ref()
        .filter(|report| !report.report.is_empty())
    {
        writeln!(out, "{}", clean(report.report.trim()))?;
    }
    match (end.outcome, tree) {
        (Outcome::Done, Some(view)) if agent.goal == Goal::Finish => not_landed_yet(out, view),
        (Outcome::Done, _) => Ok(()),
        _ => kept(out, agent, task, tree),
    }
}

/// The work is done, and nobody asked for it to land.
fn not_landed_yet(out: &mut Out, view: &TreeView) -> io::Result<()> {
    let tree = &view.tree;
    writeln!(
        out,
        "  its work: {} (branch {})",
        tree.path.display(),
        tree.branch
    )?;
    writeln!(out, "  land it: weald land {}", tree.name)
}

fn landed(out: &mut Out, landing: &Landing) -> io::Result<()> {
    let commit: String = landing
        .new_tip
        .iter()
        .flat_map(|commit| commit.chars().take(7))
        .collect();
    let cleaned = match &landing.cleanup {
        Some(cleanup) if cleanup.directory != "kept" => ", worktree and branch cleaned up",
        _ => ", worktree kept",
    };
    writeln!(out, "✓ Agent finished")?;
    writeln!(
        out,
        "✓ Merged into {} as {commit}{cleaned} (undo: weald revert {})",
        landing.target, landing.id
    )
}

fn kept(out: &mut Out, agent: &Agent, task: &Task, view: Option<&TreeView>) -> io::Result<()> {
    if let (Some(tree), Some(branch)) = (&agent.tree, &agent.branch) {
        let path = view.map_or(tree.to_string(), |view| {
            view.tree.path.display().to_string()
        });
        writeln!(
            out,
            "  kept: worktree {path} (branch {branch}); what it holds: weald diff {tree}"
        )?;
    }
    writeln!(out, "  output: weald agent logs {}", agent.id)?;
    match agent.end.as_ref().map(|end| end.outcome) {
        Some(Outcome::NotLanded) => {
            let tree = agent
                .tree
                .as_ref()
                .map_or(String::new(), ToString::to_string);
            writeln!(
                out,
                "  go on: weald resume {}; or by hand: weald sync {tree}, weald land {tree}",
                task.id
            )
        }
        _ => writeln!(out, "  go on: weald resume {}", task.id),
    }
}
