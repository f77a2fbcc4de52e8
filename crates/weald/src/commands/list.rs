//! `weald list`

use std::io::{self, Write};

use clap::Args;
use weald_core::Timestamp;
use weald_engine::{Dirty, TreeView};

use crate::context::Context;
use crate::errors::Failure;
use crate::ui::{ACCENT, DIM, Fields, Out, Table, ago};

/// List trees: fast, from what is known
///
/// Whether a tree is dirty comes from the last look, and may be old; --fresh looks now.
#[derive(Args)]
pub struct List {
    /// Look into every tree now
    #[arg(long)]
    fresh: bool,
}

impl List {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let views = match self.fresh {
            true => {
                let progress = context.ui.progress("looking");
                let views = trees.list_fresh()?;
                drop(progress);
                views
            }
            false => trees.list()?,
        };
        print(context, &views)
    }
}

/// The answer: all of them.
pub fn print(context: &Context<'_>, views: &[TreeView]) -> Result<u8, Failure> {
    let now = context.now();
    context.ui.answer(
        || Fields::new().with("trees", &views),
        |out| match views.is_empty() {
            true => writeln!(out, "No active worktrees. Make one: weald new NAME"),
            false => print_table(out, views, now),
        },
    )
}

fn print_table(out: &mut Out, views: &[TreeView], now: Timestamp) -> io::Result<()> {
    let mut table = Table::new(&["NAME", "STATUS", "DIRTY", "TASK", "AGE", "BRANCH", "PATH"]);
    for view in views {
        let tree = &view.tree;
        let task = tree.task.as_ref().map(|task| format!("#{task}"));
        let dirty = match (view.exists, view.dirty) {
            (false, _) => "gone",
            (true, Dirty::Known(true)) => "dirty",
            (true, Dirty::Known(false)) => "clean",
            (true, Dirty::Unknown) => "?",
        };
        let mut status = tree.status.as_str().to_owned();
        for (mark, set) in [
            ("locked", tree.locked.is_some()),
            ("diverged", tree.diverged),
            ("running", !tree.runs.is_empty()),
            ("sandbox off", tree.sandbox.as_deref() == Some("off")),
            (
                "sandbox landlock",
                tree.sandbox.as_deref() == Some("landlock"),
            ),
            ("unimported", view.unimported),
        ] {
            if set {
                status.push_str(&format!(", {mark}"));
            }
        }
        table.row(vec![
            (tree.name.to_string(), ACCENT),
            (status, Default::default()),
            (dirty.to_owned(), Default::default()),
            (task.unwrap_or_default(), Default::default()),
            (ago(tree.created_at, now), Default::default()),
            (tree.branch.clone(), Default::default()),
            (tree.path.display().to_string(), DIM),
        ]);
    }
    table.print(out)
}
