//! `weald queue …`

use std::io::{self, Write};
use std::time::Duration;

use anstyle::Style;
use clap::{Args, Subcommand};
use weald_app::operations::landing::{
    DropLanding, LandingView, PauseQueue, RecoverLanding, ResumeQueue, RetryLanding,
};
use weald_app::operations::queue::{FollowQueueLog, QueueLog, QueueStatus, Queued};
use weald_app::operations::{Caller, Operation};
use weald_app::{Failure, exit};
use weald_core::Timestamp;
use weald_core::landing::{Landing, LandingStatus};
use weald_core::meant::Word;

use super::land;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Out, Table, ago, clean, joined, paint, took, wrapped};

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
    #[command(hide = true, after_help = "Now: weald doctor --recover LANDING")]
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
    /// Landing number, or a worktree or task: its latest landing
    #[arg(value_name = "LANDING")]
    landing: Word,
}

/// Retry a failed landing with the worktree's current state
#[derive(Args)]
struct Retry {
    /// Landing number, or a worktree or task: its latest landing
    #[arg(value_name = "LANDING")]
    landing: Word,
}

/// Recover a landing whose process is gone
///
/// Use it only if you know that the process has ended; weald could not find out.
#[derive(Args)]
pub struct Recover {
    /// Landing number, or a worktree or task: its latest landing
    #[arg(value_name = "LANDING")]
    pub landing: Word,
}

/// Print the test output of a landing, also while it is tested
#[derive(Args)]
#[command(after_help = "Examples:\n  weald queue log -f\n  weald queue log 12")]
struct Log {
    /// Landing number, worktree or task (default: the newest log)
    #[arg(value_name = "LANDING")]
    landing: Option<Word>,
    /// Keep printing until the landing ends
    #[arg(long, short)]
    follow: bool,
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
        context.ui.show(&answer, |out| {
            told(out, &answer, now)?;
            match answer.queue.is_empty() && !self.all {
                true => writeln!(
                    out,
                    "{}",
                    paint(DIM, "(ended landings: weald queue status --all)")
                ),
                false => Ok(()),
            }
        })
    }
}

fn told(out: &mut Out, queue: &Queued, now: Timestamp) -> io::Result<()> {
    if let Some(paused) = &queue.paused {
        let reason = format!("paused: {}", paused.reason);
        writeln!(out, "{}", wrapped(&reason, 2))?;
        writeln!(out, "  {}", paint(DIM, "to resume: weald queue resume"))?;
    }
    if let Some(holder) = &queue.holder {
        let who = holder.session.as_ref().map(|name| format!(" ({name})"));
        writeln!(
            out,
            "process {}{} is working the queue",
            holder.process.pid,
            who.unwrap_or_default()
        )?;
    }
    if queue.queue.is_empty() {
        return writeln!(out, "nothing is waiting to land");
    }
    let mut table = Table::new(&["LANDING", "STATUS", "TESTS", "AGE", "TARGET", "WORKTREE"]);
    for LandingView { landing, .. } in &queue.queue {
        let plain = |text: String| (text, Style::new());
        table.row(vec![
            plain(landing.id.to_string()),
            plain(landing.status.as_str().replace('_', " ")),
            plain(tests(landing, now)),
            (ago(landing.queued_at, now), DIM),
            plain(landing.target.clone()),
            (worktree(landing), ACCENT),
        ]);
    }
    table.print(out)
}

/// How long its tests took, or have been running.
fn tests(landing: &Landing, now: Timestamp) -> String {
    match (&landing.gate, landing.status) {
        (_, LandingStatus::Testing) => took(now.duration_since(landing.updated_at).unsigned_abs()),
        (Some(gate), _) if gate.cached => "cached".to_owned(),
        (Some(gate), _) => took(Duration::from_millis(gate.took_ms)),
        (None, _) => "-".to_owned(),
    }
}

/// Its worktree, with what is special about the landing.
fn worktree(landing: &Landing) -> String {
    let reverts = landing.reverts.map(|of| format!("reverts {of}"));
    let reverted = landing.reverted_by.map(|by| format!("reverted by {by}"));
    let reason = landing.reason.as_ref();
    let reason = reason.map(|reason| joined(&reason.message));
    let parts = [reverts, reverted, reason].into_iter().flatten();
    let notes: Vec<_> = parts.collect();
    match notes.is_empty() {
        true => landing.tree.to_string(),
        false => format!("{}: {}", landing.tree, notes.join("; ")),
    }
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
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
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
        if self.follow && context.ui.is_json() {
            let message = "-f can't be combined with --json here";
            return Err(Failure::new("usage", exit::USAGE, message)
                .hint("weald queue log -f without --json, or weald events -f --json"));
        }
        if self.follow {
            context.perform(FollowQueueLog { landing })?;
            return Ok(exit::DONE);
        }
        let answer = context.perform(QueueLog { landing })?;
        context.ui.show(&answer, |out| {
            let mut lines = answer.text.lines();
            lines.try_for_each(|line| writeln!(out, "{}", clean(line)))
        })
    }
}
