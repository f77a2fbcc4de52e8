//! `weald pool …`

use std::io::{self, Write};

use clap::{Args, Subcommand};
use weald_app::operations::pool::{DrainPool, FillPool, ShowPool};
use weald_app::{Failure, PoolStatus};

use crate::context::Context;
use crate::ui::Out;

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
    /// Number of spares; 0 is only the donor (default: pool.size)
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Set when weald runs this in the background
    #[arg(long, hide = true, conflicts_with = "count")]
    background: bool,
}

/// Delete the spares and the donor, but no worktrees
#[derive(Args)]
pub struct Drain {}

impl Default for Pool {
    fn default() -> Self {
        Self::Status(Status {})
    }
}

impl Pool {
    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = match self {
            Self::Status(Status {}) => context.perform(ShowPool {})?,
            Self::Fill(fill) => {
                if fill.background {
                    context.step_back();
                }
                context.perform(FillPool {
                    count: fill.count,
                    unless_busy: fill.background,
                })?
            }
            Self::Drain(Drain {}) => context.perform(DrainPool {})?,
        };
        context.ui.show(&answer, |out| told(out, &answer.pool))
    }
}

fn told(out: &mut Out, status: &PoolStatus) -> io::Result<()> {
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
}
