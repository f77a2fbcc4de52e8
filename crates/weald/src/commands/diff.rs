//! `weald diff`

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use weald_app::{Against, DiffStyle, Failure, Landings};
use weald_app::{Ask, Diffed};

use super::inside::{Inside, field};
use crate::completion;
use crate::context::Context;
use crate::ui::{Fields, Out, clean};

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
    /// As the engine knows it.
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
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let against = match self.against {
            AgainstArg::Base => Against::Base,
            AgainstArg::Target => Against::Target,
        };
        let progress = context.stage("looking");
        let name = match &self.name {
            Some(name) => Some(Landings::new(&trees).tree_or_task(name)?.name),
            None => None,
        };
        let name = name.as_ref().map(|name| name.as_str());
        let diff = trees.diff(name, against, self.style.wanted(context))?;
        drop(progress);
        print(context, &diff)
    }
}

impl Diff {
    /// The same from inside a tree: its own.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let style = match self.style.wanted(inside.context) {
            DiffStyle::Files => Diffed::Files,
            DiffStyle::Patch => Diffed::Patch,
            DiffStyle::Stat => Diffed::Stat,
            DiffStyle::Names => Diffed::Names,
        };
        let reply = inside.ask(Ask::Diff {
            tree: self.name,
            against_target: matches!(self.against, AgainstArg::Target),
            style,
        })?;
        let diff = weald_app::Diff {
            files: Vec::new(),
            text: field(&reply, "text")?,
            truncated: field(&reply, "truncated")?,
        };
        inside.print(&reply, |out| told(out, &diff))
    }
}

/// The answer: what changed.
pub fn print(context: &Context<'_>, diff: &weald_app::Diff) -> Result<u8, Failure> {
    if diff.truncated {
        context.warn("the output is truncated; the rest was left out");
    }
    context.ui.answer(
        || {
            Fields::new()
                .with("files", &diff.files)
                .with("truncated", &diff.truncated)
        },
        |out| told(out, diff),
    )
}

fn told(out: &mut Out, diff: &weald_app::Diff) -> io::Result<()> {
    write!(out, "{}", clean(diff.text.as_deref().unwrap_or_default()))?;
    match diff.truncated {
        true => writeln!(out, "[… truncated]"),
        false => Ok(()),
    }
}
