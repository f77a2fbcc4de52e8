//! A race as people and programs see it.

use std::io::{self, Write};

use serde_json::json;
use weald_app::supervision::DroppedRace;
use weald_app::{Agents, EntryView, Failure, Ground, Removed};
use weald_core::id::TaskId;
use weald_core::task::Task;

use crate::context::Context;
use crate::ui::{ACCENT, Fields, Out, Table};

/// The entries, side by side.
pub fn show(context: &Context<'_>, ground: &Ground, id: &TaskId) -> Result<u8, Failure> {
    let (task, entries) = Agents::new(&ground.trees(context)?).race(id)?;
    context.tell(&ground.engine);
    context.ui.answer(
        || {
            let race = json!({"task": task.id, "entries": entries});
            Fields::new().with("race", &race).with("task", &task)
        },
        |out| print(out, &task, &entries),
    )
}

fn print(out: &mut Out, task: &Task, entries: &[EntryView]) -> io::Result<()> {
    let heads = [
        "", "TREE", "END", "EXIT", "TIME", "FILES", "LINES", "CHECKED", "COST", "REPORT",
    ];
    let mut table = Table::new(&heads);
    for entry in entries {
        let plain = |text: String| (text, Default::default());
        let lines = match (entry.added, entry.deleted) {
            (Some(added), Some(deleted)) => format!("+{added} -{deleted}"),
            _ => String::new(),
        };
        let tree = entry.tree.as_ref().map(ToString::to_string);
        let state = match entry.picked {
            true => "picked".to_owned(),
            false => entry.state.replace('_', " "),
        };
        table.row(vec![
            (entry.entry.clone(), ACCENT),
            plain(tree.unwrap_or_default()),
            plain(state),
            plain(entry.exit.map_or(String::new(), |code| code.to_string())),
            plain(format!("{} s", entry.seconds)),
            plain(entry.files.to_string()),
            plain(lines),
            plain(entry.verification.to_owned()),
            plain(
                entry
                    .cost_usd
                    .map_or(String::new(), |cost| format!("${cost:.2}")),
            ),
            plain(entry.report.clone()),
        ]);
    }
    table.print(out)?;
    if entries.iter().all(|entry| !entry.picked) {
        let id = &task.id;
        writeln!(
            out,
            "to see one: weald diff NAME; to land one: weald race pick {id} a; to land none: weald race drop {id}"
        )?;
    }
    Ok(())
}

/// Says how to get the others back.
pub fn tell_removed(context: &Context<'_>, removed: &[Removed]) {
    for one in removed {
        let (name, id) = (&one.tree.name, one.tree.id);
        context.note(&format!("{name} is in the trash: weald restore {id}"));
    }
}

/// The answer of `race drop`.
pub fn dropped(context: &Context<'_>, dropped: &DroppedRace) -> Result<u8, Failure> {
    let DroppedRace {
        task: id,
        picked,
        removed,
    } = dropped;
    context.ui.answer(
        || {
            let race = json!({"task": id, "dropped": removed});
            Fields::new().with("race", &race)
        },
        |out| {
            for one in removed {
                let (name, id) = (&one.tree.name, one.tree.id);
                writeln!(out, "{name} is in the trash: weald restore {id}")?;
            }
            match picked {
                Some(tree) => writeln!(out, "the race of task {id} has ended; {tree} was picked"),
                None => writeln!(out, "the race of task {id} has ended; nothing landed"),
            }
        },
    )
}
