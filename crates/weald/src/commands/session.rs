//! `weald session …`

mod check;
mod end;
mod heartbeat;
mod list;
mod note;
mod register;

use std::io::{self, Write};

use clap::Subcommand;
use weald_core::Timestamp;
use weald_engine::SessionView;

use crate::context::Context;
use crate::errors::Failure;
use crate::ui::{ACCENT, Fields, Out, ago, paint};

/// Tell who is working, and whether they live.
#[derive(Subcommand)]
pub enum Session {
    Register(register::Register),
    Heartbeat(heartbeat::Heartbeat),
    #[command(alias = "is-active")]
    Check(check::Check),
    List(list::List),
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
            Self::Note(command) => command.run(context),
            Self::End(command) => command.run(context),
        }
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
