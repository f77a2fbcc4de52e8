//! `weald status` and `weald show`: look into a tree now.

use std::io::{self, Write};

use clap::Args;
use weald_app::operations::keeping::OneTree;
use weald_app::operations::looking::{CheckTrees, CheckedTrees, ShowTree, ShownTree};
use weald_app::{Dirty, Failure, TreeView, stages_in_words};
use weald_core::Timestamp;
use weald_core::setup::SetupOutcome;

use super::overview;
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Out, ago, paint, path_within, wrapped};

/// Check and show the current state of a worktree
///
/// Imports new commits and updates the branch in the main repository. For all worktrees, shows the phase of their work, their
/// agents and their size on disk.
#[derive(Args)]
pub struct Status {
    /// Worktree, task, agent, branch or path (default: all)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Show all worktrees
    #[arg(long, conflicts_with = "name")]
    all: bool,
    /// Keep showing all worktrees; in a pipe, one line per change
    #[arg(long, conflicts_with = "name")]
    watch: bool,
}

/// Show everything about a worktree
#[derive(Args)]
pub struct Show {
    /// Worktree, task, agent, branch or path (default: current)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
}

impl Status {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if self.watch && context.broker().is_none() {
            return overview::watch(context, &context.ground()?);
        }
        let answer = context.perform(CheckTrees {
            tree: self.name,
            all: self.all,
        })?;
        let now = context.now();
        context.ui.show(&answer, |out| match &answer {
            CheckedTrees::One(shown) => told_with_stages(out, shown, now),
            CheckedTrees::All(found) => overview::told(out, found, now),
        })
    }
}

impl Show {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(ShowTree { tree: self.name })?;
        let now = context.now();
        context.ui.show(&answer, |out| {
            told_with_stages(out, &answer, now)?;
            details(out, &answer.tree, now)
        })
    }
}

/// The answer: one tree.
pub fn print(context: &Context<'_>, answer: &OneTree) -> Result<u8, Failure> {
    let now = context.now();
    context.ui.show(answer, |out| told(out, &answer.tree, now))
}

fn told_with_stages(out: &mut Out, shown: &ShownTree, now: Timestamp) -> io::Result<()> {
    told(out, &shown.tree, now)?;
    match shown.stages.is_empty() {
        true => Ok(()),
        false => writeln!(out, "  phases: {}", stages_in_words(&shown.stages)),
    }
}

fn told(out: &mut Out, view: &TreeView, now: Timestamp) -> io::Result<()> {
    let tree = &view.tree;
    let status = tree.status.as_str();
    let used = tree.name.as_str().len() + status.len() + 2;
    let path = path_within(&tree.path.display().to_string(), used);
    let name = paint(ACCENT, &tree.name);
    writeln!(out, "{name} {status} {}", paint(DIM, path))?;
    let mut fact = |text: &str| writeln!(out, "  {}", wrapped(text, 4));
    if let Some(problem) = &view.problem {
        fact(problem)?;
        fact("whether it is dirty is unknown")?;
        return fact(&format!(
            "for details: weald doctor; to move it to the trash: weald rm {} --discard",
            tree.name
        ));
    }
    fact(&format!(
        "branch {}, {} ahead of its base ({}), {} behind {}",
        tree.branch,
        view.ahead.unwrap_or(0),
        &tree.base.commit[..tree.base.commit.len().min(12)],
        view.behind.unwrap_or(0),
        tree.target
    ))?;
    let Some(look) = &view.look else {
        return fact("whether it is dirty is unknown");
    };
    match view.dirty {
        Dirty::Known(false) => fact("clean")?,
        _ => {
            let hidden = match look.hidden {
                0 => String::new(),
                hidden => format!(", {hidden} hidden from git"),
            };
            fact(&format!(
                "{} staged, {} unstaged, {} untracked, {} conflicted{hidden}",
                look.staged, look.unstaged, look.untracked, look.conflicted
            ))?;
        }
    }
    if let Some(operation) = &look.operation {
        fact(&format!("a {operation} is in progress"))?;
    }
    let unfinished = match tree.setup.as_ref().map(|setup| setup.outcome) {
        None | Some(SetupOutcome::Done) => None,
        Some(SetupOutcome::Failed) => Some("failed"),
        Some(SetupOutcome::Unapproved) => Some("waits for weald trust"),
        Some(SetupOutcome::Unavailable) => Some("found no sandbox"),
    };
    if let Some(why) = unfinished {
        let name = &tree.name;
        fact(&format!(
            "its set-up {why}; to try again: weald setup {name}"
        ))?;
    }
    if tree.diverged {
        fact(&format!(
            "diverged: branch {} was moved outside weald; both are kept",
            tree.branch
        ))?;
        fact(&format!("to merge both: weald sync {}", tree.name))?;
    }
    match view.status_at {
        Some(at) if ago(at, now) != "now" => writeln!(
            out,
            "  {}",
            paint(DIM, format!("checked {} ago", ago(at, now)))
        ),
        _ => Ok(()),
    }
}

fn details(out: &mut Out, view: &TreeView, now: Timestamp) -> io::Result<()> {
    let tree = &view.tree;
    let task = tree.task.as_ref().map(|task| format!("#{task}"));
    let lock = tree
        .locked
        .as_ref()
        .map(|lock| format!("by {}: {}", lock.owner, lock.reason));
    let runs: Vec<_> = tree
        .runs
        .iter()
        .map(|run| format!("{} ({})", run.program, run.process.pid))
        .collect();
    for (name, value) in [
        ("kind", Some(tree.kind.as_str().to_owned())),
        ("base", Some(tree.base.commit.clone())),
        ("head", tree.head.clone()),
        ("task", task),
        ("locked", lock),
        (
            "running",
            Some(runs.join(", ")).filter(|text| !text.is_empty()),
        ),
        ("sandbox", tree.sandbox.clone()),
        (
            "ports",
            tree.ports
                .as_ref()
                .map(|ports| format!("{}-{}", ports.first, ports.last())),
        ),
        (
            "scratch for",
            tree.scratch_for.as_ref().map(ToString::to_string),
        ),
        (
            "created",
            Some(format!("{} ago", ago(tree.created_at, now))),
        ),
        (
            "last used",
            Some(format!("{} ago", ago(tree.last_used_at, now))),
        ),
    ] {
        if let Some(value) = value {
            writeln!(out, "  {name:<12} {}", wrapped(&value, 15))?;
        }
    }
    Ok(())
}
