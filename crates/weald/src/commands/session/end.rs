//! `weald session end`

use std::io::Write;

use clap::Args;
use weald_core::name::SessionName;

use super::print_line;
use crate::cli::SessionArg;
use crate::completion;
use crate::context::Context;
use crate::errors::Failure;
use crate::ui::Fields;

/// End a session and give back what it holds
///
/// End a session: what it holds is given back, its note stays.
#[derive(Args)]
pub struct End {
    /// The session (default: who you are)
    #[arg(value_name = "NAME", add = completion::sessions())]
    name: Option<SessionName>,
    #[command(flatten)]
    session: SessionArg,
}

impl End {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let name = context.session(
            &engine,
            self.name.as_ref().or(self.session.session.as_ref()),
        )?;
        let (view, released) = engine.end(&name)?;
        context.tell(&engine);
        let now = context.now();
        context.ui.answer(
            || {
                Fields::new()
                    .with("session", &view)
                    .with("released", &released)
            },
            |out| {
                print_line(out, &view, now)?;
                released
                    .iter()
                    .try_for_each(|id| writeln!(out, "given back: {id}"))
            },
        )
    }
}
