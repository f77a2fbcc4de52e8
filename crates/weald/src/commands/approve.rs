//! `weald approve`

use std::io::{self, IsTerminal, Write};

use clap::Args;
use weald_app::operations::approvals::{ApproveLanding, ApprovedLanding};
use weald_app::{Failure, Review};

use super::land::short;
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Out, clean_line, paint};

/// How many commits and files are shown to people.
const SHOWN: usize = 30;

/// Approve a worktree's current commit for landing
///
/// Required for every landing if policy.gate is `human`, and for landings that change weald.toml or a path in
/// policy.protected. Shows the commits and files, then approves exactly those; a further commit needs a new approval.
/// Sessions of agents are refused.
#[derive(Args)]
pub struct Approve {
    /// The worktree or its task (default: the current worktree)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Approve only if this is its head commit (at least 7 digits)
    #[arg(long, value_name = "SHA", value_parser = commit_id)]
    head: Option<String>,
    /// Approve without a terminal
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

/// Shows the commits and files that would be approved.
pub fn print_review(out: &mut Out, review: &Review) -> io::Result<()> {
    for commit in review.commits.iter().take(SHOWN) {
        let id = paint(DIM, short(&commit.commit));
        writeln!(out, "  {id} {}", clean_line(&commit.subject))?;
    }
    more(out, review.commits.len(), "commits")?;
    // Those that need somebody's eyes come first.
    let (protected, others): (Vec<_>, Vec<_>) =
        review.files.iter().partition(|file| file.protected);
    for file in protected.iter().chain(&others).take(SHOWN) {
        let path = clean_line(&file.path);
        match file.protected {
            true => writeln!(out, "  {path}  {}", paint(ACCENT, "(protected)"))?,
            false => writeln!(out, "  {path}")?,
        }
    }
    more(out, review.files.len(), "files")
}

fn more(out: &mut Out, count: usize, what: &str) -> io::Result<()> {
    match count > SHOWN {
        true => writeln!(out, "  and {} more {what}", count - SHOWN),
        false => Ok(()),
    }
}
