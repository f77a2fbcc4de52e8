//! `weald session list`

use std::io::{self, Write};

use clap::Args;
use weald_app::Ask;
use weald_app::{Failure, SessionView};
use weald_core::Timestamp;
use weald_core::id::TaskId;

use super::super::inside::{Inside, field};
use crate::context::Context;
use crate::ui::{ACCENT, Fields, Out, Table, ago};

/// List sessions
#[derive(Args)]
pub struct List {
    /// Include sessions that have ended
    #[arg(long)]
    all: bool,
}

impl List {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let mut views = context.engine()?.sessions()?;
        views.retain(|view| self.all || view.session.ended_at.is_none());
        let now = context.now();
        context.ui.answer(
            || Fields::new().with("sessions", &views),
            |out| print(out, &views, now),
        )
    }

    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let reply = inside.ask(Ask::SessionList { all: self.all })?;
        let views: Vec<SessionView> = field(&reply, "sessions")?;
        let now = inside.context.now();
        inside.print(&reply, |out| print(out, &views, now))
    }
}

fn print(out: &mut Out, views: &[SessionView], now: Timestamp) -> io::Result<()> {
    if views.is_empty() {
        return writeln!(out, "no sessions");
    }
    let mut table = Table::new(&["NAME", "STATE", "SEEN", "HOLDS", "NOTE"]);
    for view in views {
        let holds = view
            .holds
            .iter()
            .map(TaskId::to_string)
            .collect::<Vec<_>>()
            .join(",");
        let note = view
            .session
            .note
            .as_ref()
            .map_or_else(String::new, |note| note.text.clone());
        table.row(vec![
            (view.session.name.to_string(), ACCENT),
            (view.liveness.as_str().to_owned(), Default::default()),
            (
                format!("{} ago", ago(view.session.last_seen, now)),
                Default::default(),
            ),
            (holds, Default::default()),
            (note, Default::default()),
        ]);
    }
    table.print(out)
}
