//! `weald snapshot …`

use std::io::{self, Write};

use clap::{Args, Subcommand};
use weald_app::operations::snapshots::{
    DiffSnapshots, ListSnapshots, RestoreSnapshot, TakeSnapshot,
};
use weald_app::{Failure, SnapshotView, exit};
use weald_core::Timestamp;

use crate::commands::diff;
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Out, ago, clean, clean_line, paint};

/// Save and restore the state of a worktree.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Snapshot {
    Create(Create),
    List(List),
    Restore(Restore),
    Diff(Diff),
}

impl Default for Snapshot {
    fn default() -> Self {
        Self::List(List { name: None })
    }
}

/// Take a snapshot of a worktree
///
/// Contains HEAD, the index, and tracked and untracked files; ignored files are left out.
#[derive(Args)]
pub struct Create {
    /// Worktree, task, agent, branch or path (default: current)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Set by hooks in the background: only if something changed
    #[arg(long, hide = true, requires = "name")]
    background: bool,
}

/// List the snapshots of a worktree
#[derive(Args)]
pub struct List {
    /// Worktree, task, agent, branch or path (default: current)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
}

/// Restore a snapshot
///
/// Takes a snapshot of the current state first. Untracked files that were created since the snapshot are left alone. A file that
/// is in the way and in no snapshot is kept as NAME.before-restore.
#[derive(Args)]
pub struct Restore {
    /// Worktree, task, agent, branch or path
    #[arg(value_name = "NAME", add = completion::trees())]
    pub name: String,
    /// Snapshot to restore (default: the newest)
    #[arg(value_name = "ID")]
    pub id: Option<u64>,
}

/// Show changes since a snapshot or between two
///
/// Covers tracked and untracked files; snapshots do not contain ignored files.
#[derive(Args)]
pub struct Diff {
    /// Worktree, task, agent, branch or path
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
        let answer = context.perform(TakeSnapshot {
            tree: self.name,
            if_changed: self.background,
        })?;
        let Some(taken) = answer.snapshot.as_ref().filter(|_| !self.background) else {
            return Ok(exit::DONE);
        };
        for path in &taken.left_out {
            context.warn(&format!(
                "left out, too large or not a regular file: {}",
                clean_line(path)
            ));
        }
        context.ui.show(&answer, |out| told(out, taken))
    }
}

impl List {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(ListSnapshots { tree: self.name })?;
        let now = context.now();
        context
            .ui
            .show(&answer, |out| told_all(out, &answer.snapshots, now))
    }
}

impl Restore {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(RestoreSnapshot {
            tree: self.name,
            id: self.id,
        })?;
        let name = &answer.tree.tree.name;
        context.ui.show(&answer, |out| {
            writeln!(
                out,
                "{} was restored to snapshot {}",
                paint(ACCENT, name),
                answer.snapshot.id
            )?;
            writeln!(
                out,
                "  to undo: weald restore {name} --snapshot {}",
                answer.before.id
            )
        })
    }
}

impl Diff {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(DiffSnapshots {
            tree: self.name,
            from: self.from,
            to: self.to,
            style: self.style.wanted(context),
            options: self.style.options(),
            reader: context.ui.reader(),
        })?;
        diff::print(context, &answer)
    }
}
