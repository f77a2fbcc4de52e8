//! `weald approve`

use std::io::{self, IsTerminal, Write};

use clap::Args;
use weald_app::Failure;
use weald_app::operations::approvals::{ApproveLanding, ApprovedLanding};

use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, paint, short};

/// Approve a worktree's current commit for landing
///
/// Required for every landing if policy.gate is `human`, and for landings that change weald.toml or a path in
/// policy.protected. Shows the commits and the diff, asks, and approves exactly those; a further commit needs a new approval.
/// Sessions of agents are refused.
#[derive(Args)]
pub struct Approve {
    /// Worktree, task, agent, branch or path (default: current)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Approve only if this is its head commit (at least 7 digits)
    #[arg(long, value_name = "SHA", value_parser = commit_id)]
    head: Option<String>,
    /// Approve without asking, also without a terminal
    #[arg(long)]
    yes: bool,
}

impl Approve {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let has_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        let answer = context.perform(ApproveLanding {
            tree: self.name,
            head: self.head,
            is_attended: self.yes || has_terminal,
            ask: has_terminal && !self.yes && !context.ui.is_json(),
            reader: context.ui.reader(),
        })?;
        let ApprovedLanding { approval, tree, .. } = &answer;
        context.ui.show(&answer, |out| {
            writeln!(
                out,
                "{} may land on {} at {}",
                paint(ACCENT, &tree.tree.name),
                approval.target,
                short(&approval.head)
            )
        })
    }
}

/// A commit's id, or how it begins.
fn commit_id(text: &str) -> Result<String, String> {
    let is_id = text.len() >= 7 && text.chars().all(|digit| digit.is_ascii_hexdigit());
    match is_id {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("a commit has at least 7 digits here, 0 to 9 and a to f".to_owned()),
    }
}
