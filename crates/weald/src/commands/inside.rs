//! Commands from inside a tree's sandbox: asked of the broker of the run, told as outside.
//!
//! Operations know what to ask in their place; everything else is refused here.

use std::io::{self, Write};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use weald_app::operations::looking::ShowOwnRun;
use weald_app::operations::{Broker, Caller, Operation, parsed};
use weald_app::{Ask, Failure, TaskDetail};
use weald_core::id::Token;
use weald_core::name::SessionName;
use weald_server::broker::{Client, Reply};

use super::task;
use crate::cli::Cli;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Fields, HEADING, Out, paint};

/// Does what was asked: here, or by way of the broker of the run that this process is in.
pub fn run(cli: Cli, context: &Context<'_>) -> Result<u8, Failure> {
    match Inside::of(context) {
        None => cli.run(context),
        Some(inside) => cli.run_inside(&inside),
    }
}

impl Context<'_> {
    /// Does an operation: here, or by way of the broker of the run that this process is in.
    pub fn perform<O: Operation>(&self, request: O) -> Result<O::Output, Failure> {
        self.perform_as(&Caller::default(), request)
    }

    /// The same for what the caller says of itself.
    pub fn perform_as<O: Operation>(
        &self,
        caller: &Caller,
        request: O,
    ) -> Result<O::Output, Failure> {
        let inside = Inside::of(self);
        let broker = inside.as_ref().map(|inside| inside as &dyn Broker);
        self.by(caller).perform(request, broker)
    }
}

/// The way to the broker, and where to print.
pub struct Inside<'a> {
    pub context: &'a Context<'a>,
    client: Client,
}

impl Broker for Inside<'_> {
    fn ask(&self, caller: &Caller, ask: Ask) -> Result<Map<String, Value>, Failure> {
        let reply = self.ask_as(caller.session.as_ref(), caller.token, ask)?;
        Ok(reply.answer)
    }
}

impl<'a> Inside<'a> {
    /// The way to the broker of the run that this process is in, if it is in one.
    pub fn of(context: &'a Context<'a>) -> Option<Self> {
        let client = context.broker()?;
        Some(Self { context, client })
    }
}

impl Inside<'_> {
    /// Asks in the run's own name.
    pub fn ask(&self, ask: Ask) -> Result<Reply, Failure> {
        self.ask_as(None, None, ask)
    }

    /// Asks in the name and under the claim that flags gave; both have to be the run's own.
    pub fn ask_as(
        &self,
        session: Option<&SessionName>,
        token: Option<Token>,
        ask: Ask,
    ) -> Result<Reply, Failure> {
        let reply = self.client.ask(session.cloned(), token, ask)?;
        for note in &reply.notes {
            self.context.note(note);
        }
        match reply.as_fault() {
            Some(fault) => Err(fault.into()),
            None => Ok(reply),
        }
    }
}

/// One field of an answer.
pub fn field<T: DeserializeOwned>(reply: &Reply, name: &str) -> Result<T, Failure> {
    let value = reply.answer.get(name).cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|error| Failure::broker_answer(&error))
}

/// What is shown of where a run stands.
#[derive(Deserialize)]
struct OwnRun {
    session: Option<String>,
    lands: bool,
    tree: String,
    unread: u64,
    task: Option<TaskDetail>,
}

/// `weald` alone: where the run stands, and what it may ask.
pub fn overview(inside: &Inside<'_>) -> Result<u8, Failure> {
    let answer = inside.context.perform(ShowOwnRun {})?;
    let OwnRun {
        session,
        lands,
        tree,
        unread,
        task,
    } = parsed(answer.clone())?;
    let now = inside.context.now();
    inside.context.ui.answer(
        || Fields::of(&answer),
        |out| {
            let who = session.as_deref().unwrap_or("a command without a session");
            writeln!(
                out,
                "{} works in worktree {}",
                paint(ACCENT, who),
                paint(ACCENT, &tree)
            )?;
            match &task {
                Some(detail) => task::print_detail(out, detail, &[], now)?,
                None => writeln!(out, "no task is bound to it")?,
            }
            match unread {
                0 => {}
                count => writeln!(out, "\n{count} unread: weald msg inbox --consume")?,
            }
            print_rules(out, |rule| match rule {
                Rule::Anybody => true,
                Rule::Session => session.is_some(),
                Rule::Agent => task.as_ref().is_some_and(|detail| {
                    let lease = detail.task.lease.as_ref();
                    lease.is_some_and(|lease| Some(lease.session.as_str()) == session.as_deref())
                }),
                Rule::Mandate => lands,
            })
        },
    )
}

/// Who may ask for something.
#[derive(Clone, Copy)]
enum Rule {
    Anybody,
    /// Who has a session.
    Session,
    /// Who holds the task.
    Agent,
    Mandate,
}

/// What may be asked from inside.
const RULES: &[(Rule, &str, &str)] = &[
    (
        Rule::Anybody,
        "weald task show [ID]",
        "your task, or another one (also: task list, task ready)",
    ),
    (
        Rule::Agent,
        "weald task done --report TEXT",
        "say that it is done, once (or: task fail)",
    ),
    (Rule::Agent, "weald task renew", "hold it for longer"),
    (
        Rule::Session,
        "weald msg send|ask NAME TEXT",
        "talk to others (also: msg inbox, msg reply)",
    ),
    (
        Rule::Session,
        "weald session note TEXT",
        "leave a note for the next agent",
    ),
    (
        Rule::Anybody,
        "weald status",
        "your worktree (also: diff, path, snapshot list, events)",
    ),
    (
        Rule::Session,
        "weald sync",
        "merge the newest target into your worktree",
    ),
    (
        Rule::Session,
        "weald snapshot create",
        "save your worktree as it is now",
    ),
    (
        Rule::Mandate,
        "weald land",
        "ask for your commits to land; gates and approvals hold",
    ),
];

fn print_rules(out: &mut Out, holds: impl Fn(Rule) -> bool) -> io::Result<()> {
    writeln!(out, "\n{}", paint(HEADING, "from in here"))?;
    for (_, command, what) in RULES.iter().filter(|(rule, ..)| holds(*rule)) {
        writeln!(out, "  {command:<31} {}", paint(DIM, what))?;
    }
    Ok(())
}
