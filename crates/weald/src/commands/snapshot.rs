//! `weald snapshot …`

use std::io::{self, Write};

use clap::{Args, Subcommand};
use weald_app::Ask;
use weald_app::{Failure, SnapshotView, exit};
use weald_core::Timestamp;

use super::inside::{Inside, field};
use crate::commands::diff;
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Fields, Out, ago, clean, clean_line, paint};

/// Save and restore the state of a worktree.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Snapshot {
    Create(Create),
    List(List),
    Restore(Restore),
    Diff(Diff),
}

/// Take a snapshot of a worktree
///
/// Contains HEAD, the index, and tracked and untracked files; ignored files are left out.
#[derive(Args)]
pub struct Create {
    /// The worktree (default: the current one)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Set by hooks in the background: only if something changed
    #[arg(long, hide = true, requires = "name")]
    background: bool,
}

/// List the snapshots of a worktree
#[derive(Args)]
pub struct List {
    /// The worktree (default: the current one)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
}

/// Restore a snapshot
///
/// Takes a snapshot of the current state first. Untracked files that were created since the snapshot are left alone. A file that
/// is in the way and in no snapshot is kept as NAME.before-restore.
#[derive(Args)]
pub struct Restore {
    /// The worktree
    #[arg(value_name = "NAME", add = completion::trees())]
    name: String,
    /// Snapshot to restore (default: the newest)
    #[arg(value_name = "ID")]
    id: Option<u64>,
}

/// Show changes since a snapshot or between two
///
/// Covers tracked and untracked files; snapshots do not contain ignored files.
#[derive(Args)]
pub struct Diff {
    /// The worktree
    #[arg(value_name = "NAME", add = completion::trees())]
    name: String,
    /// Snapshot to start from (default: the newest)
    #[arg(value_name = "ID")]
    from: Option<u64>,
    /// Snapshot to compare with (default: the current state)
    #[arg(value_name = "ID")]
    to: Option<u64>,
    #[command(flatten)]
    style: diff::Style,
}

impl Snapshot {
    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::Create(command) => command.run(context),
            Self::List(command) => command.run(context),
            Self::Restore(command) => command.run(context),
            Self::Diff(command) => command.run(context),
        }
    }
}

impl Snapshot {
    /// The same from inside a tree: its own.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        match self {
            Self::Create(Create { name, .. }) => {
                let reply = inside.ask(Ask::SnapshotCreate {
                    tree: name,
                    if_changed: false,
                })?;
                let taken: SnapshotView = field(&reply, "snapshot")?;
                warn_of_left_out(inside.context, &taken);
                inside.print(&reply, |out| told(out, &taken))
            }
            Self::List(List { name }) => {
                let reply = inside.ask(Ask::SnapshotList { tree: name })?;
                let found: Vec<SnapshotView> = field(&reply, "snapshots")?;
                let now = inside.context.now();
                inside.print(&reply, |out| told_all(out, &found, now))
            }
            other if !inside.context.is_confined() => other.run(inside.context),
            _ => Err(Failure::not_allowed_inside()),
        }
    }
}

fn warn_of_left_out(context: &Context<'_>, taken: &SnapshotView) {
    for path in &taken.left_out {
        context.warn(&format!(
            "left out, too large or not a regular file: {}",
            clean_line(path)
        ));
    }
}

fn told(out: &mut Out, taken: &SnapshotView) -> io::Result<()> {
    let id = paint(ACCENT, taken.id);
    writeln!(out, "snapshot {id} ({})", taken.commit)
}

fn told_all(out: &mut Out, found: &[SnapshotView], now: Timestamp) -> io::Result<()> {
    if found.is_empty() {
        return writeln!(out, "no snapshots");
    }
    found.iter().try_for_each(|view| {
        let (age, why) = (ago(view.taken_at, now), clean(&view.reason));
        let id = paint(ACCENT, view.id);
        writeln!(out, "{id} {} {age} ago ({why})", view.commit)?;
        let mut left_out = view.left_out.iter();
        left_out.try_for_each(|path| writeln!(out, "  left out: {}", clean_line(path)))
    })
}

impl Create {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if self.background {
            context.step_back();
        }
        let ground = context.ground()?;
        if self.background {
            let trees = ground.trees(context)?;
            trees.keep_work(&trees.named(self.name.as_deref())?)?;
            context.tell(&ground.engine);
            return Ok(exit::DONE);
        }
        let progress = context.stage("taking the snapshot");
        let taken = ground.trees(context)?.snapshot(self.name.as_deref())?;
        drop(progress);
        warn_of_left_out(context, &taken);
        context.ui.answer(
            || Fields::new().with("snapshot", &taken),
            |out| told(out, &taken),
        )
    }
}

impl List {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let found = ground.trees(context)?.snapshots(self.name.as_deref())?;
        let now = context.now();
        context.ui.answer(
            || Fields::new().with("snapshots", &found),
            |out| told_all(out, &found, now),
        )
    }
}

impl Restore {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let restored = trees.restore_snapshot(Some(&self.name), self.id)?;
        context.tell(&ground.engine);
        for path in &restored.set_aside {
            let path = clean_line(path);
            context.warn(&format!(
                "in no snapshot and in the way, so it is kept: {path}"
            ));
        }
        let tree = &restored.tree;
        context.ui.answer(
            || {
                Fields::new()
                    .with("tree", &trees.view(tree.clone()))
                    .with("snapshot", &restored.snapshot)
                    .with("before", &restored.before)
                    .with("set_aside", &restored.set_aside)
            },
            |out| {
                writeln!(
                    out,
                    "{} was restored to snapshot {}",
                    paint(ACCENT, &tree.name),
                    restored.snapshot.id
                )?;
                writeln!(
                    out,
                    "  to undo: weald snapshot restore {} {}",
                    tree.name, restored.before.id
                )
            },
        )
    }
}

impl Diff {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let style = self.style.wanted(context).into();
        let progress = context.stage("looking");
        let found = trees.snapshot_diff(Some(&self.name), self.from, self.to, style)?;
        drop(progress);
        diff::print(context, &found.into())
    }
}
