//! `weald land`

mod told;

use clap::{Args, ValueEnum};
use weald_app::landing::{Beside, Mode, work_landings};
use weald_app::{Ask, LandWish};
use weald_app::{CommitScope, Failure, Ground, LandRequest, Landings, OnConflict};
use weald_core::id::{LandingId, TaskId, Token};
use weald_core::landing::{Landing, Strategy};
use weald_sandbox::{catch_hangup, catch_interrupts};

use super::inside::{Inside, field};
use crate::completion;
use crate::context::Context;

use told::told_all;
pub use told::{answer, answer_one, short, told_kept_changes, told_signature};

/// Test and merge worktrees into their target branch
///
/// Queues the worktrees and works the queue, or waits for the process that does. Each one is merged onto the target's tip
/// and that exact result is tested; then the target moves together with your checkout of it. A conflict (exit 3) or a failed
/// test (exit 1) changes nothing.
///
/// Several worktrees land in the order of their tasks' dependencies. Outside a worktree and without a name, works the queue.
#[derive(Args)]
pub struct Land {
    /// Worktrees or tasks (default: the current worktree)
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
    /// Land even if its task, report or phase is not ready; recorded
    #[arg(long)]
    force: bool,
    /// After a conflict, drop the remaining ones from the queue
    #[arg(long)]
    stop_on_conflict: bool,
    /// On a conflict, abort or leave it in the target's checkout
    #[arg(long, value_enum, value_name = "WHAT", default_value = "abort")]
    on_conflict: OnConflictArg,
    /// Commit tracked changes first, or all including untracked files
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, default_missing_value = "tracked", require_equals = true)]
    commit: Option<CommitArg>,
    /// Message of that commit (default: Work in progress)
    #[arg(long, short, value_name = "TEXT", requires = "commit")]
    message: Option<String>,
    /// Report for the task that this completes
    #[arg(long, value_name = "TEXT", conflicts_with = "dry_run")]
    report: Option<String>,
    /// Claim token of its task (default: $WEALD_TOKEN if $WEALD_TASK is that task)
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
        let ground = context.landing_ground()?;
        ground.warn_of_settings(context);
        if self.force {
            context.refuse_agent("--force")?;
        }
        let request = self.request(context, &ground)?;
        if self.dry_run {
            let trees = ground.trees(context)?;
            let found = Landings::new(&trees).dry_run(&request)?;
            return answer(context, &ground, &found, &Beside::default());
        }
        match self.no_wait {
            true => context.refuse_lost_settings()?,
            false => {
                context.refuse_settings_of_others(&ground.trees(context)?)?;
                catch_interrupts();
                catch_hangup();
            }
        }
        let ids = match self.names.is_empty() && ground.place.inside().is_none() {
            true => Vec::new(),
            false => {
                let progress = context.stage("importing the commits");
                let queued = Landings::new(&ground.trees(context)?).queue_landings(&request)?;
                drop(progress);
                queued.iter().map(|landing| landing.id).collect()
            }
        };
        if self.no_wait {
            return finish(context, ground, &ids, &request, Mode::Queue);
        }
        finish(context, ground, &ids, &request, Mode::Work)
    }

    /// The same from inside a tree: its own commits, as configured; the tree stays.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let tree = match &self.names[..] {
            [] => None,
            [name] => Some(name.clone()),
            _ => return Err(Failure::not_allowed_inside()),
        };
        let is_left = matches!(self.on_conflict, OnConflictArg::Leave);
        if is_left || self.commit.is_some() || self.force {
            return Err(Failure::not_allowed_inside());
        }
        let wish = LandWish {
            tree,
            strategy: self.strategy.map(StrategyArg::as_strategy),
            report: self.report,
            dry_run: self.dry_run,
            no_wait: self.no_wait,
        };
        let reply = inside.ask_as(None, self.token, Ask::Land(wish))?;
        let landings: Vec<Landing> = field(&reply, "landings")?;
        inside.print(&reply, |out| told_all(out, &landings, &Beside::default()))
    }

    fn request(&self, context: &Context<'_>, ground: &Ground) -> Result<LandRequest, Failure> {
        Ok(LandRequest {
            names: self.names.clone(),
            strategy: self.strategy.map(StrategyArg::as_strategy),
            no_wait: self.no_wait,
            keep: self.keep,
            interim: false,
            force: self.force,
            by_agent: context.agent_above(&ground.engine)?.is_some(),
            stop_on_conflict: self.stop_on_conflict,
            on_conflict: match self.on_conflict {
                OnConflictArg::Abort => OnConflict::Abort,
                OnConflictArg::Leave => OnConflict::Leave,
            },
            token: self.claim(context, ground)?,
            report: self.report.clone(),
            commit: self.commit.map(|what| {
                let scope = match what {
                    CommitArg::Tracked => CommitScope::Tracked,
                    CommitArg::All => CommitScope::All,
                };
                let words = self.message.clone();
                (
                    scope,
                    words.unwrap_or_else(|| "Work in progress".to_owned()),
                )
            }),
        })
    }

    /// The claim that the caller works under.
    fn claim(
        &self,
        context: &Context<'_>,
        ground: &Ground,
    ) -> Result<Option<(TaskId, Token)>, Failure> {
        let task = match (self.token, &self.names[..]) {
            (Some(_), [name]) => ground.trees(context)?.named(Some(name))?.task,
            _ => context
                .environment
                .get("WEALD_TASK")
                .and_then(|id| id.parse().ok()),
        };
        let token = task
            .as_ref()
            .and_then(|task| context.token(task, self.token));
        Ok(task.zip(token))
    }
}

/// Works the queue until `ids` have ended, and answers what became of them.
pub fn finish(
    context: &Context<'_>,
    ground: Ground,
    ids: &[LandingId],
    request: &LandRequest,
    mode: Mode,
) -> Result<u8, Failure> {
    let worked = work_landings(context, ground, ids, request, mode)?;
    let code = answer(context, &worked.ground, &worked.landings, &worked.beside)?;
    Ok(worked.exit.unwrap_or(code))
}
