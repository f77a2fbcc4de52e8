//! `weald sync`

use std::io::{self, Write};

use clap::Args;
use weald_app::operations::Operation;
use weald_app::operations::making::{SyncTree, SyncedTree};
use weald_app::{Failure, SyncOutcome};

use super::inside::Inside;
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Out, clean_line, paint};

/// Merge the target into a worktree
///
/// Also joins a diverged branch. A conflict (exit 3) is left in the worktree for you to resolve. An ignored file that is in
/// the way is kept as NAME.before-sync.
#[derive(Args)]
pub struct Sync {
    /// Worktree, task, agent, branch or path (default: current)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Rebase the worktree's commits instead of merging
    #[arg(long)]
    rebase: bool,
}

impl Sync {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(SyncTree {
            tree: self.name,
            rebase: self.rebase,
        })?;
        let is_inside = Inside::of(context).is_some();
        context
            .ui
            .show(&answer, |out| told(out, &answer, is_inside))?;
        Ok(SyncTree::exit(&answer))
    }
}

fn told(out: &mut Out, synced: &SyncedTree, is_inside: bool) -> io::Result<()> {
    let tree = &synced.tree.tree;
    let name = paint(ACCENT, &tree.name);
    match synced.outcome {
        SyncOutcome::UpToDate => writeln!(out, "{name} already has all of {}", tree.target),
        SyncOutcome::Conflict => {
            writeln!(out, "{name} conflicts; resolve it in the worktree:")?;
            for path in &synced.conflicts {
                writeln!(out, "  {}", clean_line(path))?;
            }
            let tree = &tree.name;
            let (on, back) = match synced.operation.as_deref() {
                Some("rebase") => ("git rebase --continue", "git rebase --abort"),
                _ => ("git commit --no-edit", "git merge --abort"),
            };
            if is_inside {
                writeln!(out, "  then: git add FILE…; {on}; weald land")?;
                return writeln!(out, "  or abort it: {back}");
            }
            writeln!(out, "  then: weald run {tree} -- {on}")?;
            writeln!(out, "  or abort it: weald run {tree} -- {back}")
        }
        SyncOutcome::Merged => writeln!(out, "{name} now has all of {}", tree.target),
    }
}
