//! `weald task export`

use std::io::{BufWriter, Write};

use clap::Args;
use weald_app::operations::transfers::{ExportTasks, ExportedTasks};
use weald_app::{Failure, exit};

use crate::context::Context;

/// Print all tasks as JSON lines
///
/// Includes every field of a task.
#[derive(Args)]
pub struct Export {}

impl Export {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ExportedTasks { tasks } = context.perform(ExportTasks {})?;
        let mut out = BufWriter::new(context.ui.json_out());
        for task in &tasks {
            let line = serde_json::to_string(task).expect("tasks have text keys");
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        Ok(exit::DONE)
    }
}
