//! `weald keep`, `weald lock`, `weald unlock`

use std::io::Write;

use clap::Args;
use weald_app::Failure;
use weald_app::operations::keeping::{KeepOutcome, KeepTree, LockTree, UnlockTree};

use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, paint};

/// Exempt a worktree from clean-up
#[derive(Args)]
pub struct Keep {
    /// Worktree, task, agent, branch or path (default: current)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Allow clean-up again
    #[arg(long)]
    undo: bool,
}

/// Lock a worktree against removal
#[derive(Args)]
pub struct Lock {
    /// Worktree, task, agent, branch or path (default: current)
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
    /// Worktree, task, agent, branch or path (default: current)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Remove the lock of another session
    #[arg(long)]
    force: bool,
}

impl Keep {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(KeepTree {
            tree: self.name,
            undo: self.undo,
        })?;
        let tree = &answer.tree.tree;
        let name = paint(ACCENT, &tree.name);
        context.ui.show(&answer, |out| match answer.outcome {
            KeepOutcome::Kept => {
                writeln!(out, "{name} is kept: {}", tree.path.display())?;
                writeln!(
                    out,
                    "  clean-up does not remove it; to undo: weald keep {} --undo",
                    tree.name
                )
            }
            KeepOutcome::NotKept => writeln!(
                out,
                "{name} is {} again; clean-up may remove it",
                tree.status.as_str()
            ),
        })
    }
}

impl Lock {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(LockTree {
            tree: self.name,
            reason: self.reason.clone(),
            force: self.force,
        })?;
        let name = paint(ACCENT, &answer.tree.tree.name);
        context.ui.show(&answer, |out| {
            writeln!(out, "{name} is locked: {}", self.reason)
        })
    }
}

impl Unlock {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(UnlockTree {
            tree: self.name,
            force: self.force,
        })?;
        let name = paint(ACCENT, &answer.tree.tree.name);
        context.ui.show(&answer, |out| match &answer.was {
            Some(lock) => writeln!(
                out,
                "unlocked {name}; it was locked by {}: {}",
                lock.owner, lock.reason
            ),
            None => writeln!(out, "{name} was not locked; nothing changed"),
        })
    }
}
