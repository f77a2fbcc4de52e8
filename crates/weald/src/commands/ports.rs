//! `weald ports`

use std::io::Write;

use clap::Args;
use weald_app::Failure;
use weald_app::operations::looking::ShowPorts;

use crate::completion;
use crate::context::Context;

/// Show the ports of each worktree
///
/// A new worktree gets ports that none of your other worktrees has, in any repository. WEALD_PORT is the first of them,
/// WEALD_PORTS the first and the last. Removing the worktree frees them.
#[derive(Args)]
pub struct Ports {
    /// Only this worktree, task, agent, branch or path
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
}

impl Ports {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(ShowPorts { tree: self.name })?;
        let blocks = &answer.ports.blocks;
        context.ui.show(&answer, |out| {
            for held in blocks {
                writeln!(out, "{}  {}", held.block.to_text(), held.tree)?;
            }
            match blocks.is_empty() {
                true => writeln!(out, "no ports are reserved"),
                false => Ok(()),
            }
        })
    }
}
