//! `weald rm`

use std::io::{self, Write};

use clap::{ArgAction, Args};
use weald_app::operations::Caller;
use weald_app::operations::keeping::{RemoveTree, RemovedTree};
use weald_app::{BranchOutcome, Failure};
use weald_core::id::Token;

use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Out, paint};

/// Move a worktree to the trash
///
/// Refused if the worktree has uncommitted changes or unlanded commits, or if that is unknown. Nothing is deleted:
/// `weald restore` brings it back.
#[derive(Args)]
pub struct Rm {
    /// Worktree, task, agent, branch or path
    #[arg(value_name = "NAME", add = completion::trees())]
    name: String,
    /// Remove it even with uncommitted changes or unlanded commits
    #[arg(long)]
    discard: bool,
    /// Remove even if referenced; repeat to override a lock
    ///
    /// A worktree with a running process is never removed.
    #[arg(long, action = ArgAction::Count)]
    force: u8,
    /// Also complete its task
    #[arg(long)]
    complete_task: bool,
    /// Claim token of its task (default: $WEALD_TOKEN)
    ///
    /// $WEALD_TOKEN counts only if $WEALD_TASK is that task.
    #[arg(long, value_name = "N", requires = "complete_task")]
    token: Option<Token>,
    /// Reason to record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Rm {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let caller = Caller {
            token: self.token,
            ..Caller::default()
        };
        let request = RemoveTree {
            tree: self.name,
            discard: self.discard,
            force: self.force,
            complete_task: self.complete_task,
            reason: self.reason,
        };
        let answer = context.perform_as(&caller, request)?;
        context.ui.show(&answer, |out| told(out, &answer))
    }
}

fn told(out: &mut Out, removed: &RemovedTree) -> io::Result<()> {
    let tree = &removed.tree.tree;
    match &tree.trash {
        Some(trash) => writeln!(
            out,
            "{} is in the trash: {}",
            paint(ACCENT, &tree.name),
            trash.path.display()
        )?,
        None => writeln!(
            out,
            "{}'s directory was already gone; removed its record",
            paint(ACCENT, &tree.name)
        )?,
    }
    if removed.ignored > 0 {
        writeln!(out, "  with {} ignored files or folders", removed.ignored)?;
    }
    match removed.branch {
        BranchOutcome::Deleted => writeln!(
            out,
            "  branch {} is deleted; its tip is in the vault",
            tree.branch
        )?,
        BranchOutcome::KeptUnmerged => writeln!(
            out,
            "  branch {} is kept: {} lacks its commits",
            tree.branch, tree.target
        )?,
        BranchOutcome::KeptByPolicy => writeln!(out, "  branch {} is kept", tree.branch)?,
        BranchOutcome::Absent => {}
    }
    if let Some(task) = &removed.task {
        writeln!(out, "  task {} is {}", task.id, task.status)?;
    }
    match removed.restore.is_some() {
        true => writeln!(out, "  restore it: weald restore {}", tree.id),
        false => Ok(()),
    }
}
