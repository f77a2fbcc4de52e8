//! `weald doctor`

mod rebuilding;
mod told;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use weald_app::operations::Operation;
use weald_app::operations::doctor::{AdoptCopy, AdoptRestored, Examine};
use weald_app::{AdoptedCopy, Failure};
use weald_core::meant::Word;

use super::queue;
use crate::context::Context;
use crate::ui::{Out, clean};

/// Check for inconsistencies and repair weald's own state
///
/// Use it after a crash, or after moving a repository or a worktree. A part that can't be read is reported as a finding, and
/// the other checks still run. Exits 0 if no finding above info remains. docs/doctor.md explains each finding by its code.
#[derive(Args)]
pub struct Doctor {
    /// Repair findings where nothing can be lost
    #[arg(long)]
    fix: bool,
    /// Rebuild the registry from its log, git and the worktrees
    ///
    /// Without --fix, only shows the result.
    #[arg(long, conflicts_with = "places")]
    rebuild: bool,
    /// Take over restored worktrees or this copy of a repository
    #[arg(long, conflicts_with_all = ["fix", "rebuild"])]
    adopt: bool,
    /// Complete or roll back a landing whose process is gone
    ///
    /// Use it only if you know that the process has ended; weald could not find out.
    #[arg(long, value_name = "LANDING", conflicts_with_all = ["fix", "rebuild", "adopt", "places"])]
    recover: Option<Word>,
    /// New locations of moved worktrees
    #[arg(value_name = "PLACE")]
    places: Vec<PathBuf>,
}

impl Doctor {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if let Some(landing) = self.recover {
            return queue::Recover { landing }.run(context);
        }
        if self.rebuild {
            return rebuilding::run(context, self.fix);
        }
        let places = self.places;
        if self.adopt {
            return match places.is_empty() {
                true => adopt_copy(context),
                false => adopt_trees(context, places),
            };
        }
        let fix = self.fix;
        let answer = context.perform(Examine { fix, places })?;
        context
            .ui
            .show(&answer, |out| told::told(out, &answer.findings, fix))?;
        Ok(Examine::exit(&answer))
    }
}

fn adopt_trees(context: &Context<'_>, places: Vec<PathBuf>) -> Result<u8, Failure> {
    let answer = context.perform(AdoptRestored { places })?;
    context.ui.show(&answer, |out| {
        answer.trees.iter().try_for_each(|view| {
            let path = view.tree.path.display().to_string();
            let name = &view.tree.name;
            writeln!(out, "took over worktree {name} at {}", clean(&path))
        })
    })
}

fn adopt_copy(context: &Context<'_>) -> Result<u8, Failure> {
    let answer = context.perform(AdoptCopy {})?;
    context
        .ui
        .show(&answer, |out| told_copy(out, &answer.adopted))
}

fn told_copy(out: &mut Out, adopted: &AdoptedCopy) -> io::Result<()> {
    writeln!(
        out,
        "this repository has its own id now and is no longer a copy"
    )?;
    let lists = [
        ("took over", &adopted.taken),
        ("left to the original", &adopted.forgotten),
    ];
    for (what, paths) in lists {
        for path in paths {
            writeln!(out, "  {what}: {}", clean(&path.display().to_string()))?;
        }
    }
    writeln!(out, "next: weald doctor --fix")
}
