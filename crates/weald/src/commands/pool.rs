//! `weald pool …`

use std::io::Write;

use clap::{Args, Subcommand};
use weald_app::{Failure, Patience, PoolStatus};

use crate::context::Context;
use crate::ui::Fields;

/// Show, fill or empty the pool of spare worktrees.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Pool {
    Status(Status),
    Fill(Fill),
    Drain(Drain),
}

/// Show how many spares are ready and for which commit
#[derive(Args)]
pub struct Status {}

/// Create the donor and the spares now
///
/// Otherwise weald does this in the background. Spares on an older base are updated by the difference.
#[derive(Args)]
pub struct Fill {
    /// Number of spares (default: pool.size); 0 creates only the donor
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Set when weald runs this in the background
    #[arg(long, hide = true, conflicts_with = "count")]
    background: bool,
}

/// Delete the spares and the donor, but no worktrees
#[derive(Args)]
pub struct Drain {}

impl Pool {
    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if let Self::Fill(Fill {
            background: true, ..
        }) = self
        {
            context.step_back();
        }
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let status = match self {
            Self::Status(_) => trees.pool_status()?,
            Self::Fill(fill) => {
                let patience = match fill.background {
                    true => Patience::LeaveIt,
                    false => Patience::Wait,
                };
                let progress = context.stage("filling the pool");
                let status = trees.fill_pool(fill.count, patience)?;
                drop(progress);
                status
            }
            Self::Drain(_) => trees.drain_pool()?,
        };
        print(context, &status)
    }
}

fn print(context: &Context<'_>, status: &PoolStatus) -> Result<u8, Failure> {
    context.ui.answer(
        || Fields::new().with("pool", status),
        |out| {
            let Some(path) = &status.path else {
                let why = match status.size {
                    0 => "pool.size is 0",
                    _ => "the worktrees' file system has no place for it",
                };
                return writeln!(out, "there is no pool: {why}");
            };
            let base = status.base.as_deref().unwrap_or_default();
            let base = &base[..12.min(base.len())];
            writeln!(out, "{} of {} ready for {base}", status.ready, status.size)?;
            if status.behind > 0 {
                writeln!(out, "  {} behind: updated when used", status.behind)?;
            }
            let donor = if status.donor {
                "there"
            } else {
                "not created yet"
            };
            writeln!(out, "  donor {donor}")?;
            writeln!(out, "  in {}", path.display())
        },
    )
}
