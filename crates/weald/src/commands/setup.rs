//! `weald setup`

use std::io::Write;

use clap::Args;

use weald_app::Failure;

use crate::completion;
use crate::context::Context;
use crate::ui::Fields;

/// Set up a worktree again: add missing files, run commands
///
/// Adds the files named in .worktreeinclude and shared directories, then runs setup.commands or the commands of another
/// tool's settings. Existing files are not changed. `weald new` does all of this by itself.
#[derive(Args)]
pub struct Setup {
    /// The worktree (default: the current one)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
}

impl Setup {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        ground.warn_of_settings(context);
        let trees = ground.trees(context)?;
        let done = trees.set_up_again(self.name.as_deref())?;
        context.tell(&ground.engine);
        for note in &done.notes {
            context.warn(note);
        }
        context.ui.answer(
            || {
                Fields::new()
                    .with("tree", &trees.view(done.tree.clone()))
                    .with("setup", &done.setup)
            },
            |out| match &done.setup {
                None => writeln!(out, "{}: there is nothing to set up", done.tree.name),
                Some(report) => writeln!(
                    out,
                    "{} is set up: {} files copied, {} folders shared, {} commands run",
                    done.tree.name,
                    report.copied,
                    report.shared.len(),
                    report.commands.len()
                ),
            },
        )
    }
}
