//! `weald session …`

mod check;
mod end;
mod heartbeat;
mod list;
mod note;
mod register;
mod show;

pub use end::told_lock;

use std::io::{self, Write};

use clap::{Args, Subcommand};
use weald_app::{Engine, Failure, SessionView};
use weald_core::Timestamp;
use weald_core::name::SessionName;

use super::inside::Inside;
use crate::cli::SessionArg;
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Fields, Out, ago, paint};

/// Show sessions and whether they are alive.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Session {
    Register(register::Register),
    Heartbeat(heartbeat::Heartbeat),
    #[command(alias = "is-active")]
    Check(check::Check),
    List(list::List),
    Show(show::Show),
    Note(note::Note),
    #[command(alias = "deregister")]
    End(end::End),
}

impl Session {
    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::Register(command) => command.run(context),
            Self::Heartbeat(command) => command.run(context),
            Self::Check(command) => command.run(context),
            Self::List(command) => command.run(context),
            Self::Show(command) => command.run(context),
            Self::Note(command) => command.run(context),
            Self::End(command) => command.run(context),
        }
    }
}

impl Session {
    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        match self {
            Self::List(command) => command.inside(inside),
            Self::Note(command) => command.inside(inside),
            other if !inside.context.is_confined() => other.run(inside.context),
            _ => Err(Failure::not_allowed_inside()),
        }
    }
}

/// The session a command is about: by name, or whoever calls.
#[derive(Args)]
struct Which {
    /// The session (default: your own)
    #[arg(value_name = "NAME", add = completion::sessions())]
    name: Option<SessionName>,
    #[command(flatten)]
    session: SessionArg,
}

impl Which {
    fn resolve(&self, context: &Context<'_>, engine: &Engine) -> Result<SessionName, Failure> {
        context.session(engine, self.given())
    }

    /// The name that was given.
    fn given(&self) -> Option<&SessionName> {
        self.name.as_ref().or(self.session.session.as_ref())
    }
}

/// The answer of a command about one session.
fn print_session(context: &Context<'_>, view: &SessionView) -> Result<u8, Failure> {
    let now = context.now();
    context.ui.answer(
        || Fields::new().with("session", view),
        |out| print_line(out, view, now),
    )
}

/// One session in one line.
fn print_line(out: &mut Out, view: &SessionView, now: Timestamp) -> io::Result<()> {
    let session = &view.session;
    write!(
        out,
        "{} {}",
        paint(ACCENT, &session.name),
        view.liveness.as_str()
    )?;
    write!(out, ", seen {} ago", ago(session.last_seen, now))?;
    for id in &view.holds {
        write!(out, ", holds {id}")?;
    }
    writeln!(out)
}
