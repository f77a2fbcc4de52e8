//! `weald usage`

use std::io::{self, Write};

use clap::Args;
use weald_app::operations::Operation;
use weald_app::operations::cleaning::MeasureUsage;
use weald_app::{Failure, Freeing, UsageReport};
use weald_core::config::parse_size;

use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Out, Table, clean, paint, size, wrapped};

/// Show disk usage of worktrees, and free space with --free
///
/// Lists build directories (usage.regenerable) with their size if git ignores them and they contain no tracked files.
/// --free selects such directories in worktrees that are unused and were not used within usage.min_age, the longest unused
/// first, until SIZE is free on that disk.
///
/// --apply deletes the selected directories and nothing else. Exits 1 if it could not free enough space.
#[derive(Args)]
pub struct Usage {
    /// Worktrees, tasks, agents or branches (default: all)
    #[arg(value_name = "NAME", add = completion::trees())]
    pub names: Vec<String>,
    /// Space that should be free, for example 20G
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub free: Option<u64>,
    /// Delete the directories that --free selected
    #[arg(long, requires = "free")]
    pub apply: bool,
}

impl Usage {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(MeasureUsage {
            trees: self.names,
            free: self.free,
            apply: self.apply,
        })?;
        context.ui.show(&answer, |out| told(out, &answer.usage))?;
        Ok(MeasureUsage::exit(&answer))
    }
}

fn told(out: &mut Out, report: &UsageReport) -> io::Result<()> {
    let mut table = Table::new(&["WORKTREE", "SIZE", "ALONE", "MADE BY BUILDS"]);
    for tree in &report.trees {
        let folders: Vec<_> = tree
            .regenerable
            .iter()
            .map(|folder| format!("{} {}", folder.path, size(folder.bytes)))
            .collect();
        let whole = match (&tree.problem, tree.whole) {
            (Some(_), _) => "unknown".to_owned(),
            (None, true) => size(tree.bytes),
            (None, false) => format!("over {}", size(tree.bytes)),
        };
        let last = match &tree.problem {
            Some(problem) => problem.clone(),
            None => folders.join(", "),
        };
        table.row(vec![
            (tree.tree.to_string(), ACCENT),
            (whole, Default::default()),
            (
                tree.exclusive.map_or("?".to_owned(), size),
                Default::default(),
            ),
            (last, DIM),
        ]);
    }
    if !report.trees.is_empty() {
        table.print(out)?;
    }
    let sum = format!(
        "worktrees {}, trash {}, pool {}, vault {}, records {}; free: {}",
        size(report.total),
        size(report.trash),
        size(report.pool),
        size(report.vault),
        size(report.private),
        size(report.free)
    );
    writeln!(out, "{}", wrapped(&sum, 2))?;
    if report.would_free > 0 {
        let freed = size(report.would_free);
        writeln!(out, "finished work takes {freed}; to free it: weald clean")?;
    }
    match &report.freeing {
        Some(freeing) => told_freeing(out, freeing),
        None => Ok(()),
    }
}

fn told_freeing(out: &mut Out, freeing: &Freeing) -> io::Result<()> {
    let done = match freeing.applied {
        true => "deleted",
        false => "would be deleted",
    };
    for one in &freeing.evicted {
        let path = clean(&one.path);
        writeln!(out, "{done}: {path} of {} ({})", one.tree, size(one.bytes))?;
    }
    for kept in &freeing.kept {
        let line = format!("{} is left alone: {}", kept.tree, kept.why);
        writeln!(out, "{}", paint(DIM, clean(&line)))?;
    }
    if freeing.short == 0 && freeing.evicted.is_empty() {
        return writeln!(out, "{} are free already", size(freeing.wanted));
    }
    if !freeing.applied && !freeing.evicted.is_empty() {
        writeln!(out, "nothing was deleted; to delete, add --apply")?;
    }
    if freeing.short > 0 {
        let missing = match freeing.applied {
            true => "are missing",
            false => "would be missing",
        };
        writeln!(
            out,
            "{} {missing}; further ways: weald clean --apply, weald clean --trash --apply, weald pool drain",
            size(freeing.short)
        )?;
    }
    Ok(())
}
