//! `weald pool …`

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use clap::{Args, Subcommand};
use rustix::process::{nice, setsid};
use weald_app::{Patience, PoolStatus, Trees};

use crate::context::Context;
use crate::errors::Failure;
use crate::ui::Fields;

/// See, fill or empty the pool that new trees come from.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Pool {
    Status(Status),
    Fill(Fill),
    Drain(Drain),
}

/// Say how many spares are ready, and for which commit
#[derive(Args)]
pub struct Status {}

/// Make the donor and the spares now, instead of in the background
///
/// Spares whose base moved are brought forward by what differs.
#[derive(Args)]
pub struct Fill {
    /// How many spares there should be (default: pool.size); 0 makes the donor alone
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// What a command in the background is told
    #[arg(long, hide = true, conflicts_with = "count")]
    background: bool,
}

/// Delete the spares and the donor; trees are not touched
#[derive(Args)]
pub struct Drain {}

impl Pool {
    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if let Self::Fill(Fill {
            background: true, ..
        }) = self
        {
            step_back(context);
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
                let progress = context.ui.progress("filling the pool");
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
                    _ => "the trees' file system has no place for it",
                };
                return writeln!(out, "there is no pool: {why}");
            };
            let base = status.base.as_deref().unwrap_or_default();
            let base = &base[..12.min(base.len())];
            writeln!(out, "{} of {} ready for {base}", status.ready, status.size)?;
            if status.behind > 0 {
                writeln!(
                    out,
                    "  {} behind: brought forward when taken",
                    status.behind
                )?;
            }
            let donor = if status.donor {
                "there"
            } else {
                "not made yet"
            };
            writeln!(out, "  donor {donor}")?;
            writeln!(out, "  in {}", path.display())
        },
    )
}

/// Fills the pool in the background, if it wants that. Nobody waits for it and nobody hears of it.
pub fn refill(context: &Context<'_>, trees: &Trees<'_>, root: &Path) {
    if trees.pool_wants_filling() {
        // What is not done costs time or room, nothing else.
        let _ = go_on_behind(context, root, &["pool", "fill", "--background"]);
    }
}

/// Starts weald again for what nobody waits for; it has to [`step_back`]. Answers whether it was started.
pub fn go_on_behind(context: &Context<'_>, root: &Path, args: &[impl AsRef<OsStr>]) -> bool {
    let Ok(helper) = context.helper() else {
        return false;
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "weald itself, to go on in the background"
    )]
    let mut command = std::process::Command::new(helper);
    let _ = weald_sandbox::keep_descriptors();
    command
        .args(args)
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .is_ok()
}

/// Out of the terminal's session, behind everybody else, and heard by nobody.
pub fn step_back(context: &Context<'_>) {
    context.news.go_behind();
    // Where that is refused it is a little louder.
    let _ = setsid();
    let _ = nice(19);
}
