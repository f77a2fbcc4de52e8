//! `weald queue …`

use std::io::{self, Write};

use clap::{Args, Subcommand};
use serde_json::Value;
use weald_app::landing::as_json;
use weald_app::operations::Caller;
use weald_app::operations::landing::{
    DropLanding, PauseQueue, RecoverLanding, ResumeQueue, RetryLanding, ShowLandingLog,
};
use weald_app::{Failure, Landings};
use weald_core::id::LandingId;
use weald_core::landing::{Landing, LandingStatus};
use weald_core::queue::Queue;

use super::land;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Fields, Out, ago, clean, paint};

/// How many landings `--all` shows unless told otherwise.
const SHOWN: usize = 50;

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
        let reads = |command: &QueueCommand| {
            matches!(command, QueueCommand::Status(_) | QueueCommand::Log(_))
        };
        self.command.as_ref().is_none_or(reads)
    }
}

impl Status {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let mut view = Landings::new(&trees).queue()?;
        let holder = view.queue.holder.take();
        view.queue.holder = holder.filter(|holder| !Landings::new(&trees).is_gone(holder));
        let shown = match self.all {
            true => Landings::new(&trees).landings(self.limit.unwrap_or(SHOWN))?,
            false => view.open,
        };
        let list: Vec<Value> = shown.iter().map(as_json).collect();
        context.ui.answer(
            || {
                Fields::new()
                    .with("queue", &list)
                    .with("holder", &view.queue.holder)
                    .with("paused", &view.queue.paused)
            },
            |out| told(out, context, &view.queue, &shown),
        )
    }
}

fn told(
    out: &mut Out,
    context: &Context<'_>,
    queue: &Queue,
    landings: &[Landing],
) -> io::Result<()> {
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
    if landings.is_empty() {
        return writeln!(out, "nothing is waiting to land");
    }
    for landing in landings {
        writeln!(
            out,
            "{:>4}  {:<15}  {} -> {}  {}",
            landing.id,
            landing.status.as_str(),
            paint(ACCENT, &landing.tree),
            landing.target,
            paint(DIM, ago(context.now(), landing.updated_at))
        )?;
    }
    Ok(())
}

impl Pause {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let reason = self.reason;
        let answer = context.perform(PauseQueue { reason })?;
        context.ui.show(&answer, |out| {
            writeln!(out, "nothing lands until: weald queue resume")
        })
    }
}

impl Resume {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let no_work = self.no_work;
        land::answer(context, &Caller::default(), ResumeQueue { no_work })
    }
}

impl Drop {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let landing = self.landing;
        let answer = context.perform(DropLanding { landing })?;
        context.ui.show(&answer, |out| {
            let tree = paint(ACCENT, &answer.landing.landing.tree);
            writeln!(
                out,
                "{tree} was removed from the queue; the worktree is kept"
            )
        })
    }
}

impl Retry {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let landing = self.landing;
        land::answer(context, &Caller::default(), RetryLanding { landing })
    }
}

impl Recover {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let landing = self.landing;
        let answer = context.perform(RecoverLanding { landing })?;
        let landing = &answer.landing.landing;
        context.ui.show(&answer, |out| match landing.status {
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
        })
    }
}

impl Log {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let landing = self.landing;
        let answer = context.perform(ShowLandingLog { landing })?;
        context.ui.show(&answer, |out| {
            let mut lines = answer.text.lines();
            lines.try_for_each(|line| writeln!(out, "{}", clean(line)))
        })
    }
}
