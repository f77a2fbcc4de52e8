//! `weald land`

mod told;

use clap::{Args, ValueEnum};
use weald_app::Failure;
use weald_app::operations::Caller;
use weald_app::operations::landing::LandTrees;
use weald_app::{CommitScope, OnConflict};
use weald_core::id::Token;
use weald_core::landing::Strategy;

use super::shell_init::Moves;
use crate::completion;
use crate::context::Context;

pub use told::{answer, told_one, told_red, told_signature};

/// Test and merge worktrees into their target branch
///
/// Queues the worktrees and works the queue, or waits for the process that does. Each one is merged onto the target's tip
/// and that exact result is tested; then the target moves together with your checkout of it. A conflict (exit 3) or a failed
/// test (exit 1) changes nothing.
///
/// Several worktrees land in the order of their tasks' dependencies. Outside a worktree and without a name, works the queue.
#[derive(Args)]
pub struct Land {
    /// Worktrees, tasks, agents, branches (default: current)
    #[arg(value_name = "NAME", add = completion::trees())]
    names: Vec<String>,
    /// How commits reach the target (default: landing.strategy)
    #[arg(long, value_enum)]
    strategy: Option<StrategyArg>,
    /// Queue and return; the next process on the queue lands it
    #[arg(long, conflicts_with_all = ["dry_run", "wait"])]
    no_wait: bool,
    /// Wait until it has landed (the default)
    #[arg(long)]
    wait: bool,
    /// Show the result without landing
    #[arg(long)]
    dry_run: bool,
    /// Keep the worktree, its branch and its record
    #[arg(long)]
    keep: bool,
    /// Land even if its task, report or phase is not ready
    #[arg(long)]
    force: bool,
    /// Drop the remaining ones from the queue after a conflict
    #[arg(long)]
    stop_on_conflict: bool,
    /// On a conflict, abort or leave it in the target's checkout
    #[arg(long, value_enum, value_name = "WHAT", default_value = "abort")]
    on_conflict: OnConflictArg,
    /// Commit changes first: tracked files, or all files
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, default_missing_value = "tracked", require_equals = true)]
    commit: Option<CommitArg>,
    /// Message of the landed commit; each further -m is a paragraph
    ///
    /// Without it, the message is that of the only commit, or else the task's subject with a list of the commits. With
    /// --commit, the commit made in the worktree gets it too. The strategies rebase and ff land commits as they are.
    #[arg(long, short, value_name = "TEXT")]
    message: Vec<String>,
    /// Report for the task that this completes
    #[arg(long, value_name = "TEXT", conflicts_with = "dry_run")]
    report: Option<String>,
    /// Claim token of its task (default: $WEALD_TOKEN)
    ///
    /// $WEALD_TOKEN counts only if $WEALD_TASK is that task.
    #[arg(long, value_name = "N")]
    token: Option<Token>,
}

#[derive(Clone, Copy, ValueEnum)]
enum StrategyArg {
    Squash,
    Merge,
    Rebase,
    Ff,
}

impl StrategyArg {
    fn as_strategy(self) -> Strategy {
        match self {
            Self::Squash => Strategy::Squash,
            Self::Merge => Strategy::Merge,
            Self::Rebase => Strategy::Rebase,
            Self::Ff => Strategy::Ff,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum CommitArg {
    Tracked,
    All,
}

#[derive(Clone, Copy, ValueEnum)]
enum OnConflictArg {
    Abort,
    Leave,
}

impl Land {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let caller = Caller {
            token: self.token,
            ..Caller::default()
        };
        let request = LandTrees {
            names: self.names,
            strategy: self.strategy.map(StrategyArg::as_strategy),
            no_wait: self.no_wait,
            dry_run: self.dry_run,
            keep: self.keep,
            force: self.force,
            stop_on_conflict: self.stop_on_conflict,
            at_conflict: match self.on_conflict {
                OnConflictArg::Abort => OnConflict::Abort,
                OnConflictArg::Leave => OnConflict::Leave,
            },
            commit: self.commit.map(|what| match what {
                CommitArg::Tracked => CommitScope::Tracked,
                CommitArg::All => CommitScope::All,
            }),
            message: (!self.message.is_empty()).then(|| self.message.join("\n\n")),
            report: self.report,
            leaves: Moves::is_possible(context),
        };
        answer(context, &caller, request)
    }
}
