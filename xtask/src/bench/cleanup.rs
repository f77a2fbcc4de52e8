//! Clean-up: what a look at a thousand trees costs, and removing many large ones against `git worktree remove`.
//!
//! All trees are made before anything goes. What weald removes waits in the trash while the rivals take turns; what git
//! removes is deleted, and nothing is created after that. git's trees are full copies, so there are fewer of them, and its
//! figure is the median of one, as often as weald removes.

use std::io;

use serde_json::Value;
use tempfile::TempDir;

use super::trees::ground::{Format, Ground};
use super::trees::rivals::{Field, Made, Tools, run as run_command};
use super::trees::table::{Goal, Row, Table};
use super::trees::{middle, run_alone};
use super::{TableOptions, release_binary, say};

/// How often a look is repeated.
const LOOKS: usize = 5;

/// Trees that go one by one in one turn.
const TURN: usize = 10;

/// How many turns there are; all that one `clean` takes goes after the first.
const TURNS: usize = 3;

/// How many trees there are.
struct Scale {
    trees: usize,
    stale: usize,
    removed: usize,
    files: usize,
    label: &'static str,
}

/// Runs it all and prints the table.
pub fn run_all(options: &TableOptions) -> io::Result<()> {
    if rustix::process::geteuid().is_root() && !options.alone {
        run_alone();
    }
    let tools = Tools {
        weald: release_binary()?,
        peer: None,
        lab: TempDir::with_prefix("weald-bench-")?,
    };
    let scale = match options.quick {
        true => Scale {
            trees: 40,
            stale: 12,
            removed: 10,
            files: 1_000,
            label: "1k",
        },
        false => Scale {
            trees: 1_000,
            stale: 300,
            removed: 100,
            files: 10_000,
            label: "10k",
        },
    };
    let mut table = Table::new(options.only.clone());
    let done = look(&mut table, &tools, &scale);
    table.stage(done);
    let done = remove(&mut table, &tools, &scale);
    table.stage(done);
    table.close()
}

/// A dry run of clean and a doctor, with many trees there.
fn look(table: &mut Table, tools: &Tools, scale: &Scale) -> io::Result<()> {
    let name = |what| {
        format!(
            "{} trees, {} of them stale: {what}",
            scale.trees, scale.stale
        )
    };
    let [clean, doctor] = ["clean, dry run", "doctor"].map(name);
    if !table.wants(&[&clean, &doctor]) {
        return Ok(());
    }
    let ground = Ground::usual(tools.lab.path(), 8)?;
    let field = Field::new(tools, &ground, 20)?;
    for number in 0..scale.trees {
        match number < scale.stale {
            true => stale_tree(&field)?,
            false => run_command(&mut field.weald_new("any").0)?,
        }
    }
    let (mut cleans, mut doctors) = (Vec::new(), Vec::new());
    for _ in 0..LOOKS {
        let (wall, answer) =
            field.timed(&mut field.weald(&["clean", "--min-age", "0", "--json"]))?;
        let answer: Value = serde_json::from_str(&answer)?;
        let found = answer["candidates"].as_array().map_or(0, Vec::len);
        if found != scale.stale {
            return Err(io::Error::other(format!("clean found {found} trees")));
        }
        cleans.push(wall);
        doctors.push(field.timed(&mut field.weald(&["doctor"]))?.0);
    }
    let goal = [Goal::AtMost(3_000.0)];
    table.add(&Row::new(clean, Ok(middle(cleans))).goals(&goal));
    table.add(&Row::new(doctor, Ok(middle(doctors))).goals(&goal));
    Ok(())
}

/// A tree whose task was called off.
fn stale_tree(field: &Field<'_>) -> io::Result<()> {
    let (_, added) = field.timed(&mut field.weald(&["task", "add", "stale", "--json"]))?;
    let added: Value = serde_json::from_str(&added)?;
    let task = added["task"]["id"].to_string().replace('"', "");
    let mut new = field.weald_new("any").0;
    run_command(new.args(["--task", &task]))?;
    run_command(&mut field.weald(&["task", "cancel", &task]))
}

/// Large trees, removed by turns.
fn remove(table: &mut Table, tools: &Tools, scale: &Scale) -> io::Result<()> {
    let name = |what| {
        format!(
            "remove {} trees of {} files, {what}",
            scale.removed, scale.label
        )
    };
    let [at_once, each] = ["one clean", "rm by rm"].map(name);
    if !table.wants(&[&at_once, &each]) {
        return Ok(());
    }
    // Only with shared blocks is there room for as many as this; git's are full copies everywhere. On btrfs it would be
    // the first look into a snapshot that is measured: its inodes are in no cache.
    let ground = match Ground::image(tools.lab.path(), Format::Xfs, 12) {
        Ok(ground) => ground,
        Err(reason) => {
            say(&format!("{reason}: on the usual ground"));
            Ground::usual(tools.lab.path(), 24)?
        }
    };
    let field = Field::new(tools, &ground, scale.files)?;
    // With a donor there, trees share its blocks.
    field.fill(1)?;
    let singly = (TURN * TURNS).min(scale.removed);
    say(&format!(
        "`rm` and git remove {singly} trees one by one; the figure is the median, {} times",
        scale.removed
    ));
    let (mut names, mut gits): (Vec<String>, Vec<Made>) = Default::default();
    for _ in 0..singly {
        gits.push(field.git_create()?);
        let (mut new, name) = field.weald_new("any");
        run_command(&mut new)?;
        names.push(name);
    }
    for _ in 0..scale.removed {
        stale_tree(&field)?;
    }
    let (mut clean, mut removals, mut git) = (0.0, Vec::new(), Vec::new());
    for (turn, (names, gits)) in names.chunks(TURN).zip(gits.chunks(TURN)).enumerate() {
        for (name, made) in names.iter().zip(gits) {
            removals.push(field.timed(&mut field.weald(&["rm", name]))?.0);
            let mut remove = field.git(&["worktree", "remove"]);
            git.push(field.timed(remove.arg(&made.path))?.0);
        }
        if turn == 0 {
            clean = field
                .timed(&mut field.weald(&["clean", "--apply", "--min-age", "0"]))?
                .0;
        }
    }
    let left = field
        .timed(&mut field.weald(&["trash", "list", "--json"]))?
        .1;
    let left: Value = serde_json::from_str(&left)?;
    if left["trash"].as_array().map_or(0, Vec::len) != scale.removed + singly {
        return Err(io::Error::other("not all of them are in the trash"));
    }
    let all = scale.removed as f64;
    let git = middle(git) * all;
    let goal = [Goal::AtMost(20.0 * all)];
    table.add(&Row::new(at_once, Ok(clean)).git(git).goals(&goal));
    table.add(&Row::new(each, Ok(middle(removals) * all)).git(git));
    Ok(())
}
