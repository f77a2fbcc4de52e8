//! `weald session note`

use std::io::Write;

use clap::Args;
use weald_app::Ask;
use weald_app::{Failure, exit};

use super::super::inside::{Inside, field};
use crate::cli::SessionArg;
use crate::context::Context;
use crate::ui::{Fields, clean};

/// Write or print the note of a session
///
/// Notes outlive the session.
#[derive(Args)]
pub struct Note {
    /// New note (default: print the current one)
    text: Option<String>,
    #[command(flatten)]
    session: SessionArg,
}

impl Note {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let name = context.session(&engine, self.session.session.as_ref())?;
        let view = match self.text {
            Some(text) => engine.note(&name, text)?,
            None => engine.session(&name)?,
        };
        context.tell(&engine);
        let Some(note) = &view.session.note else {
            return Err(
                Failure::new("no_note", exit::NOT_FOUND, format!("{name} left no note")).hint(
                    format!("weald session note \"what is next\" --session {name}"),
                ),
            );
        };
        context.ui.answer(
            || Fields::new().with("session", &view).with("note", note),
            |out| writeln!(out, "{}", clean(&note.text)),
        )
    }

    /// The same from inside a tree.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let ask = Ask::SessionNote { text: self.text };
        let reply = inside.ask_as(self.session.session.as_ref(), None, ask)?;
        let note: weald_core::session::Note = field(&reply, "note")?;
        inside.print(&reply, |out| writeln!(out, "{}", clean(&note.text)))
    }
}
