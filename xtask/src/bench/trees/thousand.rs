//! A thousand trees of the largest repository: created from spares, listed, removed.
//!
//! Only a file system with snapshots has room for so many; elsewhere it is a thousand of the smallest repository.

use std::io;

use super::ground::{Format, Ground};
use super::rivals::{Field, Made, Tools};
use super::table::{Goal, Row, Table};
use super::{Scale, Size, middle};
use crate::bench::say;

/// Spares that are made at a time, between the measured creates.
const BATCH: usize = 25;

/// Trees whose look is measured apart, to know what a removal spends on it.
const LOOKS: usize = 5;

/// Measures with the largest of these sizes that there is room for.
pub fn measure(table: &mut Table, tools: &Tools, sizes: &[Size], scale: &Scale) -> io::Result<()> {
    let [Some(smallest), Some(largest)] = [sizes.first(), sizes.last()] else {
        return Ok(());
    };
    let names = |size: &Size| {
        let name = |what| format!("{} trees of {} files: {what}", scale.many, size.label);
        ["create from a spare", "the last 100", "list", "remove"].map(name)
    };
    if !table.wants(&names(largest).each_ref().map(String::as_str)) {
        return Ok(());
    }
    let (ground, size) = match Ground::image(tools.lab.path(), Format::Btrfs, 60) {
        Ok(ground) => (ground, largest),
        Err(reason) => {
            say(&format!(
                "{} trees of {} files need snapshots ({reason}): of {} files instead",
                scale.many, largest.label, smallest.label
            ));
            (Ground::usual(tools.lab.path(), 30)?, smallest)
        }
    };
    let field = Field::new(tools, &ground, size.files)?;
    let [create, last, list, remove] = names(size);
    let made = match create_all(&field, scale.many) {
        Ok(made) => made,
        Err(error) => {
            table.add(&Row::new(create, Err(error.to_string())));
            return Ok(());
        }
    };
    let walls = |made: &[Made]| middle(made.iter().map(|made| made.wall));
    let goal = [Goal::AtMost(15.0)];
    table.add(&Row::new(create, Ok(walls(&made))).goals(&goal));
    let tail = &made[made.len().saturating_sub(100)..];
    table.add(&Row::new(last, Ok(walls(tail))).goals(&goal));
    let listed = field.timed(&mut field.weald(&["list"]))?.0;
    table.add(&Row::new(list, Ok(listed)).goals(&[Goal::AtMost(20.0)]));
    remove_all(table, &field, remove, &made)
}

fn create_all(field: &Field<'_>, count: usize) -> io::Result<Vec<Made>> {
    let mut made = Vec::new();
    let before = field.ground.used()?;
    while made.len() < count {
        field.fill(BATCH.min(count - made.len()))?;
        for _ in 0..BATCH.min(count - made.len()) {
            made.push(field.weald_create("spare")?);
        }
        let each = (field.ground.used()? - before) / made.len() as u64;
        let missing = (count - made.len()) as u64 * each;
        if missing > field.ground.free()? {
            return Err(io::Error::other(format!(
                "no room: a tree takes {} MB here",
                each >> 20
            )));
        }
    }
    Ok(made)
}

fn remove_all(table: &mut Table, field: &Field<'_>, name: String, made: &[Made]) -> io::Result<()> {
    let mut walls = Vec::new();
    let mut looks = Vec::new();
    for (number, made) in made.iter().enumerate() {
        if number < LOOKS {
            looks.push(field.status_in(made)?);
        }
        walls.push(
            field
                .timed(&mut field.weald(&["rm", &made.name, "--json"]))?
                .0,
        );
    }
    let row = Row::new(name, Ok(middle(walls)));
    table.add(&row.goals(&[Goal::AtMost(15.0 + middle(looks))]));
    Ok(())
}
