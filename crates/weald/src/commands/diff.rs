//! `weald diff`

use clap::{Args, ValueEnum};
use weald_app::operations::looking::DiffTree;
use weald_app::{DiffStyle, Failure, ShownDiff, exit};
use weald_core::git_diff::{ColorMoved, DiffOptions, WordDiff};

use crate::completion;
use crate::context::Context;

/// Show changes in a worktree, committed or not
///
/// Includes committed, staged, unstaged and untracked changes.
#[derive(Args)]
pub struct Diff {
    /// Worktree, task, agent, branch or path (default: current)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    #[command(flatten)]
    style: Style,
    /// Compare with its base or its fork point on the target
    #[arg(long, value_name = "WHAT", default_value = "base")]
    against: AgainstArg,
}

/// How to show a diff.
#[derive(Args)]
pub struct Style {
    /// Show the number of changed lines per file
    #[arg(long)]
    stat: bool,
    /// Show only file names
    #[arg(long, conflicts_with = "stat")]
    name_only: bool,
    /// Compare words instead of lines
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "plain")]
    word_diff: Option<WordDiffArg>,
    /// Colour moved lines differently
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "default")]
    color_moved: Option<ColorMovedArg>,
    /// Ignore changes of white space
    #[arg(long, short = 'w')]
    ignore_all_space: bool,
    /// Lines of context around a change
    #[arg(long, short = 'U', value_name = "LINES")]
    unified: Option<u32>,
}

#[derive(Clone, Copy, ValueEnum)]
enum WordDiffArg {
    Plain,
    Color,
    Porcelain,
    None,
}

#[derive(Clone, Copy, ValueEnum)]
enum ColorMovedArg {
    No,
    Default,
    Plain,
    Blocks,
    Zebra,
    DimmedZebra,
}

impl Style {
    /// The style that was asked for.
    pub fn wanted(&self, context: &Context<'_>) -> DiffStyle {
        match (context.ui.is_json(), self.stat, self.name_only) {
            (true, ..) => DiffStyle::Files,
            (_, true, _) => DiffStyle::Stat,
            (_, _, true) => DiffStyle::Names,
            _ => DiffStyle::Patch,
        }
    }

    /// What git shall do otherwise than usual.
    pub fn options(&self) -> DiffOptions {
        DiffOptions {
            word_diff: self.word_diff.map(|mode| match mode {
                WordDiffArg::Plain => WordDiff::Plain,
                WordDiffArg::Color => WordDiff::Color,
                WordDiffArg::Porcelain => WordDiff::Porcelain,
                WordDiffArg::None => WordDiff::None,
            }),
            color_moved: self.color_moved.map(|mode| match mode {
                ColorMovedArg::No => ColorMoved::No,
                ColorMovedArg::Default => ColorMoved::Default,
                ColorMovedArg::Plain => ColorMoved::Plain,
                ColorMovedArg::Blocks => ColorMoved::Blocks,
                ColorMovedArg::Zebra => ColorMoved::Zebra,
                ColorMovedArg::DimmedZebra => ColorMoved::DimmedZebra,
            }),
            ignore_all_space: self.ignore_all_space,
            unified: self.unified,
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
            options: self.style.options(),
            reader: context.ui.reader(),
        })?;
        print(context, &answer)
    }
}

/// Prints what changed: on a terminal through the user's pager.
pub fn print(context: &Context<'_>, diff: &ShownDiff) -> Result<u8, Failure> {
    if diff.truncated {
        context.warn("the output is truncated; the rest was left out");
    }
    if context.ui.is_json() {
        return context.ui.show(diff, |_| Ok(()));
    }
    context.ui.page(diff, |_| Ok(()))?;
    Ok(exit::DONE)
}
