//! `weald task …`

mod bindings;
mod board;
mod claims;
mod export;
mod import;

pub use board::print_detail;

use std::io::{self, Write};

use clap::{Args, Subcommand};
use weald_app::Failure;
use weald_app::operations::Caller;
use weald_app::operations::tasks::OneTask;
use weald_core::id::{TaskId, Token};
use weald_core::task::Task as Record;

use crate::cli::SessionArg;
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Out, paint, status_style};

/// Add, claim and finish tasks.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Task {
    Add(board::Add),
    List(board::List),
    Ready(board::Ready),
    Show(board::Show),
    Edit(board::Edit),
    Claim(claims::Claim),
    Renew(claims::Renew),
    Release(claims::Release),
    Start(claims::Start),
    Done(claims::Done),
    Fail(claims::Fail),
    Cancel(claims::Cancel),
    Reopen(claims::Reopen),
    Dep(board::Dep),
    Bind(bindings::Bind),
    Unbind(bindings::Unbind),
    Closeout(bindings::Closeout),
    Import(import::Import),
    Export(export::Export),
}

impl Task {
    /// Does what was asked, on the host or inside a sandbox.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::Add(command) => command.run(context),
            Self::List(command) => command.run(context),
            Self::Ready(command) => command.run(context),
            Self::Show(command) => command.run(context),
            Self::Edit(command) => command.run(context),
            Self::Claim(command) => command.run(context),
            Self::Renew(command) => command.run(context),
            Self::Release(command) => command.run(context),
            Self::Start(command) => command.run(context),
            Self::Done(command) => command.run(context),
            Self::Fail(command) => command.run(context),
            Self::Cancel(command) => command.run(context),
            Self::Reopen(command) => command.run(context),
            Self::Dep(command) => command.run(context),
            Self::Bind(command) => command.run(context),
            Self::Unbind(command) => command.run(context),
            Self::Closeout(command) => command.run(context),
            Self::Import(command) => command.run(context),
            Self::Export(command) => command.run(context),
        }
    }
}

/// A task under a claim.
#[derive(Args)]
struct HeldTask {
    /// The task (default: $WEALD_TASK)
    #[arg(value_name = "ID", add = completion::tasks())]
    id: Option<TaskId>,
    /// Token of your claim (default: $WEALD_TOKEN if $WEALD_TASK is this task)
    #[arg(long, value_name = "N")]
    token: Option<Token>,
    #[command(flatten)]
    session: SessionArg,
}

impl HeldTask {
    fn caller(&self) -> Caller {
        Caller {
            token: self.token,
            ..self.session.caller()
        }
    }
}

/// The answer of a command that changed one task.
fn print_task(context: &Context<'_>, answer: &OneTask) -> Result<u8, Failure> {
    context.ui.show(answer, |out| print_line(out, &answer.task))
}

/// One task in one line.
fn print_line(out: &mut Out, task: &Record) -> io::Result<()> {
    let status = paint(status_style(task.status), task.status);
    writeln!(
        out,
        "{} {status} {} {}",
        paint(ACCENT, format!("#{}", task.id)),
        task.priority,
        task.subject
    )
}
