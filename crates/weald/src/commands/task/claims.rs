//! A task's way from its claim to its end.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use weald_app::operations::Caller;
use weald_app::operations::claims::{ClaimTask, ClaimedTask, Move, MoveTask};
use weald_app::{Failure, Report};
use weald_core::agent::Verification;
use weald_core::id::Token;
use weald_core::meant::Word;
use weald_core::name::SessionName;
use weald_core::{SignedDuration, Timestamp};

use super::print_line;
use crate::cli::{SessionArg, duration};
use crate::completion;
use crate::context::Context;
use crate::ui::{Out, left};

/// Claim a task, or the next ready one
///
/// Prints the token that every later step needs.
#[derive(Args)]
pub struct Claim {
    /// Task ID, worktree or branch (default: the next ready one)
    #[arg(value_name = "ID", add = completion::tasks())]
    id: Option<Word>,
    /// Time before others may take over (default: lease.ttl)
    #[arg(long, value_name = "15m", value_parser = duration)]
    ttl: Option<SignedDuration>,
    /// Also create its worktree and make it your place of work
    #[arg(long)]
    with_tree: bool,
    #[command(flatten)]
    session: SessionArg,
}

impl Claim {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = ClaimTask {
            id: self.id,
            ttl: self.ttl,
            with_tree: self.with_tree,
        };
        let answer = context.perform_as(&self.session.caller(), request)?;
        context
            .ui
            .show(&answer, |out| print_claim(out, &answer, context.now()))
    }
}

fn print_claim(out: &mut Out, claimed: &ClaimedTask, now: Timestamp) -> io::Result<()> {
    let (task, lease) = (&claimed.task, &claimed.lease);
    print_line(out, task)?;
    writeln!(
        out,
        "claimed by {} with token {} ({})",
        lease.session,
        lease.token,
        left(lease.expires_at, now)
    )?;
    match claimed.is_known {
        true => writeln!(out, "finish it: weald task done {}", task.id)?,
        false => {
            let (id, token) = (&task.id, lease.token);
            writeln!(out, "finish it: weald task done {id} --token {token}")?;
        }
    }
    let tree = claimed.tree.as_ref().map(|view| &view.tree.path);
    match claimed.path.as_ref().or(tree) {
        Some(path) => writeln!(out, "work in {}", path.display()),
        None => Ok(()),
    }
}

/// Moves a task, and prints it.
fn moved(
    context: &Context<'_>,
    caller: &Caller,
    id: Option<Word>,
    to: Move,
) -> Result<u8, Failure> {
    let answer = context.perform_as(caller, MoveTask { id, to })?;
    context.ui.show(&answer, |out| {
        print_line(out, &answer.task)?;
        let mut unblocked = answer.unblocked.iter().flatten();
        unblocked.try_for_each(|id| writeln!(out, "now ready: {id}"))
    })
}

/// A task under a claim.
#[derive(Args)]
struct HeldTask {
    /// Task ID, worktree, agent or branch (default: $WEALD_TASK)
    #[arg(value_name = "ID", add = completion::tasks())]
    id: Option<Word>,
    /// Token of your claim (default: $WEALD_TOKEN)
    ///
    /// $WEALD_TOKEN counts only if $WEALD_TASK is this task. At a terminal, the default is the token of your own claim.
    #[arg(long, value_name = "N")]
    token: Option<Token>,
    #[command(flatten)]
    session: SessionArg,
}

impl HeldTask {
    fn moved(self, context: &Context<'_>, to: Move) -> Result<u8, Failure> {
        let caller = Caller {
            token: self.token,
            ..self.session.caller()
        };
        moved(context, &caller, self.id, to)
    }
}

/// Renew the claim on a task
///
/// Works even after the lease has expired, as long as nobody took over.
#[derive(Args)]
pub struct Renew {
    #[command(flatten)]
    held: HeldTask,
    /// Lease time from now on (default: lease.ttl)
    #[arg(long, value_name = "15m", value_parser = duration)]
    ttl: Option<SignedDuration>,
}

impl Renew {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        self.held.moved(context, Move::Renew { ttl: self.ttl })
    }
}

/// Release a claimed task
#[derive(Args)]
pub struct Release {
    #[command(flatten)]
    held: HeldTask,
}

impl Release {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        self.held.moved(context, Move::Release)
    }
}

/// Complete a task
///
/// Lists the tasks that became ready. An agent runs it once, in its worktree; weald then commits and lands its work.
#[derive(Args)]
pub struct Done {
    #[command(flatten)]
    held: HeldTask,
    /// Report on the work
    #[arg(long, value_name = "TEXT")]
    report: Option<String>,
    #[command(flatten)]
    evidence: Evidence,
}

/// Mark a task as failed
#[derive(Args)]
pub struct Fail {
    #[command(flatten)]
    held: HeldTask,
    /// Reason for the failure
    #[arg(long, alias = "reason", value_name = "TEXT")]
    report: Option<String>,
    #[command(flatten)]
    evidence: Evidence,
}

/// What stands behind a report.
#[derive(Args)]
struct Evidence {
    /// Changed file (may be repeated)
    #[arg(long = "changed", value_name = "FILE")]
    changed: Vec<String>,
    /// Result of checking the work
    #[arg(long, value_name = "HOW", value_enum)]
    verified: Option<Verified>,
    /// Command that checked it
    #[arg(long, value_name = "CMD", requires = "verified")]
    verified_by: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Verified {
    Passed,
    Failed,
}

impl Evidence {
    fn report(self, text: Option<String>) -> Report {
        Report {
            text,
            files_changed: self.changed,
            verification: match self.verified {
                None => Verification::None,
                Some(Verified::Passed) => Verification::Passed,
                Some(Verified::Failed) => Verification::Failed,
            },
            verified_by: self.verified_by.unwrap_or_default(),
        }
    }
}

impl Done {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let report = self.evidence.report(self.report);
        self.held.moved(context, Move::Complete { report })
    }
}

impl Fail {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let report = self.evidence.report(self.report);
        self.held.moved(context, Move::Fail { report })
    }
}

/// Start a task without a claim
///
/// For people, who need no lease.
#[derive(Args)]
pub struct Start {
    /// Task ID, or its worktree, agent, branch or path
    #[arg(value_name = "ID", add = completion::tasks())]
    id: Word,
    /// Session that works on it (default: your own)
    #[arg(long, value_name = "NAME")]
    owner: Option<SessionName>,
    #[command(flatten)]
    session: SessionArg,
}

impl Start {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let (caller, id) = (self.session.caller(), Some(self.id));
        let to = Move::Start { owner: self.owner };
        moved(context, &caller, id, to)
    }
}

/// Cancel a task
///
/// From then on, its holder can no longer update it.
#[derive(Args)]
pub struct Cancel {
    /// Task ID, or its worktree, agent, branch or path
    #[arg(value_name = "ID", add = completion::tasks())]
    id: Word,
    /// Reason to record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    session: SessionArg,
}

impl Cancel {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let (caller, id) = (self.session.caller(), Some(self.id));
        let to = Move::Cancel {
            reason: self.reason,
        };
        moved(context, &caller, id, to)
    }
}

/// Reopen a finished, failed, blocked or cancelled task
#[derive(Args)]
pub struct Reopen {
    /// Task ID, or its worktree, agent, branch or path
    #[arg(value_name = "ID", add = completion::ended_tasks())]
    id: Word,
    #[command(flatten)]
    session: SessionArg,
}

impl Reopen {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let (caller, id) = (self.session.caller(), Some(self.id));
        let to = Move::Reopen;
        moved(context, &caller, id, to)
    }
}
