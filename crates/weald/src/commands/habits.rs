//! What people of other systems type. It works as far as it can, and the hint names the command of ours.

use clap::{Args, Subcommand};
use weald_app::Failure;
use weald_core::SignedDuration;
use weald_core::name::TreeName;

use super::clean::Clean;
use super::{land, list, new, resume, rm};
use crate::cli::age;
use crate::context::Context;

/// Commands under the names of other systems; none is shown in the help.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Habit {
    #[command(hide = true, after_help = "Same as: weald new")]
    Create(new::New),
    #[command(hide = true, after_help = "Same as: weald rm")]
    Remove(rm::Rm),
    #[command(hide = true, after_help = "Same as: weald land")]
    Merge(land::Land),
    #[command(hide = true, after_help = "Same as: weald resume")]
    Implement(resume::Resume),
    /// List worktrees (`weald list`) or clean up (`weald clean`)
    #[command(hide = true, subcommand)]
    Worktrees(Worktrees),
    #[command(hide = true)]
    CleanupMerged(CleanupMerged),
}

/// `worktrees …`
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Worktrees {
    List(list::List),
    Cleanup(Cleanup),
}

/// What `weald clean` takes. Other systems take a merged worktree at once, so no age is asked for.
#[derive(Args)]
pub struct CleanWishes {
    /// Move the listed worktrees to the trash
    #[arg(long)]
    apply: bool,
    /// Minimum time unused
    #[arg(long, value_name = "DURATION", value_parser = age, default_value = "0")]
    min_age: SignedDuration,
    /// Also drop stale records and trash leftover directories
    ///
    /// Needs --apply.
    #[arg(long)]
    orphans: bool,
    /// Fetch the target's remote first, so that merges there count
    #[arg(long)]
    fetch: bool,
}

impl CleanWishes {
    fn clean(self, tree: Option<String>) -> Clean {
        Clean {
            apply: self.apply,
            min_age: Some(self.min_age),
            orphans: self.orphans,
            fetch: self.fetch,
            tree,
            ..Clean::default()
        }
    }
}

/// List worktrees to clean up, or trash them: `weald clean`
#[derive(Args)]
pub struct Cleanup {
    /// A worktree or task (default: all)
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Has no effect; to drop changes, use `weald rm NAME --discard`
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    wishes: CleanWishes,
}

/// List merged worktrees, or trash them: `weald clean`
#[derive(Args)]
pub struct CleanupMerged {
    #[command(flatten)]
    wishes: CleanWishes,
}

impl Habit {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::Create(command) => {
                context.note("weald create is weald new");
                command.run(context)
            }
            Self::Remove(command) => {
                context.note("weald remove is weald rm");
                command.run(context)
            }
            Self::Merge(command) => {
                context.note("weald merge is weald land");
                command.run(context)
            }
            Self::Implement(command) => {
                context.note("weald implement is weald resume");
                command.run(context)
            }
            Self::Worktrees(Worktrees::List(command)) => {
                context.note("weald worktrees list is weald list");
                command.run(context)
            }
            Self::Worktrees(Worktrees::Cleanup(command)) => command.run(context),
            Self::CleanupMerged(command) => {
                context.note("weald cleanup-merged is weald clean");
                command.wishes.clean(None).run(context)
            }
        }
    }
}

impl Cleanup {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        context.note("weald worktrees cleanup is weald clean");
        if self.force {
            let id = self.id.as_ref();
            let tree = id.map(|id| context.tree_to_clean(id)).transpose()?;
            let name = tree.as_ref().map_or("NAME", TreeName::as_str);
            context.warn(&format!(
                "--force has no effect here; to remove a worktree with its changes: weald rm {name} --discard"
            ));
        }
        self.wishes.clean(self.id).run(context)
    }
}
