//! `weald task …`

mod add;
mod bind;
mod cancel;
pub mod claim;
mod closeout;
mod dep;
mod done;
mod edit;
mod export;
mod fail;
mod import;
mod list;
mod ready;
mod release;
mod renew;
mod reopen;
mod show;
mod start;

pub use show::print_detail;

use std::io::{self, Write};

use clap::{Args, Subcommand};
use weald_app::{Engine, Failure};
use weald_core::id::{TaskId, Token};
use weald_core::task::Task as Record;
use weald_core::task_rules::TaskInput;
use weald_server::broker::Ask;

use super::inside::{Inside, field};
use crate::cli::SessionArg;
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Fields, Out, Table, paint, status_style};

/// Add, claim and finish tasks.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Task {
    Add(add::Add),
    List(list::List),
    Ready(ready::Ready),
    Show(show::Show),
    Edit(edit::Edit),
    Claim(claim::Claim),
    Renew(renew::Renew),
    Release(release::Release),
    Start(start::Start),
    Done(done::Done),
    Fail(fail::Fail),
    Cancel(cancel::Cancel),
    Reopen(reopen::Reopen),
    Dep(dep::Dep),
    Bind(bind::Bind),
    Unbind(bind::Unbind),
    Closeout(closeout::Closeout),
    Import(import::Import),
    Export(export::Export),
}

impl Task {
    /// Does what was asked.
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

impl Task {
    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        match self {
            Self::List(command) => command.inside(inside),
            Self::Ready(command) => command.inside(inside),
            Self::Show(command) => command.inside(inside),
            Self::Claim(command) => command.inside(inside),
            Self::Renew(command) => command.inside(inside),
            Self::Done(command) => command.inside(inside),
            Self::Fail(command) => command.inside(inside),
            other if !inside.context.is_confined() => other.run(inside.context),
            _ => Err(Failure::not_allowed_inside()),
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
    /// Decides an input made with the token, and prints what came of it.
    fn decide(
        self,
        context: &Context<'_>,
        input: impl FnOnce(Option<Token>) -> TaskInput,
    ) -> Result<u8, Failure> {
        let id = context.task(self.id)?;
        let engine = context.engine()?;
        let actor = context.actor(&engine, self.session.session.as_ref())?;
        let input = input(context.token(&id, self.token));
        let finished = engine.move_task(actor.as_ref(), &id, input)?;
        context.tell(&engine);
        context.ui.answer(
            || {
                Fields::new()
                    .with("task", &finished.task)
                    .with("unblocked", &finished.unblocked)
            },
            |out| print_finished(out, &finished.task, &finished.unblocked),
        )
    }

    /// The same from inside a tree.
    fn ask(
        self,
        inside: &Inside<'_>,
        ask: impl FnOnce(Option<TaskId>) -> Ask,
    ) -> Result<u8, Failure> {
        let session = self.session.session.as_ref();
        let reply = inside.ask_as(session, self.token, ask(self.id))?;
        let task: Record = field(&reply, "task")?;
        let unblocked: Vec<TaskId> = field(&reply, "unblocked")?;
        inside.print(&reply, |out| print_finished(out, &task, &unblocked))
    }
}

fn print_finished(out: &mut Out, task: &Record, unblocked: &[TaskId]) -> io::Result<()> {
    print_line(out, task)?;
    for id in unblocked {
        writeln!(out, "now ready: {id}")?;
    }
    Ok(())
}

/// Decides an input that needs no token, and prints the task.
fn decide(
    context: &Context<'_>,
    id: &TaskId,
    session: &SessionArg,
    input: TaskInput,
) -> Result<u8, Failure> {
    let engine = context.engine()?;
    let actor = context.actor(&engine, session.session.as_ref())?;
    let finished = engine.move_task(actor.as_ref(), id, input)?;
    context.tell(&engine);
    print_task(context, &finished.task)
}

/// Warns of dependencies that nobody knows: a task may be made before what it waits for, or wait for ever.
fn warn_of_missing(context: &Context<'_>, engine: &Engine, task: &Record) -> Result<(), Failure> {
    if task.blocked_by.is_empty() {
        return Ok(());
    }
    let id = &task.id;
    for missing in engine.task(id)?.waiting_for.missing {
        context.warn(&format!(
            "task {id} depends on task {missing}, which does not exist (to drop it: weald task dep {id} --remove {missing})"
        ));
    }
    Ok(())
}

/// The answer of a command that changed one task.
fn print_task(context: &Context<'_>, task: &Record) -> Result<u8, Failure> {
    context.ui.answer(
        || Fields::new().with("task", task),
        |out| print_line(out, task),
    )
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

/// Tasks as a table.
fn print_tasks(out: &mut Out, tasks: &[Record]) -> io::Result<()> {
    let mut table = Table::new(&[
        "ID", "STATUS", "PRI", "OWNER", "AFTER", "WORKTREE", "SUBJECT",
    ]);
    for task in tasks {
        let owner = task
            .owner
            .as_ref()
            .map_or_else(String::new, ToString::to_string);
        let after = task
            .blocked_by
            .iter()
            .map(TaskId::to_string)
            .collect::<Vec<_>>()
            .join(",");
        let tree = task
            .worktree
            .as_ref()
            .map_or_else(String::new, ToString::to_string);
        table.row(vec![
            (task.id.to_string(), ACCENT),
            (task.status.to_string(), status_style(task.status)),
            (task.priority.to_string(), Default::default()),
            (owner, Default::default()),
            (after, Default::default()),
            (tree, Default::default()),
            (task.subject.clone(), Default::default()),
        ]);
    }
    table.print(out)
}
