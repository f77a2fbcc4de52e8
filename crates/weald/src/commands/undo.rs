//! `weald undo`

use std::io::{self, Write};

use clap::Args;
use weald_app::Failure;
use weald_app::operations::Operation;
use weald_app::operations::undo::{self, ListUndoable, Undid, UndoneOne, WouldUndo};
use weald_core::id::Seq;
use weald_core::undo::Way;

use super::land::told_one;
use crate::context::Context;
use crate::ui::{ACCENT, Out, Table, ago, clean, paint, short};

/// Undo weald's last operation in this repository
///
/// Undoes a removal, a whole clean-up, a landing, a revert, an unbinding or a lock. Landings and reverts are undone by a
/// new revert, through the queue and the gate. Operations of agents that you started are yours. Run it again to undo the
/// operation before.
///
/// Says what it will do before it changes the target branch; on a terminal it asks first.
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
    /// Skip the confirmation
    #[arg(long, conflicts_with_all = ["dry_run", "list"])]
    yes: bool,
}

impl Undo {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if self.list {
            return list(context);
        }
        let undid = context.perform(undo::Undo {
            event: self.event,
            dry_run: self.dry_run,
            ask: !self.yes,
        })?;
        context.ui.show(&undid, |out| match &undid {
            Undid::Would(would) => told_would(out, would),
            Undid::Done(done) => told(out, done),
            Undid::NotLanded(one) => told_one(out, &one.landing),
        })?;
        Ok(undo::Undo::exit(&undid))
    }
}

fn list(context: &Context<'_>) -> Result<u8, Failure> {
    let answer = context.perform(ListUndoable {})?;
    context.ui.show(&answer, |out| {
        if answer.operations.is_empty() {
            return writeln!(out, "Nothing to undo.");
        }
        let mut table = Table::new(&["EVENT", "AGE", "WHAT"]);
        for operation in &answer.operations {
            let when = ago(operation.time, context.now());
            table.row(vec![
                (operation.event.to_string(), ACCENT),
                (when, Default::default()),
                (operation.to_string(), Default::default()),
            ]);
        }
        table.print(out)
    })
}

fn told_would(out: &mut Out, would: &WouldUndo) -> io::Result<()> {
    let how = match &would.would_undo.way {
        Way::Revert { .. } => ", if its revert passes the queue and the gate",
        _ => "",
    };
    writeln!(out, "would undo {}{how}", would.would_undo)?;
    told_notes(out, &would.notes)
}

fn told(out: &mut Out, UndoneOne { undone, what }: &UndoneOne) -> io::Result<()> {
    writeln!(out, "undid {what}")?;
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
