//! `weald ensure`

use std::io::Write;

use clap::Args;
use weald_app::Failure;
use weald_app::operations::Operation;
use weald_app::operations::making::{EnsureTree, EnsuredTree};

use super::new::{NewOptions, told};
use crate::context::Context;

/// Print the worktree for NAME, creating it if needed
///
/// Inside a worktree, prints that worktree and creates nothing. Set WEALD_DEFER_CLAUDE=0 to turn this off.
#[derive(Args)]
pub struct Ensure {
    /// Name of the worktree (default: from its task)
    #[arg(value_name = "NAME", required_unless_present = "task")]
    name: Option<String>,
    #[command(flatten)]
    options: NewOptions,
}

impl Ensure {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(EnsureTree {
            name: self.name,
            wishes: self.options.wishes(),
        })?;
        context.ui.show(&answer, |out| match &answer {
            EnsuredTree::Tree(created) => told(out, created),
            EnsuredTree::Elsewhere(skipped) => writeln!(
                out,
                "{} is already a worktree; nothing was created",
                skipped.path.display()
            ),
        })?;
        Ok(EnsureTree::exit(&answer))
    }
}
