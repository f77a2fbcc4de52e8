//! `weald task done`

use clap::{Args, ValueEnum};
use weald_app::Failure;
use weald_core::agent::Verification;
use weald_core::task_rules::TaskInput;
use weald_server::broker::{Ask, Report};

use super::super::inside::Inside;
use super::HeldTask;
use crate::context::Context;

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

/// What stands behind a report.
#[derive(Args)]
pub struct Evidence {
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
    pub fn report(self, text: Option<String>) -> Report {
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
        let report = self.evidence.report(self.report).as_text();
        self.held
            .decide(context, |token| TaskInput::Complete { token, report })
    }

    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let report = self.evidence.report(self.report);
        self.held.ask(inside, |id| Ask::TaskDone { id, report })
    }
}
