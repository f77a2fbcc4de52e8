//! `weald task bind` and `weald task unbind`

use std::io::Write;

use clap::Args;
use weald_app::{Binding, Failure, TreeError};
use weald_core::binding::BindRefusal;
use weald_core::id::TaskId;
use weald_core::name::SessionName;

use super::print_line;
use crate::completion;
use crate::context::Context;
use crate::ui::Fields;

/// Bind a task to a worktree
///
/// The status of the task changes only with --start, --owner or bind_advances.
#[derive(Args)]
pub struct Bind {
    /// The task
    #[arg(value_name = "ID", add = completion::tasks())]
    id: TaskId,
    /// The worktree
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
    /// The task
    #[arg(value_name = "ID", add = completion::tasks())]
    id: TaskId,
}

impl Bind {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let how = Binding {
            start: self.start,
            owner: self.owner,
            rebind: self.rebind,
        };
        let bound = ground.trees(context)?.bind(&self.id, &self.tree, how);
        let task = bound.map_err(|error| {
            use BindRefusal::{TaskBound, TreeBound};
            let is_bound = matches!(error, TreeError::Bind(TaskBound { .. } | TreeBound { .. }));
            let failure = Failure::from(error);
            match is_bound {
                true => failure.hint(format!(
                    "to replace the old binding: weald task bind {} {} --rebind",
                    self.id, self.tree
                )),
                false => failure,
            }
        })?;
        context.tell(&ground.engine);
        let tree = ground.trees(context)?.named(Some(&self.tree))?;
        context.ui.answer(
            || Fields::new().with("task", &task),
            |out| {
                print_line(out, &task)?;
                writeln!(
                    out,
                    "  bound to {} ({}); work in {}",
                    tree.name,
                    tree.branch,
                    tree.path.display()
                )
            },
        )
    }
}

impl Unbind {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let before = ground.engine.task(&self.id)?.task.worktree;
        let task = ground.trees(context)?.unbind(&self.id)?;
        context.tell(&ground.engine);
        context.ui.answer(
            || Fields::new().with("task", &task),
            |out| {
                print_line(out, &task)?;
                match &before {
                    Some(tree) => writeln!(out, "  no longer bound to {tree}; {tree} is kept"),
                    None => Ok(()),
                }
            },
        )
    }
}
