//! `weald session show`

use std::io::Write;

use clap::Args;
use serde_json::json;
use weald_app::{Failure, TreeError, exit};

use super::{Which, print_line};
use crate::context::Context;
use crate::ui::Fields;

/// Show a session and where it works
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    which: Which,
}

impl Show {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let name = self.which.resolve(context, &ground.engine)?;
        let view = ground.engine.session(&name)?;
        // A tree that is gone hides nothing of the session.
        let (directory, lost) = match ground.trees(context)?.directory_of(&view.session) {
            Ok(directory) => (Some(directory), None),
            Err(
                error @ (TreeError::InTrash { .. }
                | TreeError::NotFound { .. }
                | TreeError::Missing { .. }),
            ) => (None, Some(Failure::from(error))),
            Err(error) => return Err(error.into()),
        };
        let now = context.now();
        context.ui.answer(
            || {
                let fields = Fields::new()
                    .with("session", &view)
                    .with("directory", &directory);
                match &lost {
                    Some(lost) => fields.with(
                        "problem",
                        &json!({"code": lost.code, "message": lost.message, "hint": lost.hint}),
                    ),
                    None => fields,
                }
            },
            |out| {
                print_line(out, &view, now)?;
                match &directory {
                    Some(directory) => writeln!(out, "  works in {}", directory.display()),
                    None => Ok(()),
                }
            },
        )?;
        if let Some(lost) = lost {
            context.warn(&lost.in_short());
        }
        Ok(exit::DONE)
    }
}
