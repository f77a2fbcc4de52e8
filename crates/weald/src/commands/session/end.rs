//! `weald session end`

use std::io::Write;

use clap::Args;

use super::{Which, print_line};
use crate::context::Context;
use crate::errors::Failure;
use crate::ui::Fields;

/// End a session and give back what it holds
///
/// End a session: what it holds is given back, its note stays.
#[derive(Args)]
pub struct End {
    #[command(flatten)]
    which: Which,
}

impl End {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let name = self.which.resolve(context, &engine)?;
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
