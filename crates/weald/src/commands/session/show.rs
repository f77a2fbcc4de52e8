//! `weald session show`

use std::io::Write;

use clap::Args;

use super::{Which, print_line};
use crate::context::Context;
use crate::errors::Failure;
use crate::ui::Fields;

/// Show a session, and where it works
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    which: Which,
}

impl Show {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let name = self.which.resolve(context, &ground.engine)?;
        let view = ground.engine.session(&name)?;
        let directory = ground.trees(context)?.directory_of(&view.session)?;
        let now = context.now();
        context.ui.answer(
            || {
                Fields::new()
                    .with("session", &view)
                    .with("directory", &directory)
            },
            |out| {
                print_line(out, &view, now)?;
                writeln!(out, "  works in {}", directory.display())
            },
        )
    }
}
