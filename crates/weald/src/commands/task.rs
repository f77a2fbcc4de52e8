//! `weald task …`

mod bindings;
mod board;
mod claims;
mod export;
mod import;

pub use board::print_detail;

use std::io::{self, Write};

use clap::Subcommand;
use weald_app::Failure;
use weald_app::operations::tasks::OneTask;
use weald_core::task::Task as Record;

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

impl Default for Task {
    fn default() -> Self {
        Self::List(board::List::default())
    }
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
