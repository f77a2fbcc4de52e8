//! `weald adopt`

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use weald_app::Failure;
use weald_app::operations::making::{AdoptTree, AdoptTrees, AdoptedTrees};
use weald_core::meant::Word;
use weald_core::tree::Tree;

use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Out, clean, paint};

/// Register a worktree that git or another tool created
///
/// The worktree itself is not changed. It becomes a linked worktree: status, diff, run, keep, rm and restore work on it.
#[derive(Args)]
pub struct Adopt {
    /// Path of the worktree
    #[arg(value_name = "PATH", required_unless_present = "all")]
    path: Option<PathBuf>,
    /// Name of the worktree (default: from its directory)
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    name: Option<String>,
    /// Task the worktree is for
    #[arg(long, value_name = "ID", conflicts_with = "all", add = completion::tasks())]
    task: Option<Word>,
    /// Branch it lands on (default: target)
    #[arg(long, value_name = "BRANCH")]
    target: Option<String>,
    /// Adopt every worktree that can be adopted
    #[arg(long, conflicts_with = "path")]
    all: bool,
}

impl Adopt {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let Some(path) = self.path else {
            let target = self.target;
            let answer = context.perform(AdoptTrees { target })?;
            return context.ui.show(&answer, |out| told_all(out, &answer));
        };
        let answer = context.perform(AdoptTree {
            path,
            name: self.name,
            task: self.task,
            target: self.target,
        })?;
        context.ui.show(&answer, |out| told(out, &answer.tree.tree))
    }
}

fn told_all(out: &mut Out, adopted: &AdoptedTrees) -> io::Result<()> {
    if adopted.trees.is_empty() && adopted.skipped.is_empty() {
        return writeln!(out, "weald already manages every worktree");
    }
    for view in &adopted.trees {
        told(out, &view.tree)?;
    }
    for one in &adopted.skipped {
        writeln!(
            out,
            "left alone: {}",
            clean(&one.path.display().to_string())
        )?;
        let hint = one.hint.as_deref().unwrap_or_default();
        writeln!(out, "  {}; {}", clean(&one.message), clean(hint))?;
    }
    Ok(())
}

fn told(out: &mut Out, tree: &Tree) -> io::Result<()> {
    let (name, path) = (paint(ACCENT, &tree.name), tree.path.display());
    writeln!(out, "{name} adopted: {path}")?;
    writeln!(
        out,
        "  branch {}, for {}; nothing in it was changed",
        tree.branch, tree.target
    )?;
    writeln!(out, "  inspect it: weald status {}", tree.name)
}
