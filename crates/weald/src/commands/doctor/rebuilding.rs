//! `weald doctor --rebuild`

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use weald_app::{Failure, Present, Rebuilt, SystemClock, Upkeep, exit, succeed};
use weald_core::store::Store;
use weald_store::Rebuilding;

use crate::context::Context;
use crate::ui::{Fields, Out, clean};

/// Makes the registry again beside the old one; with `fix`, in its place.
pub fn run(context: &Context<'_>, fix: bool) -> Result<u8, Failure> {
    let place = context.place()?;
    if place.private().exists() {
        context.require_original(&place)?;
    }
    let progress = context.stage("looking");
    let clock = Arc::new(SystemClock);
    let (rebuilding, store) = Rebuilding::begin(place.private(), clock.clone())?;
    let remains = rebuilding.remains(clock);
    let ground = context.ground_on(place, Box::new(store))?;
    let present = Present {
        store: remains.store.as_ref().map(|store| store as &dyn Store),
        events: remains.events.clone(),
        problem: remains.problem.clone(),
    };
    let rebuilt = Upkeep::new(&ground.trees(context)?).rebuild(present)?;
    drop((ground, remains, progress));
    let replaces = fix && !rebuilt.agrees;
    if replaces && !rebuilt.at_work.is_empty() {
        return Err(at_work(&rebuilt));
    }
    let kept = match replaces {
        true => succeed(Box::new(rebuilding))?,
        false => None,
    };
    if replaces {
        // Agents whose supervisor is gone are noticed, and the journal goes on, as after a crash.
        let engine = context.engine()?;
        engine.catch_up(weald_core::store::Durability::Power);
        context.tell(&engine);
    }
    context.ui.answer(
        || {
            Fields::new()
                .with("rebuild", &rebuilt)
                .with("applied", &replaces)
                .with("kept", &kept)
        },
        |out| told(out, &rebuilt, replaces, kept.as_deref()),
    )?;
    Ok(match rebuilt.agrees || replaces {
        true => exit::DONE,
        false => exit::REFUSED,
    })
}

fn at_work(rebuilt: &Rebuilt) -> Failure {
    let who = rebuilt.at_work.join(", ");
    let message = format!("the registry is in use by {who}; nothing was changed");
    Failure::new("busy", exit::BUSY, message)
        .hint("let them end, or stop them (weald agent stop), then run it again")
        .details(json!({"at_work": rebuilt.at_work}))
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
