//! What came out of an agent's work, in words: what happened, what was kept, what to do next.

use std::io::{self, Write};

use weald_app::TreeView;
use weald_app::landing::test_output;
use weald_app::operations::works::{CompletedBefore, Ended, Worked};
use weald_core::agent::{Agent, Goal, Outcome};
use weald_core::landing::{Landing, LandingStatus};
use weald_core::needs::NOTHING_YET;
use weald_core::task::Task;

use super::land::{told_red, told_signature};
use super::phase;
use crate::ui::{Out, because, clean, clean_line, indented, print_kept_changes, wrapped};

/// What came of work on a task.
pub fn tell_ended(out: &mut Out, ended: &Ended) -> io::Result<()> {
    match ended {
        Ended::Worked(worked) => tell(out, worked),
        Ended::Phases(phased) => phase::tell(out, phased),
        Ended::Completed(completed) => tell_completed(out, completed),
    }
}

fn tell_completed(out: &mut Out, completed: &CompletedBefore) -> io::Result<()> {
    let id = &completed.task.id;
    writeln!(
        out,
        "task {id} is completed; to open it again: weald task reopen {id}"
    )?;
    let Some(view) = &completed.unlanded else {
        return Ok(());
    };
    let (tree, count) = (&view.tree, view.ahead.unwrap_or(0));
    writeln!(
        out,
        "  {count} commits of it are not on {} yet: {} (branch {})",
        tree.target,
        tree.path.display(),
        tree.branch
    )?;
    writeln!(out, "  land it: weald land {}", tree.name)
}

pub fn tell(out: &mut Out, worked: &Worked) -> io::Result<()> {
    let (landing, tree) = (worked.landing.as_ref(), worked.tree.as_ref());
    tell_parts(out, &worked.agent, &worked.task, landing, tree)
}

pub fn tell_parts(
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
    let why = indented(&end.why, 4);
    match (end.outcome, landing) {
        (Outcome::Done, Some(landing)) if landing.new_tip.is_some() => landed(out, landing)?,
        (Outcome::Done, Some(_)) => writeln!(
            out,
            "✓ Agent finished; there was nothing to land, task {id} is {}",
            task.status
        )?,
        (Outcome::Done, None) => match &task.parked {
            Some(why) => writeln!(
                out,
                "✓ Agent finished; task {id} is waiting: {}",
                clean_line(why)
            )?,
            None => writeln!(out, "✓ Agent finished; task {id} is {}", task.status)?,
        },
        (Outcome::Empty, _) => writeln!(
            out,
            "✗ Agent finished, but changed nothing; task {id} is parked until you decide"
        )?,
        (Outcome::NotLanded, Some(landing)) if landing.status == LandingStatus::Red => {
            let log = format!("weald queue log {}", landing.id);
            told_red(out, landing, test_output(landing).as_deref(), &log)?;
        }
        (Outcome::NotLanded, _) => {
            writeln!(out, "✗ Agent finished, but its work did not land: {why}")?;
            // Below what names them, not below what was kept.
            let reason = landing.and_then(|landing| landing.reason.as_ref());
            for path in reason.iter().flat_map(|reason| &reason.paths) {
                writeln!(out, "    {}", clean_line(path))?;
            }
        }
        (outcome, _) => {
            let how = outcome.as_str().replace('_', " ");
            let told = format!("✗ Agent {} ended ({how})", agent.id);
            writeln!(out, "{}", because(told, &why))?;
        }
    }
    if let Some(landing) = landing {
        print_kept_changes(out, landing)?;
    }
    if let Some(report) = agent
        .report
        .as_ref()
        // Its last words, from which a report is made if it sent none, were shown as they came.
        .filter(|report| !report.report.is_empty() && !report.inferred)
    {
        writeln!(out, "{}", clean(report.report.trim()))?;
    }
    match (end.outcome, tree) {
        (Outcome::Done, _) if task.parked.as_deref() == Some(NOTHING_YET) => {
            writeln!(out, "  continue: weald resume {id} -i")
        }
        (Outcome::Done, Some(view)) if agent.goal == Goal::Finish => not_landed_yet(out, view),
        (Outcome::Done, _) => Ok(()),
        (Outcome::Empty, _) => empty(out, agent, task),
        _ => kept(out, agent, task, landing, tree),
    }
}

