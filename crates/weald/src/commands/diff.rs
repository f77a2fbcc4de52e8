//! `weald diff`

use std::io::Write;

use clap::{Args, ValueEnum};
use weald_app::operations::looking::{DiffTree, ShownDiff};
use weald_app::{DiffStyle, Failure};

use crate::completion;
use crate::context::Context;

/// Show changes in a worktree, committed or not
///
/// Includes committed, staged, unstaged and untracked changes.
#[derive(Args)]
pub struct Diff {
    /// The worktree or its task (default: the current worktree)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    #[command(flatten)]
    style: Style,
    /// Compare with its base commit or with its fork point on the target
    #[arg(long, value_name = "WHAT", default_value = "base")]
    against: AgainstArg,
}

/// How a diff is told.
#[derive(Args)]
pub struct Style {
    /// Show the number of changed lines per file
    #[arg(long)]
    stat: bool,
    /// Show only file names
    #[arg(long, conflicts_with = "stat")]
    name_only: bool,
}

impl Style {
    /// As it is asked for.
    pub fn wanted(&self, context: &Context<'_>) -> DiffStyle {
        match (context.ui.is_json(), self.stat, self.name_only) {
            (true, ..) => DiffStyle::Files,
            (_, true, _) => DiffStyle::Stat,
            (_, _, true) => DiffStyle::Names,
            _ => DiffStyle::Patch,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum AgainstArg {
    Base,
    Target,
}

impl Diff {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(DiffTree {
            tree: self.name,
            against_target: matches!(self.against, AgainstArg::Target),
            style: self.style.wanted(context),
        })?;
        print(context, &answer)
    }
}

/// The answer: what changed.
pub fn print(context: &Context<'_>, diff: &ShownDiff) -> Result<u8, Failure> {
    if diff.truncated {
        context.warn("the output is truncated; the rest was left out");
    }
    context.ui.show(diff, |out| {
        write!(out, "{}", diff.text.as_deref().unwrap_or_default())?;
        match diff.truncated {
            true => writeln!(out, "[… truncated]"),
            false => Ok(()),
        }
    })
}
