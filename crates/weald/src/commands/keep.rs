//! `weald keep`, `weald lock`, `weald unlock`

use std::io::Write;

use clap::Args;

use weald_app::Failure;

use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Fields, paint};

/// Exempt a worktree from clean-up
#[derive(Args)]
pub struct Keep {
    /// The worktree (default: the current one)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Allow clean-up again
    #[arg(long)]
    undo: bool,
}

/// Lock a worktree against removal
#[derive(Args)]
pub struct Lock {
    /// The worktree (default: the current one)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Reason to record
    #[arg(long, value_name = "TEXT", default_value = "locked")]
    reason: String,
    /// Replace the lock of another session
    #[arg(long)]
    force: bool,
}

/// Unlock a worktree
#[derive(Args)]
pub struct Unlock {
    /// The worktree (default: the current one)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Remove the lock of another session
    #[arg(long)]
    force: bool,
}

impl Keep {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        if self.undo {
            let view = trees.unkeep(self.name.as_deref())?;
            context.tell(&ground.engine);
            return context.ui.answer(
                || {
                    Fields::new()
                        .with("tree", &view)
                        .with("outcome", &"not_kept")
                },
                |out| {
                    let (name, status) = (paint(ACCENT, &view.tree.name), view.tree.status);
                    writeln!(
                        out,
                        "{name} is {} again; clean-up may remove it",
                        status.as_str()
                    )
                },
            );
        }
        let view = trees.keep(self.name.as_deref())?;
        context.tell(&ground.engine);
        context.ui.answer(
            || Fields::new().with("tree", &view).with("outcome", &"kept"),
            |out| {
                let tree = &view.tree;
                writeln!(
                    out,
                    "{} is kept: {}",
                    paint(ACCENT, &tree.name),
                    tree.path.display()
                )?;
                writeln!(
                    out,
                    "  clean-up does not remove it; to undo: weald keep {} --undo",
                    tree.name
                )
            },
        )
    }
}

impl Lock {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let tree = trees.lock(self.name.as_deref(), &self.reason, self.force)?;
        context.tell(&ground.engine);
        context.ui.answer(
            || Fields::new().with("tree", &trees.view(tree.clone())),
            |out| {
                writeln!(
                    out,
                    "{} is locked: {}",
                    paint(ACCENT, &tree.name),
                    self.reason
                )
            },
        )
    }
}

impl Unlock {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let (tree, was) = trees.unlock(self.name.as_deref(), self.force)?;
        context.tell(&ground.engine);
        context.ui.answer(
            || {
                Fields::new()
                    .with("tree", &trees.view(tree.clone()))
                    .with("was", &was)
            },
            |out| {
                let name = paint(ACCENT, &tree.name);
                match &was {
                    Some(lock) => writeln!(
                        out,
                        "unlocked {name}; it was locked by {}: {}",
                        lock.owner, lock.reason
                    ),
                    None => writeln!(out, "{name} was not locked; nothing changed"),
                }
            },
        )
    }
}
