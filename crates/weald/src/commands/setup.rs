//! `weald setup`

use std::io::Write;

use clap::Args;
use weald_app::Failure;
use weald_app::operations::making::SetUpTree;

use crate::completion;
use crate::context::Context;

/// Set up a worktree again: add missing files, run commands
///
/// Adds the files named in .worktreeinclude and shared directories, then runs setup.commands or the commands of another
/// tool's settings. Existing files are not changed. `weald new` does all of this by itself.
#[derive(Args)]
pub struct Setup {
    /// Worktree, task, agent, branch or path (default: current)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
}

impl Setup {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(SetUpTree { tree: self.name })?;
        let name = &answer.tree.tree.name;
        context.ui.show(&answer, |out| match &answer.setup {
            None => writeln!(out, "{name}: there is nothing to set up"),
            Some(report) => writeln!(
                out,
                "{name} is set up: {} files copied, {} folders shared, {} commands run",
                report.copied,
                report.shared.len(),
                report.commands.len()
            ),
        })
    }
}
