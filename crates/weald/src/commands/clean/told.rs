//! A clean in words.

use std::io::{self, Write};

use weald_app::{CleanReport, Orphan, OrphanOutcome};
use weald_core::Timestamp;
use weald_core::clean::Blocker;

use super::words;
use crate::ui::{ACCENT, DIM, HEADING, Out, Table, ago, clean_line, joined, paint, wrapped};

/// Everything that a person wants to know, the most wanted first.
pub fn told(out: &mut Out, report: &CleanReport, again: &str, now: Timestamp) -> io::Result<()> {
    if report.candidates.is_empty() && report.skipped.is_empty() && report.orphans.is_empty() {
        return writeln!(out, "No worktrees, so nothing to clean.");
    }
    candidates(out, report, now)?;
    skipped(out, report, now)?;
    if !report.orphans.is_empty() {
        writeln!(out, "\n{}", paint(HEADING, "Orphans"))?;
        for orphan in &report.orphans {
            told_orphan(out, orphan)?;
        }
    }
    stale(out, report, now)?;
    for failed in &report.failed {
        let (tree, error) = (clean_line(&failed.tree), joined(&failed.error));
        writeln!(out, "\n{} was kept: {error}", paint(ACCENT, tree))?;
    }
    writeln!(out)?;
    ending(out, report, again)
}

fn used(at: Option<Timestamp>, now: Timestamp) -> String {
    match at {
        Some(at) if at <= now => ago(at, now),
        _ => "?".to_owned(),
    }
}

fn candidates(out: &mut Out, report: &CleanReport, now: Timestamp) -> io::Result<()> {
    if report.candidates.is_empty() {
        return writeln!(out, "No worktrees to remove.");
    }
    let title = match report.applied {
        true => "Moved to the trash, unless noted below",
        false => "Can be removed",
    };
    writeln!(out, "{}", paint(HEADING, title))?;
    let mut table = Table::new(&["NAME", "BECAUSE", "UNUSED", "PATH"]);
    for one in &report.candidates {
        let because = one.reason.as_str().replace('_', " ");
        table.row(vec![
            (one.tree.to_string(), ACCENT),
            (because, Default::default()),
            (used(one.last_used_at, now), Default::default()),
            (one.path.display().to_string(), DIM),
        ]);
    }
    table.print(out)
}

fn skipped(out: &mut Out, report: &CleanReport, now: Timestamp) -> io::Result<()> {
    if report.skipped.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", paint(HEADING, "Kept"))?;
    let mut table = Table::new(&["NAME", "UNUSED", "BECAUSE"]);
    for one in &report.skipped {
        let blockers: Vec<_> = one.blockers.iter().map(|word| word.as_str()).collect();
        let mut because = blockers.join(", ");
        if !one.looked {
            because.push_str(" (not inspected)");
        }
        table.row(vec![
            (one.tree.to_string(), ACCENT),
            (used(one.last_used_at, now), Default::default()),
            (because, Default::default()),
        ]);
    }
    table.print(out)?;
    for one in report.skipped.iter().filter(|one| !one.notes.is_empty()) {
        let notes = format!("{}: {}", one.tree, one.notes.join("; "));
        writeln!(out, "  {}", paint(DIM, wrapped(&notes, 4)))?;
    }
    explained(out, report)
}

/// Every word that was said, once, with what helps.
fn explained(out: &mut Out, report: &CleanReport) -> io::Result<()> {
    for blocker in Blocker::ALL {
        let all = report.skipped.iter();
        let mut kept = all.filter(|one| one.blockers.contains(&blocker));
        let Some(first) = kept.next() else {
            continue;
        };
        let name = match kept.next() {
            None => first.tree.to_string(),
            Some(_) => "NAME".to_owned(),
        };
        let help = words::help(blocker, &name);
        let help = help.map(|help| format!(": {help}")).unwrap_or_default();
        let (word, meaning) = (blocker.as_str(), words::meaning(blocker));
        let line = format!("{word} = {meaning}{help}");
        writeln!(out, "  {}", wrapped(&line, 4))?;
    }
    Ok(())
}

fn told_orphan(out: &mut Out, orphan: &Orphan) -> io::Result<()> {
    let what = format!("{}: {}", orphan.path.display(), orphan.what);
    writeln!(out, "{}", wrapped(&what, 2))?;
    let would = match (&orphan.trash, orphan.outcome) {
        (Some(place), _) => format!(
            "moved to the trash; to restore it: mv {} {}",
            place.display(),
            orphan.path.display()
        ),
        (None, Some(_)) => {
            let name = &orphan.name;
            format!(
                "removed its record; its commits are kept; to create a new one: weald new {name}"
            )
        }
        (None, None) if orphan.acts => format!("--orphans --apply: {}", orphan.would),
        (None, None) => orphan.would.clone(),
    };
    writeln!(out, "  {}", paint(DIM, wrapped(&would, 2)))
}

fn stale(out: &mut Out, report: &CleanReport, now: Timestamp) -> io::Result<()> {
    if report.stale.is_empty() {
        return Ok(());
    }
    let names = report.stale.iter().map(|one| {
        let name = paint(ACCENT, &one.tree);
        format!("{name} ({})", ago(one.last_used_at, now))
    });
    let names: Vec<_> = names.collect();
    writeln!(out, "\nUnused for a long time: {}", names.join(", "))
}

fn ending(out: &mut Out, report: &CleanReport, again: &str) -> io::Result<()> {
    let orphans = report.orphans.iter();
    let acting = orphans.clone().filter(|orphan| orphan.acts).count();
    let apart = match again.contains("--orphans") {
        true => acting,
        false => 0,
    };
    if !report.applied {
        return match (report.candidates.len(), apart) {
            (0, 0) => writeln!(
                out,
                "Nothing was changed, and --apply would remove nothing."
            ),
            (many, 0) => writeln!(
                out,
                "Nothing was changed. To move {} to the trash: {again}",
                count(many, "worktree", "worktrees")
            ),
            (many, apart) => writeln!(
                out,
                "Nothing was changed. To remove {} and {}: {again}",
                count(many, "worktree", "worktrees"),
                count(apart, "orphan", "orphans")
            ),
        };
    }
    let trees = report.removed.iter();
    let trees = trees.filter(|taken| taken.outcome == "trashed").count();
    let forgotten = report.removed.len() - trees;
    let moved = orphans.filter(|one| one.outcome == Some(OrphanOutcome::Trashed));
    let moved = moved.count();
    if trees + forgotten + moved == 0 {
        return writeln!(out, "No worktrees were removed.");
    }
    if forgotten > 0 {
        let records = count(forgotten, "record", "records");
        writeln!(out, "Removed {records}.")?;
    }
    if moved > 0 {
        let directories = count(moved, "directory", "directories");
        writeln!(out, "Moved {directories} to the trash.")?;
    }
    if trees > 0 {
        let place = report.trash.as_ref().map(|path| path.display().to_string());
        let place = place.map(|path| format!(": {path}")).unwrap_or_default();
        let trees = count(trees, "worktree", "worktrees");
        writeln!(out, "Moved {trees} to the trash{place}")?;
        writeln!(
            out,
            "To restore all: weald undo; to restore one: weald restore ID"
        )?;
    }
    Ok(())
}

fn count(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{number} {many}"),
    }
}
