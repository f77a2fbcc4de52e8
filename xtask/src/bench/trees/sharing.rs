//! File systems that share blocks: what a tree costs there, and snapshots.

use std::io;

use super::ground::{Format, Ground};
use super::rivals::{Field, Tools};
use super::table::{Goal, Row, Table, Unit};
use super::{Samples, Size, middle};
use crate::bench::say;

/// Trees of each whose disk space is added up.
const TREES: u64 = 3;

/// Measures on each of them that can be made here.
pub fn measure(table: &mut Table, tools: &Tools, size: &Size) -> io::Result<()> {
    for format in [Format::Xfs, Format::Btrfs] {
        let disk = format!("disk a tree, {} files, {format}", size.label);
        let snapshot = format!("create, {} files, {format} snapshot", size.label);
        let snapshot = Some(snapshot).filter(|_| format == Format::Btrfs);
        let names: Vec<&str> = [Some(disk.as_str()), snapshot.as_deref()]
            .into_iter()
            .flatten()
            .collect();
        if !table.wants(&names) {
            continue;
        }
        let ground = match Ground::image(tools.lab.path(), format, size.gigabytes) {
            Ok(ground) => ground,
            Err(reason) => {
                say(&format!("skipped: {} ({reason})", names.join("; ")));
                continue;
            }
        };
        let field = Field::new(tools, &ground, size.files)?;
        field.git_create()?;
        field.weald_create("checkout")?;
        let filled = field.fill(0).map_err(|error| error.to_string());
        if let Some(name) = &snapshot {
            snapshots(table, &field, name, size.rounds)?;
        }
        disk_space(table, &field, &disk, filled)?;
    }
    Ok(())
}

fn snapshots(table: &mut Table, field: &Field<'_>, name: &str, rounds: usize) -> io::Result<()> {
    let (mut theirs, mut ours) = (Vec::new(), Samples::default());
    for _ in 0..rounds {
        theirs.push(field.git_create()?.wall);
        ours.take(|| field.weald_create("snapshot"));
    }
    let row = Row::new(name, ours.middle()).git(middle(theirs));
    table.add(&row.goals(&[Goal::Faster(10.0)]));
    Ok(())
}

fn disk_space(
    table: &mut Table,
    field: &Field<'_>,
    name: &str,
    filled: Result<(), String>,
) -> io::Result<()> {
    let each = |before: u64, after: u64| {
        after.saturating_sub(before) as f64 / (TREES * 1024 * 1024) as f64
    };
    let before = field.ground.used()?;
    for _ in 0..TREES {
        field.git_create()?;
    }
    let between = field.ground.used()?;
    let population = match name.ends_with("btrfs") {
        true => "snapshot",
        false => "clone",
    };
    let mut ours = Samples::default();
    ours.take_nothing(filled.map_err(io::Error::other));
    for _ in 0..TREES {
        ours.take(|| field.weald_create(population));
    }
    let after = field.ground.used()?;
    let ours = ours.middle().map(|_| each(between, after));
    let row = Row::new(name, ours).git(each(before, between));
    table.add(&row.in_unit(Unit::Mb).goals(&[Goal::Share(0.2)]));
    Ok(())
}
