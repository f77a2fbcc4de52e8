//! `weald task fail`

use clap::Args;
use weald_app::Failure;
use weald_core::task_rules::TaskInput;
use weald_server::broker::Ask;

use super::super::inside::Inside;
use super::HeldTask;
use super::done::Evidence;
use crate::context::Context;

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

impl Fail {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let report = self.evidence.report(self.report).as_text();
        self.held
            .decide(context, |token| TaskInput::Fail { token, report })
    }

    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let report = self.evidence.report(self.report);
        self.held.ask(inside, |id| Ask::TaskFail { id, report })
    }
}
