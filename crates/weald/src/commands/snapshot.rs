//! `weald snapshot …`

use std::io::Write;

use clap::{Args, Subcommand};

use crate::completion;
use crate::context::Context;
use crate::errors::Failure;
use crate::ui::{ACCENT, Fields, ago, clean, paint};

/// Keep everything in a tree as it is now, and put it back.
#[derive(Subcommand)]
pub enum Snapshot {
    Create(Create),
    List(List),
    Restore(Restore),
}

/// Take a snapshot: HEAD, index and files, known to git or not, but not ignored
#[derive(Args)]
pub struct Create {
    /// Which tree (default: the one you are in)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
}

/// List the snapshots of a tree
#[derive(Args)]
pub struct List {
    /// Which tree (default: the one you are in)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
}

/// Put a snapshot back; what is there now is taken first
///
/// Files that came since and that git does not know are left alone.
#[derive(Args)]
pub struct Restore {
    /// Which tree
    #[arg(value_name = "NAME", add = completion::trees())]
    name: String,
    /// Which snapshot (default: the newest)
    #[arg(value_name = "ID")]
    id: Option<u64>,
}

impl Snapshot {
    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::Create(command) => command.run(context),
            Self::List(command) => command.run(context),
            Self::Restore(command) => command.run(context),
        }
    }
}

impl Create {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let progress = context.ui.progress("taking the snapshot");
        let taken = ground.trees(context)?.snapshot(self.name.as_deref())?;
        drop(progress);
        for path in &taken.left_out {
            context
                .ui
                .warn(&format!("left out, too large or no file: {}", clean(path)));
        }
        context.ui.answer(
            || Fields::new().with("snapshot", &taken),
            |out| {
                writeln!(
                    out,
                    "snapshot {} ({})",
                    paint(ACCENT, taken.id),
                    taken.commit
                )
            },
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
            |out| {
                if found.is_empty() {
                    return writeln!(out, "no snapshots");
                }
                found.iter().try_for_each(|view| {
                    let age = ago(view.taken_at, now);
                    writeln!(out, "{} {} {age} ago", paint(ACCENT, view.id), view.commit)
                })
            },
        )
    }
}

impl Restore {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let (tree, restored, before) = trees.restore_snapshot(Some(&self.name), self.id)?;
        context.tell(&ground.engine);
        context.ui.answer(
            || {
                Fields::new()
                    .with("tree", &trees.view(tree.clone()))
                    .with("snapshot", &restored)
                    .with("before", &before)
            },
            |out| {
                writeln!(
                    out,
                    "{} is as in snapshot {}",
                    paint(ACCENT, &tree.name),
                    restored.id
                )?;
                writeln!(
                    out,
                    "  as it was before: weald snapshot restore {} {}",
                    tree.name, before.id
                )
            },
        )
    }
}
