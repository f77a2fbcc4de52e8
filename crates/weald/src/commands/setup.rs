//! `weald setup`

use std::io::Write;

use clap::Args;

use weald_app::Failure;

use crate::completion;
use crate::context::Context;
use crate::ui::Fields;

/// Set a tree up again: bring what is missing, run the set-up commands
///
/// `weald new` does it by itself: files that .worktreeinclude names, shared folders, the commands of setup.commands or of
/// another tool's settings. What is there already stays as it is.
#[derive(Args)]
pub struct Setup {
    /// Which tree (default: the one you are in)
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
