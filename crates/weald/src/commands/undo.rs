//! `weald undo`

use std::io::{self, Write};

use clap::Args;
use weald_app::landing::{Mode, work_landings};
use weald_app::{Failure, Ground, LandRequest, Landings, Undone, Upkeep};
use weald_core::id::{LandingId, Seq};
use weald_core::landing::LandingStatus;
use weald_core::undo::{Operation, Way};
use weald_sandbox::{catch_hangup, catch_interrupts};

use super::land::{answer_one, short};
use crate::context::Context;
use crate::ui::{ACCENT, Fields, Out, Table, ago, clean, paint};

/// How many operations are listed.
const LISTED: usize = 20;

/// Undo weald's last operation in this repository
///
/// Undoes a removal, a whole clean-up, a landing (by a revert, through the queue and the gate), an unbinding or a lock. Run
/// it again to undo the operation before.
///
/// Refused if the previous state can't be restored exactly. Without EVENT, also refused if the last operation can't be
/// undone any more, was done by another session, or is a landing that others followed.
#[derive(Args)]
pub struct Undo {
    /// Event that began the operation (see `weald undo --list`)
    #[arg(value_name = "EVENT")]
    event: Option<Seq>,
    /// Show the operation without undoing it
    #[arg(long)]
    dry_run: bool,
    /// List operations that can be undone, newest first
    #[arg(long, conflicts_with_all = ["event", "dry_run"])]
    list: bool,
}

impl Undo {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if self.list {
            return list(context);
        }
        if !self.dry_run {
            context.refuse_agent("weald undo")?;
        }
        let ground = context.landing_ground()?;
        let trees = ground.trees(context)?;
        let chosen = match self.event {
            Some(event) => Upkeep::new(&trees).operation(event)?,
            None => Upkeep::new(&trees).last_operation()?,
        };
        if self.dry_run {
            let notes = Upkeep::new(&trees).require_undoable(&chosen)?;
            return would(context, &chosen, &notes);
        }
        match &chosen.way {
            Way::Revert { landing, .. } => {
                let landing = *landing;
                undo_landing(context, ground, landing, &chosen)
            }
            _ => {
                let undone = Upkeep::new(&trees).undo(&chosen)?;
                context.tell(&ground.engine);
                answer(context, &chosen, &undone)
            }
        }
    }
}

fn would(context: &Context<'_>, chosen: &Operation, notes: &[String]) -> Result<u8, Failure> {
    context.ui.answer(
        || {
            Fields::new()
                .with("would_undo", chosen)
                .with("notes", &notes)
        },
        |out| {
            let how = match &chosen.way {
                Way::Revert { .. } => ", if its revert passes the queue and the gate",
                _ => "",
            };
            writeln!(out, "would undo {chosen}{how}")?;
            told_notes(out, notes)
        },
    )
}

/// Reverts by the queue; what does not land is told as `weald revert` tells it.
fn undo_landing(
    context: &Context<'_>,
    ground: Ground,
    landing: LandingId,
    chosen: &Operation,
) -> Result<u8, Failure> {
    catch_interrupts();
    catch_hangup();
    let queued = Landings::new(&ground.trees(context)?).queue_revert(landing)?;
    let request = LandRequest::default();
    let worked = work_landings(context, ground, &[queued.id], &request, Mode::Work)?;
    let revert = &worked.landings[0];
    if revert.status != LandingStatus::Landed {
        let code = answer_one(context, &worked.ground, revert)?;
        return Ok(worked.exit.unwrap_or(code));
    }
    let trees = worked.ground.trees(context)?;
    let undone = Upkeep::new(&trees).undo_landed(chosen, revert)?;
    context.tell(&worked.ground.engine);
    for kept in &revert.kept_changes {
        let warning = format!("{}; get it back: {}", kept.text(), kept.command);
        context.warn(&warning);
    }
    answer(context, chosen, &undone)
}

fn list(context: &Context<'_>) -> Result<u8, Failure> {
    let ground = context.ground()?;
    let found = Upkeep::new(&ground.trees(context)?).undoable(LISTED)?;
    context.ui.answer(
        || Fields::new().with("operations", &found),
        |out| {
            if found.is_empty() {
                return writeln!(out, "Nothing to undo.");
            }
            let mut table = Table::new(&["EVENT", "AGE", "WHAT"]);
            for operation in &found {
                let when = ago(operation.time, context.now());
                table.row(vec![
                    (operation.event.to_string(), ACCENT),
                    (when, Default::default()),
                    (operation.to_string(), Default::default()),
                ]);
            }
            table.print(out)
        },
    )
}

fn answer(context: &Context<'_>, chosen: &Operation, undone: &Undone) -> Result<u8, Failure> {
    context.ui.answer(
        || {
            Fields::new()
                .with("undone", &undone.undone)
                .with("event", &undone.event)
                .with("by", &undone.by)
                .with("at", &undone.at)
                .with("trees", &undone.trees)
                .with_some("task", undone.task.as_ref())
                .with_some("landing", undone.landing.as_ref())
                .with_some("revert", undone.revert.as_ref())
                .with("notes", &undone.notes)
        },
        |out| told(out, chosen, undone),
    )
}

fn told(out: &mut Out, chosen: &Operation, undone: &Undone) -> io::Result<()> {
    writeln!(out, "undid {chosen}")?;
    if let Some(by) = &undone.revert {
        let commit = short(by.commit.as_deref().unwrap_or_default());
        let (target, landing) = (clean(&by.target), by.landing);
        writeln!(out, "  on {target} as {commit} (landing {landing})")?;
    }
    for view in &undone.trees {
        let tree = &view.tree;
        let name = paint(ACCENT, &tree.name);
        writeln!(out, "  {name} is as before: {}", tree.path.display())?;
    }
    if let Some(task) = &undone.task {
        let tree = task.worktree.as_ref();
        let tree = tree.map_or(String::new(), |tree| format!(", worktree {tree}"));
        writeln!(out, "  task {} is {}{tree}", task.id, task.status)?;
    }
    told_notes(out, &undone.notes)
}

fn told_notes(out: &mut Out, notes: &[String]) -> io::Result<()> {
    for note in notes {
        writeln!(out, "  {}", clean(note))?;
    }
    Ok(())
}