/// There is nothing to keep but what it said.
fn empty(out: &mut Out, agent: &Agent, task: &Task) -> io::Result<()> {
    let id = &task.id;
    writeln!(out, "  output: weald agent logs {}", agent.id)?;
    writeln!(out, "  try again: weald resume {id}")?;
    writeln!(out, "  if there was nothing to do: weald task done {id}")
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
        Some(cleanup) if cleanup.directory == "kept" => ", worktree kept",
        Some(cleanup) if cleanup.branch.starts_with("kept") => ", worktree cleaned up, branch kept",
        Some(_) => ", worktree and branch cleaned up",
        None => "",
    };
    writeln!(out, "✓ Agent finished")?;
    let (target, id) = (&landing.target, landing.id);
    let merged = format!("✓ Merged into {target} as {commit}{cleaned} (undo: weald revert {id})");
    writeln!(out, "{}", wrapped(&merged, 2))?;
    if let Some(cleanup) = landing.cleanup.as_ref().filter(|it| it.ignored > 0) {
        let restore = cleanup.restore.as_deref().unwrap_or("weald restore");
        writeln!(
            out,
            "  ignored files in it: {}, in the trash ({restore})",
            cleanup.ignored
        )?;
    }
    told_signature(out, landing)
}

fn kept(
    out: &mut Out,
    agent: &Agent,
    task: &Task,
    landing: Option<&Landing>,
    view: Option<&TreeView>,
) -> io::Result<()> {
    if let (Some(tree), Some(branch)) = (&agent.tree, &agent.branch) {
        let path = view.map_or(tree.to_string(), |view| {
            view.tree.path.display().to_string()
        });
        writeln!(
            out,
            "  kept: worktree {path} (branch {branch}); its changes: weald diff {tree}"
        )?;
    }
    writeln!(out, "  output: weald agent logs {}", agent.id)?;
    match agent.end.as_ref().map(|end| end.outcome) {
        Some(Outcome::NotLanded) => {
            let tree = agent.tree.as_ref();
            let tree = tree.map_or(String::new(), ToString::to_string);
            land_again(out, task, landing, &tree)
        }
        _ => writeln!(out, "  continue: weald resume {}", task.id),
    }
}

/// What has to be done before it lands.
fn land_again(out: &mut Out, task: &Task, landing: Option<&Landing>, tree: &str) -> io::Result<()> {
    let id = &task.id;
    let status = landing.map(|landing| landing.status);
    let reason = landing.and_then(|landing| landing.reason.as_ref());
    match (landing, status) {
        (_, Some(LandingStatus::Red)) => {
            writeln!(
                out,
                "  continue: weald resume {id}; or fix it in the worktree, then: weald land {tree}"
            )
        }
        (_, Some(LandingStatus::Refused)) if reason.is_some_and(|reason| reason.hint.is_some()) => {
            let hint = reason.and_then(|reason| reason.hint.as_deref());
            let hint = clean_line(hint.unwrap_or_default());
            // A hint that lands it leaves nothing to be done after it.
            if hint.contains(&format!("weald land {tree}")) {
                return writeln!(out, "  continue: {hint}");
            }
            writeln!(out, "  first: {hint}")?;
            writeln!(out, "  then:  weald resume {id}, or weald land {tree}")
        }
        (_, Some(LandingStatus::NothingToLand)) => {
            writeln!(
                out,
                "  its other branches: weald run {tree} -- git log --oneline --all --not HEAD"
            )?;
            writeln!(
                out,
                "  to land one: weald run {tree} -- git merge BRANCH, then: weald land {tree}"
            )
        }
        (_, Some(LandingStatus::Queued | LandingStatus::Testing | LandingStatus::Moving)) => {
            writeln!(
                out,
                "  it is waiting in the queue (see: weald queue); continue: weald land {tree}"
            )
        }
        _ => writeln!(
            out,
            "  continue: weald resume {id}; or by hand: weald sync {tree}, weald land {tree}"
        ),
    }
}
