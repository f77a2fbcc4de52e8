//! `weald config set`

use std::io::Write;

use clap::Args;
use serde_json::json;
use weald_engine::{PRIVATE_FILE, edit_file};

use crate::completion;
use crate::context::Context;
use crate::errors::Failure;
use crate::ui::Fields;

/// Set a key in the private file of this repository
///
/// Lists are comma separated.
#[derive(Args)]
pub struct Set {
    /// The key, as landing.strategy
    #[arg(value_name = "KEY", add = completion::keys())]
    key: String,
    /// Its value
    #[arg(allow_hyphen_values = true)]
    value: String,
}

impl Set {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let path = context.place()?.private().join(PRIVATE_FILE);
        context.refuse_loosening(&self.key, Some(&self.value))?;
        let value = edit_file(&path, &self.key, &self.value)?;
        let set = json!({"key": self.key, "value": value, "file": path.display().to_string()});
        context.ui.answer(
            || Fields::new().with("config", &set),
            |out| writeln!(out, "{} = {value}", self.key),
        )
    }
}
