//! `weald doctor --rebuild`

use std::io::{self, Write};
use std::path::Path;

use weald_app::operations::Operation;
use weald_app::operations::doctor::RebuildRegistry;
use weald_app::{Failure, Rebuilt};

use crate::context::Context;
use crate::ui::{Out, clean};

/// Makes the registry again beside the old one; with `apply`, in its place.
pub fn run(context: &Context<'_>, apply: bool) -> Result<u8, Failure> {
    let answer = context.perform(RebuildRegistry { apply })?;
    context.ui.show(&answer, |out| {
        told(out, &answer.rebuild, answer.applied, answer.kept.as_deref())
    })?;
    Ok(RebuildRegistry::exit(&answer))
}

fn told(out: &mut Out, rebuilt: &Rebuilt, replaced: bool, kept: Option<&Path>) -> io::Result<()> {
    if rebuilt.agrees {
        return writeln!(
            out,
            "the registry agrees with its log, git and the worktrees; nothing to do"
        );
    }
    let problem = rebuilt.problem.as_deref();
    let problem = problem.unwrap_or("it differs from its log, git or the worktrees");
    writeln!(out, "the database: {}", clean(problem))?;
    let verb = if replaced {
        "replayed"
    } else {
        "can be replayed"
    };
    write!(out, "{} events {verb}", rebuilt.events)?;
    match rebuilt.lost_events {
        0 => writeln!(out)?,
        lost => writeln!(out, ", {lost} are lost")?,
    }
    for records in &rebuilt.records {
        if records.rebuilt == 0 && records.differ == 0 || records.kind == "queue" {
            continue;
        }
        let now = match records.present {
            Some(present) => format!("{present} now, {} differ", records.differ),
            None => "unreadable now".to_owned(),
        };
        writeln!(out, "  {}: {} ({now})", records.kind, records.rebuilt)?;
    }
    for tree in &rebuilt.recovered {
        let (name, path) = (clean(&tree.name), tree.path.display().to_string());
        writeln!(
            out,
            "  worktree {name} (number {}) is in no event, found by its {}: {}",
            tree.id,
            tree.found_by,
            clean(&path)
        )?;
    }
    for note in &rebuilt.notes {
        writeln!(out, "  {}", clean(note))?;
    }
    if let Some(kept) = kept {
        let is_part = ["-wal", "-shm"].map(|suffix| kept.to_string_lossy().ends_with(suffix));
        let what = match is_part.contains(&true) {
            true => "only its log was left of the old database, and is kept",
            false => "the old database is kept",
        };
        writeln!(out, "{what}: {}", kept.display())?;
    }
    match replaced {
        true => writeln!(out, "next: weald doctor --fix"),
        false => writeln!(out, "put it in place: weald doctor --rebuild --fix"),
    }
}
