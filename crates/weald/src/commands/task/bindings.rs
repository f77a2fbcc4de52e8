//! `weald task bind`, `weald task unbind` and `weald task closeout`

use std::io::Write;

use clap::{Args, ValueEnum};
use weald_app::Failure;
use weald_app::operations::Caller;
use weald_app::operations::bindings::{BindTask, CloseTask, Closing, UnbindTask};
use weald_core::id::Token;
use weald_core::meant::Word;
use weald_core::name::SessionName;

use super::{print_line, print_task};
use crate::completion;
use crate::context::Context;

/// Bind a task to a worktree
///
/// The status of the task changes only with --start, --owner or bind_advances.
#[derive(Args)]
pub struct Bind {
    /// Task ID, or its worktree, agent, branch or path
    #[arg(value_name = "ID", add = completion::tasks())]
    id: Word,
    /// Worktree, task, agent, branch or path
    #[arg(value_name = "TREE", add = completion::trees())]
    tree: String,
    /// Start the task if it is pending
    #[arg(long)]
    start: bool,
    /// Start the task for this session
    #[arg(long, value_name = "SESSION", add = completion::sessions())]
    owner: Option<SessionName>,
    /// Replace existing bindings of both
    #[arg(long)]
    rebind: bool,
}

/// Unbind a task from its worktree
#[derive(Args)]
pub struct Unbind {
    /// Task ID, or its worktree, agent, branch or path
    #[arg(value_name = "ID", add = completion::tasks())]
    id: Word,
}

/// Keep or remove a task's worktree and record the reason
#[derive(Args)]
pub struct Closeout {
    /// Task ID, or its worktree, agent, branch or path
    #[arg(value_name = "ID", add = completion::tasks())]
    id: Word,
    /// Keep the worktree, or move it to the trash
    #[arg(value_name = "WHAT")]
    action: Action,
    /// Reason to record
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Also complete the task
    #[arg(long)]
    complete_task: bool,
    /// Claim token of the task (default: $WEALD_TOKEN)
    ///
    /// $WEALD_TOKEN counts only if $WEALD_TASK is this task.
    #[arg(long, value_name = "N")]
    token: Option<Token>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Action {
    Keep,
    Remove,
}

impl Bind {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(BindTask {
            id: self.id,
            tree: self.tree,
            start: self.start,
            owner: self.owner,
            rebind: self.rebind,
        })?;
        context.ui.show(&answer, |out| {
            print_line(out, &answer.task)?;
            let Some(tree) = &answer.tree else {
                return Ok(());
            };
            writeln!(
                out,
                "  bound to {} ({}); work in {}",
                tree.name,
                tree.branch,
                tree.path.display()
            )
        })
    }
}

impl Unbind {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(UnbindTask { id: self.id })?;
        context.ui.show(&answer, |out| {
            print_line(out, &answer.task)?;
            match &answer.before {
                Some(tree) => writeln!(out, "  no longer bound to {tree}; {tree} is kept"),
                None => Ok(()),
            }
        })
    }
}

impl Closeout {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let caller = Caller {
            token: self.token,
            ..Caller::default()
        };
        let request = CloseTask {
            id: self.id,
            closing: match self.action {
                Action::Keep => Closing::Keep,
                Action::Remove => Closing::Remove,
            },
            reason: self.reason,
            complete: self.complete_task,
        };
        print_task(context, &context.perform_as(&caller, request)?)
    }
}
