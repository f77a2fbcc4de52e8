//! `weald list`

use std::io::{self, Write};

use clap::Args;
use weald_app::operations::looking::ListTrees;
use weald_app::{Dirty, Failure, ForeignTree, TreeView};
use weald_core::Timestamp;

use crate::context::Context;
use crate::ui::{ACCENT, DIM, Out, Table, ago, clean};

/// List worktrees
///
/// Fast, from recorded state. A dirty flag may be out of date; --fresh checks every worktree now.
#[derive(Args)]
pub struct List {
    /// Check every worktree now
    #[arg(long)]
    fresh: bool,
    /// Include worktrees created by git or another tool
    #[arg(long)]
    all: bool,
}

impl List {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(ListTrees {
            fresh: self.fresh,
            all: self.all,
        })?;
        let (views, now) = (&answer.trees, context.now());
        let foreign = answer.foreign.as_deref().unwrap_or_default();
        context.ui.show(&answer, |out| {
            match (views.is_empty(), foreign.is_empty()) {
                (true, true) => return nothing(out),
                (true, false) => {}
                (false, _) => print_table(out, views, now)?,
            }
            if !views.is_empty() && !foreign.is_empty() {
                writeln!(out)?;
            }
            print_foreign(out, foreign)
        })
    }
}

fn print_foreign(out: &mut Out, foreign: &[ForeignTree]) -> io::Result<()> {
    if foreign.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["NAME", "STATUS", "BRANCH", "PATH"]);
    for one in foreign {
        let mut status = one.kind.clone();
        for (mark, set) in [("gone", !one.exists), ("locked", one.locked.is_some())] {
            if set {
                status.push_str(&format!(", {mark}"));
            }
        }
        let branch = one
            .branch
            .clone()
            .unwrap_or_else(|| "(detached)".to_owned());
        table.row(vec![
            (clean(&one.name), ACCENT),
            (status, Default::default()),
            (clean(&branch), Default::default()),
            (clean(&one.path.display().to_string()), DIM),
        ]);
    }
    table.print(out)?;
    writeln!(
        out,
        "adopt one: weald adopt PATH; all of them: weald adopt --all"
    )
}

/// Says that there is none.
pub fn nothing(out: &mut Out) -> io::Result<()> {
    writeln!(out, "No active worktrees. Create one: weald new NAME")
}

fn print_table(out: &mut Out, views: &[TreeView], now: Timestamp) -> io::Result<()> {
    let mut table = Table::new(&["NAME", "STATUS", "DIRTY", "TASK", "AGE", "BRANCH", "PATH"]);
    for view in views {
        let tree = &view.tree;
        let task = tree.task.as_ref().map(|task| format!("#{task}"));
        let dirty = match (view.exists, view.dirty) {
            (false, _) if view.is_replaced() => "replaced",
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
