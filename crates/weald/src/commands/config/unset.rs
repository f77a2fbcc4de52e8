//! `weald config unset`

use std::io::Write;

use clap::Args;
use serde_json::json;
use weald_app::{Failure, PRIVATE_FILE, remove_key};

use crate::completion;
use crate::context::Context;
use crate::ui::Fields;

/// Remove a key from the private configuration
#[derive(Args)]
pub struct Unset {
    /// Key to remove
    #[arg(value_name = "KEY", add = completion::keys())]
    key: String,
}

impl Unset {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let path = context.place()?.private().join(PRIVATE_FILE);
        context.refuse_loosening(&self.key, None)?;
        let removed = remove_key(&path, &self.key)?;
        let unset =
            json!({"key": self.key, "removed": removed, "file": path.display().to_string()});
        context.ui.answer(
            || Fields::new().with("config", &unset),
            |out| match removed {
                true => writeln!(out, "{} is no longer set here", self.key),
                false => writeln!(out, "{} was not set here", self.key),
            },
        )
    }
}
