//! `weald enter` and `weald exit`: shell code that changes the directory.

use std::io::{self, IsTerminal, Write};

use clap::Args;
use weald_app::Failure;
use weald_app::operations::entering::{EnterTree, ExitTree, ExitedTree, Then, VARIABLES};

use super::session::told_lock;
use super::shell_init::Moves;
use crate::completion;
use crate::context::Context;

/// Print shell code that enters a worktree
///
/// With `weald shell-init` set up, `weald enter NAME` changes the directory itself.
#[derive(Args)]
pub struct Enter {
    /// Worktree, task, agent, branch or path
    #[arg(value_name = "NAME", add = completion::trees())]
    name: String,
}

/// Print shell code that leaves the current worktree
///
/// Returns to the directory where `weald enter` was called. A scratch worktree without changes is removed.
#[derive(Args)]
pub struct Exit {
    /// Exempt the worktree from clean-up
    #[arg(long)]
    keep: bool,
    /// Move the worktree to the trash
    #[arg(long, conflicts_with = "keep")]
    remove: bool,
    /// Remove it even with uncommitted changes or unlanded commits
    #[arg(long, requires = "remove")]
    discard: bool,
}

impl Enter {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(EnterTree { tree: self.name })?;
        let set = VARIABLES.map(|name| (name, answer.env[name].clone()));
        let moved = told_shell(
            context,
            &Moves {
                to: &answer.path,
                set: &set,
                unset: &[],
            },
        )?;
        context.ui.show(&answer, |out| {
            if moved {
                return Ok(());
            }
            for (name, value) in &set {
                writeln!(out, "export {name}={};", quoted(value))?;
            }
            writeln!(out, "cd {};", quoted(&answer.path.display().to_string()))
        })
    }
}

impl Exit {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let then = match (self.keep, self.remove) {
            (true, _) => Then::Kept,
            (_, true) => Then::Removed {
                discard: self.discard,
            },
            _ => Then::Stays,
        };
        let answer = context.perform(ExitTree { then })?;
        context.note(&narrated(&answer));
        for lock in &answer.locks {
            context.note(&told_lock(lock));
        }
        let moved = told_shell(
            context,
            &Moves {
                to: &answer.back,
                set: &[],
                unset: &VARIABLES,
            },
        )?;
        context.ui.show(&answer, |out| {
            if moved {
                return Ok(());
            }
            writeln!(out, "cd {};", quoted(&answer.back.display().to_string()))?;
            writeln!(out, "unset {};", VARIABLES.join(" "))
        })
    }
}

/// Moves the shell by its script. A person who sees the code instead is told what is missing.
fn told_shell(context: &Context<'_>, moves: &Moves<'_>) -> Result<bool, Failure> {
    let moved = moves.tell(context)?;
    if !moved && !context.ui.is_json() && io::stdout().is_terminal() {
        context.note(
            "your shell stays where it is; to let it change directory, add `eval \"$(weald shell-init bash)\"` to its start-up file (or zsh; see docs/shell.md)",
        );
    }
    Ok(moved)
}

fn narrated(exited: &ExitedTree) -> String {
    let tree = &exited.tree;
    match exited.outcome.as_str() {
        "removed" => format!("{} is in the trash: weald restore {}", tree.name, tree.id),
        "kept" => format!("{} is kept", tree.name),
        _ => format!(
            "{} stays: {} (branch {})",
            tree.name,
            tree.path.display(),
            tree.branch
        ),
    }
}

/// A word that any shell takes as it is.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
