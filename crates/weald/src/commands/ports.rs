//! `weald ports`

use std::io::Write;

use clap::Args;
use serde_json::json;

use weald_app::Failure;

use crate::completion;
use crate::context::Context;
use crate::ui::Fields;

/// Show the ports of each worktree
///
/// A new worktree gets ports that none of your other worktrees has, in any repository. WEALD_PORT is the first of them,
/// WEALD_PORTS the first and the last. Removing the worktree frees them.
#[derive(Args)]
pub struct Ports {
    /// Only this worktree
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
}

impl Ports {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let blocks = trees.ports(self.name.as_deref())?;
        let range = trees.port_range();
        let answer = json!({
            "first": range.first, "last": range.last, "count": range.count, "blocks": blocks,
        });
        context.ui.answer(
            || Fields::new().with("ports", &answer),
            |out| {
                for held in &blocks {
                    writeln!(out, "{}  {}", held.block.to_text(), held.tree)?;
                }
                match blocks.is_empty() {
                    true => writeln!(out, "no ports are reserved"),
                    false => Ok(()),
                }
            },
        )
    }
}
