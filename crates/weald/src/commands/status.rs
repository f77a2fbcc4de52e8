//! `weald status` and `weald show`: look into a tree now.

use std::io::{self, Write};

use clap::Args;
use weald_app::Ask;
use weald_app::{Dirty, Failure, Freshness, Ground, StageView, TreeView, Upkeep, stages_in_words};
use weald_core::Timestamp;
use weald_core::setup::SetupOutcome;
use weald_server::broker::Reply;

use super::inside::{Inside, field};
use super::overview;
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Fields, Out, ago, clean, paint};

/// Check and show the current state of a worktree
///
/// Imports new commits and updates the branch in the main repository. For all worktrees, shows the phase of their work, their
/// agents and their size on disk.
#[derive(Args)]
pub struct Status {
    /// The worktree (default: the current one, else all)
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
    /// The worktree (default: the current one)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
}

impl Status {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let progress = context.stage("looking");
        if self.watch {
            drop(progress);
            return overview::watch(context, &ground);
        }
        if self.all || (self.name.is_none() && ground.place.inside().is_none()) {
            let found = Upkeep::new(&trees).overview(Freshness::Now)?;
            drop(progress);
            return overview::print(context, &found);
        }
        let view = trees.look(self.name.as_deref())?;
        drop(progress);
        let stages = stages_of(&ground, &view)?;
        context.tell(&ground.engine);
        let now = context.now();
        context.ui.answer(
            || fields(&view, &stages),
            |out| {
                told(out, &view, now)?;
                tell_stages(out, &stages)
            },
        )
    }
}

impl Show {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let progress = context.stage("looking");
        let view = trees.look(self.name.as_deref())?;
        drop(progress);
        let stages = stages_of(&ground, &view)?;
        context.tell(&ground.engine);
        let now = context.now();
        context.ui.answer(
            || fields(&view, &stages),
            |out| {
                told(out, &view, now)?;
                tell_stages(out, &stages)?;
                details(out, &view, now)
            },
        )
    }
}

impl Status {
    /// The same from inside a tree: its own.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        if self.all {
            return Err(Failure::not_allowed_inside());
        }
        let (reply, view) = own(inside, self.name)?;
        let now = inside.context.now();
        inside.print(&reply, |out| told(out, &view, now))
    }
}

impl Show {
    /// The same from inside a tree: its own.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let (reply, view) = own(inside, self.name)?;
        let now = inside.context.now();
        inside.print(&reply, |out| {
            told(out, &view, now)?;
            details(out, &view, now)
        })
    }
}

fn own(inside: &Inside<'_>, tree: Option<String>) -> Result<(Reply, TreeView), Failure> {
    let reply = inside.ask(Ask::Status { tree })?;
    let view = field(&reply, "tree")?;
    Ok((reply, view))
}

/// The answer: one tree.
pub fn print(context: &Context<'_>, view: &TreeView) -> Result<u8, Failure> {
    let now = context.now();
    context.ui.answer(
        || Fields::new().with("tree", view),
        |out| told(out, view, now),
    )
}

/// The phases of the task that a tree belongs to.
fn stages_of(ground: &Ground, view: &TreeView) -> Result<Vec<StageView>, Failure> {
    match &view.tree.task {
        Some(task) => Ok(ground.engine.stages(task)?),
        None => Ok(Vec::new()),
    }
}

fn fields(view: &TreeView, stages: &[StageView]) -> Fields {
    let stages = Some(stages).filter(|stages| !stages.is_empty());
    Fields::new().with("tree", view).with_some("stages", stages)
}

fn tell_stages(out: &mut Out, stages: &[StageView]) -> io::Result<()> {
    match stages.is_empty() {
        true => Ok(()),
        false => writeln!(out, "  phases: {}", stages_in_words(stages)),
    }
}

fn told(out: &mut Out, view: &TreeView, now: Timestamp) -> io::Result<()> {
    let tree = &view.tree;
    writeln!(
        out,
        "{} {} {}",
        paint(ACCENT, &tree.name),
        tree.status.as_str(),
        paint(DIM, tree.path.display())
    )?;
    if let Some(problem) = &view.problem {
        writeln!(out, "  {}", clean(problem))?;
        writeln!(out, "  whether it is dirty is unknown")?;
        return writeln!(
            out,
            "  for details: weald doctor; to move it to the trash: weald rm {} --discard",
            tree.name
        );
    }
    writeln!(
        out,
        "  branch {}, {} ahead of its base ({}), {} behind {}",
        tree.branch,
        view.ahead.unwrap_or(0),
        &tree.base.commit[..tree.base.commit.len().min(12)],
        view.behind.unwrap_or(0),
        tree.target
    )?;
    let Some(look) = &view.look else {
        return writeln!(out, "  whether it is dirty is unknown");
    };
    match view.dirty {
        Dirty::Known(false) => writeln!(out, "  clean")?,
        _ => {
            write!(
                out,
                "  {} staged, {} unstaged, {} untracked, {} conflicted",
                look.staged, look.unstaged, look.untracked, look.conflicted
            )?;
            match look.hidden {
                0 => writeln!(out)?,
                hidden => writeln!(out, ", {hidden} hidden from git")?,
            }
        }
    }
    if let Some(operation) = &look.operation {
        writeln!(out, "  a {} is in progress", clean(operation))?;
    }
    let unfinished = match tree.setup.as_ref().map(|setup| setup.outcome) {
        None | Some(SetupOutcome::Done) => None,
        Some(SetupOutcome::Failed) => Some("failed"),
        Some(SetupOutcome::Unapproved) => Some("waits for weald trust"),
        Some(SetupOutcome::Unavailable) => Some("found no sandbox of level full"),
    };
    if let Some(why) = unfinished {
        writeln!(
            out,
            "  its set-up {why}; to try again: weald setup {}",
            tree.name
        )?;
    }
    if tree.diverged {
        writeln!(
            out,
            "  diverged: branch {} was moved outside weald; both are kept",
            tree.branch
        )?;
        writeln!(out, "  to merge both: weald sync {}", tree.name)?;
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
            writeln!(out, "  {name:<12} {}", clean(&value))?;
        }
    }
    Ok(())
}
