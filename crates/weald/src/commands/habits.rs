//! What people of other systems type. It works as far as it can, and the hint names the command of ours.

use clap::{Args, Subcommand};
use weald_core::id::TaskId;
use weald_core::name::TreeName;

use super::{land, list, new, resume, rm};
use crate::context::{Context, Ground};
use crate::errors::Failure;
use crate::exit;

/// Commands under the names of other systems; none is shown in the help.
#[derive(Subcommand)]
pub enum Habit {
    /// Make a tree: `weald new`
    #[command(hide = true)]
    Create(new::New),
    /// Put a tree into the trash: `weald rm`
    #[command(hide = true)]
    Remove(rm::Rm),
    /// Bring trees' commits to their target: `weald land`
    #[command(hide = true)]
    Merge(land::Land),
    /// Go on with a task: `weald resume`
    #[command(hide = true)]
    Implement(resume::Resume),
    /// See trees: `weald list`; clean up: `weald rm`
    #[command(hide = true, subcommand)]
    Worktrees(Worktrees),
}

/// `worktrees …`
#[derive(Subcommand)]
pub enum Worktrees {
    List(list::List),
    Cleanup(Cleanup),
}

/// Remove worktrees that are done with: one at a time, by `weald rm`
#[derive(Args)]
pub struct Cleanup {
    /// A tree or a task
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Also with changes; here that is `weald rm NAME --discard`
    #[arg(long)]
    force: bool,
}

impl Habit {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::Create(command) => {
                context.ui.note("weald create is weald new");
                command.run(context)
            }
            Self::Remove(command) => {
                context.ui.note("weald remove is weald rm");
                command.run(context)
            }
            Self::Merge(command) => {
                context.ui.note("weald merge is weald land");
                command.run(context)
            }
            Self::Implement(command) => {
                context.ui.note("weald implement is weald resume");
                command.run(context)
            }
            Self::Worktrees(Worktrees::List(command)) => {
                context.ui.note("weald worktrees list is weald list");
                command.run(context)
            }
            Self::Worktrees(Worktrees::Cleanup(command)) => command.run(context),
        }
    }
}

impl Cleanup {
    /// Removes nothing: which tree goes is said by name.
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let Some(id) = self.id else {
            return Err(refusal("weald list, then weald rm NAME".to_owned()));
        };
        let ground = context.ground()?;
        let name = tree_of(context, &ground, &id)?;
        let discard = if self.force { " --discard" } else { "" };
        Err(refusal(format!("weald rm {name}{discard}")))
    }
}

fn refusal(hint: String) -> Failure {
    let told = "nothing was removed: weald removes a tree when it is named";
    Failure::new("name_it", exit::REFUSED, told).hint(hint)
}

/// The tree that is called so, or the tree of the task that is.
fn tree_of(context: &Context<'_>, ground: &Ground, id: &str) -> Result<TreeName, Failure> {
    let by_name = ground.trees(context)?.named(Some(id));
    let task = id.parse::<TaskId>().ok();
    let task = task.and_then(|id| ground.engine.task(&id).ok());
    match (by_name, task.and_then(|detail| detail.task.worktree)) {
        (Ok(tree), _) => Ok(tree.name),
        (Err(_), Some(bound)) => Ok(bound),
        (Err(error), None) => Err(error.into()),
    }
}
