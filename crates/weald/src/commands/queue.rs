//! `weald queue …`

use std::io::{self, Write};

use clap::{Args, Subcommand};
use weald_app::landing::{Mode, as_json};
use weald_app::operations::Operation;
use weald_app::operations::queue::{QueueLog, QueueStatus, Queued};
use weald_app::{Failure, LandRequest, Landings};
use weald_core::Timestamp;
use weald_core::id::LandingId;
use weald_core::landing::LandingStatus;
use weald_sandbox::{catch_hangup, catch_interrupts};

use super::land::finish;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Fields, Out, ago, clean, paint};

/// Show the merge queue; pause, drop or retry landings
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct QueueArgs {
    #[command(subcommand)]
    command: Option<QueueCommand>,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum QueueCommand {
    Status(Status),
    Pause(Pause),
    Resume(Resume),
    Drop(Drop),
    Retry(Retry),
    Recover(Recover),
    Log(Log),
}

/// Show queued landings and the process that works on them
#[derive(Args, Default)]
struct Status {
    /// Include ended landings, newest first
    #[arg(long)]
    all: bool,
    /// Maximum number of landings
    #[arg(long, value_name = "N", requires = "all")]
    limit: Option<usize>,
}

/// Pause the queue until `weald queue resume`
#[derive(Args)]
struct Pause {
    /// Reason to show to waiting processes
    #[arg(long, value_name = "TEXT", default_value = "paused by hand")]
    reason: String,
}

/// Resume the queue and land its entries
#[derive(Args)]
struct Resume {
    /// Lift the pause without landing anything
    #[arg(long)]
    no_work: bool,
}

/// Remove a landing from the queue and keep its worktree
#[derive(Args)]
struct Drop {
    /// Landing number, as listed by `weald queue status --all`
    #[arg(value_name = "LANDING")]
    landing: LandingId,
}

/// Retry a failed landing with the worktree's current state
#[derive(Args)]
struct Retry {
    /// Landing number, as listed by `weald queue status --all`
    #[arg(value_name = "LANDING")]
    landing: LandingId,
}

/// Recover a landing whose process is gone
///
/// Use it only if you know that the process has ended; weald could not find out.
#[derive(Args)]
struct Recover {
    /// The landing
    #[arg(value_name = "LANDING")]
    landing: LandingId,
}

/// Print the test output of a landing
#[derive(Args)]
struct Log {
    /// Landing number, as listed by `weald queue status --all`
    #[arg(value_name = "LANDING")]
    landing: LandingId,
}

impl QueueArgs {
    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self.command {
            None => Status::default().run(context),
            Some(QueueCommand::Status(command)) => command.run(context),
            Some(QueueCommand::Pause(command)) => command.run(context),
            Some(QueueCommand::Resume(command)) => command.run(context),
            Some(QueueCommand::Drop(command)) => command.run(context),
            Some(QueueCommand::Retry(command)) => command.run(context),
            Some(QueueCommand::Recover(command)) => command.run(context),
            Some(QueueCommand::Log(command)) => command.run(context),
        }
    }
}

impl QueueArgs {
    /// Whether it changes nothing.
    pub fn only_reads(&self) -> bool {
        match &self.command {
            None | Some(QueueCommand::Status(_)) => QueueStatus::READS,
            Some(QueueCommand::Log(_)) => QueueLog::READS,
            Some(_) => false,
        }
    }
}

impl Status {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(QueueStatus {
            all: self.all,
            limit: self.limit,
        })?;
        let now = context.now();
        context.ui.show(&answer, |out| told(out, &answer, now))
    }
}

fn told(out: &mut Out, queue: &Queued, now: Timestamp) -> io::Result<()> {
    if let Some(paused) = &queue.paused {
        writeln!(
            out,
            "paused: {} {}",
            clean(&paused.reason),
            paint(DIM, "(to resume: weald queue resume)")
        )?;
    }
    if let Some(holder) = &queue.holder {
        let who = holder.session.as_ref().map(|name| format!(" for {name}"));
        writeln!(
            out,
            "process {}{} is running it",
            holder.process.pid,
            who.unwrap_or_default()
        )?;
    }
    if queue.landings.is_empty() {
        return writeln!(out, "nothing is waiting to land");
    }
    for landing in &queue.landings {
        writeln!(
            out,
            "{:>4}  {:<15}  {} -> {}  {}",
            landing.id,
            landing.status.as_str(),
            paint(ACCENT, &landing.tree),
            landing.target,
            paint(DIM, ago(now, landing.updated_at))
        )?;
    }
    Ok(())
}

impl Pause {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let queue = Landings::new(&ground.trees(context)?).pause_queue(&self.reason)?;
        context.tell(&ground.engine);
        context.ui.answer(
            || Fields::new().with("paused", &queue.paused),
            |out| writeln!(out, "nothing lands until: weald queue resume"),
        )
    }
}

impl Resume {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        catch_interrupts();
        catch_hangup();
        let ground = context.landing_ground()?;
        Landings::new(&ground.trees(context)?).resume_queue()?;
        let mode = match self.no_work {
            true => Mode::Queue,
            false => Mode::Work,
        };
        finish(context, ground, &[], &LandRequest::default(), mode)
    }
}

impl Drop {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let dropped = Landings::new(&ground.trees(context)?).drop_landing(self.landing)?;
        context.tell(&ground.engine);
        context.ui.answer(
            || Fields::new().with("landing", &as_json(&dropped)),
            |out| {
                let tree = paint(ACCENT, &dropped.tree);
                writeln!(
                    out,
                    "{tree} was removed from the queue; the worktree is kept"
                )
            },
        )
    }
}

impl Retry {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        catch_interrupts();
        catch_hangup();
        let ground = context.landing_ground()?;
        let queued = Landings::new(&ground.trees(context)?).retry_landing(self.landing)?;
        finish(
            context,
            ground,
            &[queued.id],
            &LandRequest::default(),
            Mode::Work,
        )
    }
}

impl Recover {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let landing = Landings::new(&ground.trees(context)?).recover_by_hand(self.landing)?;
        context.tell(&ground.engine);
        context.ui.answer(
            || Fields::new().with("landing", &as_json(&landing)),
            |out| match landing.status {
                LandingStatus::Landed => writeln!(
                    out,
                    "{} has it: {} landed",
                    landing.target,
                    paint(ACCENT, &landing.tree)
                ),
                _ => writeln!(
                    out,
                    "it was undone and is queued again; to continue: weald land {}",
                    landing.tree
                ),
            },
        )
    }
}

impl Log {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(QueueLog {
            landing: self.landing,
        })?;
        context.ui.show(&answer, |out| {
            let mut lines = answer.text.lines();
            lines.try_for_each(|line| writeln!(out, "{}", clean(line)))
        })
    }
}
