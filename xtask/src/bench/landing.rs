//! Landing against plain git: merging and moving the target, importing, snapshots, and who clashes with whom.
//!
//! Rivals take turns on the same fresh file system, and figures are medians of whole commands unless the row says otherwise.
//! git is as it is; weald's side syncs what it writes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;
use weald_git::{
    Expected, MergeRequest, Merged, NewCommit, Person, RefChange, commit_tree, merge_trees,
    update_refs,
};

use super::trees::ground::Ground;
use super::trees::rivals::{Field, Made, Tools, git, run};
use super::trees::table::{Goal, Row, Table};
use super::trees::{Samples, middle, run_alone};
use super::{TableOptions, ms, release_binary, say};

/// How many files a branch changes.
const CHANGED: usize = 6;

/// A repository's size, and what is expected there.
struct Size {
    label: &'static str,
    files: usize,
    rounds: usize,
    gigabytes: u64,
    swap: f64,
    land: f64,
}

const SIZES: [Size; 2] = [
    Size {
        label: "10k",
        files: 10_000,
        rounds: 9,
        gigabytes: 10,
        swap: 8.0,
        land: 2.0,
    },
    Size {
        label: "80k",
        files: 80_000,
        rounds: 5,
        gigabytes: 20,
        swap: 30.0,
        land: 10.0,
    },
];

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
    let mut table = Table::new(options.only.clone());
    let mut sizes = Vec::from(SIZES);
    let mut branches = 50;
    if options.quick {
        sizes.truncate(1);
        sizes[0].files = 500;
        sizes[0].rounds = 3;
        branches = 10;
    }
    for size in &sizes {
        let done = landings(&mut table, &tools, size);
        table.stage(done);
    }
    let done = looks(&mut table, &tools, &sizes[0]);
    table.stage(done);
    let done = pairs(&mut table, &tools, branches);
    table.stage(done);
    say(
        "merge and swap: merge-tree, commit-tree and update-ref as weald-git runs them, core.fsync=all, in main itself; no checkout moves",
    );
    say(
        "the other rows are whole commands; `weald land --keep` looks, imports, merges, records and moves the target",
    );
    table.close()
}

/// Changes a few files and commits them.
fn commit_change(home: &Path, directory: &Path, turn: usize) -> io::Result<()> {
    for number in 0..CHANGED {
        let file = directory.join(super::trees::repository::path_of(turn * CHANGED + number));
        let text = fs::read_to_string(&file)?;
        fs::write(&file, format!("turn {turn}\n{text}"))?;
    }
    run(git(home, directory).args(["commit", "-q", "-a", "-m", &format!("turn {turn}")]))
}

fn answer(command: &mut std::process::Command) -> io::Result<String> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )),
    }
}

/// Merging and moving the target, and whole landings, in one repository.
fn landings(table: &mut Table, tools: &Tools, size: &Size) -> io::Result<()> {
    let label = size.label;
    let names = [
        format!("merge and swap, {label}"),
        format!("land, target not checked out, {label}"),
        format!("land, target checked out, {label}"),
    ];
    if !table.wants(&names.each_ref().map(String::as_str)) {
        return Ok(());
    }
    let ground = Ground::usual(tools.lab.path(), size.gigabytes)?;
    let field = Field::new(tools, &ground, size.files)?;
    field.fill(0)?;
    let home = ground.path();
    let main = field.repository.clone();
    let (mut by_git, mut swapped) = (Vec::new(), Vec::new());
    let (mut aside, mut here) = (Samples::default(), Samples::default());
    let mut turn = 0;
    for _ in 0..size.rounds {
        // git: a branch of the same size, merged in the checkout.
        turn += 1;
        run(git(home, &main).args(["switch", "-q", "-c", &format!("git-{turn}")]))?;
        commit_change(home, &main, turn)?;
        run(git(home, &main).args(["switch", "-q", "main"]))?;
        ground.settle()?;
        let branch = format!("git-{turn}");
        by_git.push(
            field
                .timed(&mut field.git(&["merge", "-q", "--no-ff", "--no-edit", &branch]))?
                .0,
        );
        // The same without a checkout.
        turn += 1;
        let branch = format!("swap-{turn}");
        run(git(home, &main).args(["switch", "-q", "-c", &branch]))?;
        commit_change(home, &main, turn)?;
        run(git(home, &main).args(["switch", "-q", "--detach", "main"]))?;
        ground.settle()?;
        swapped.push(swap(home, &main, &branch)?);
        // Whole landings: the main checkout is elsewhere, then on the target.
        turn += 1;
        aside.take(|| land(&field, turn));
        run(git(home, &main).args(["switch", "-q", "main"]))?;
        turn += 1;
        here.take(|| land(&field, turn));
    }
    let git = middle(by_git);
    let [swap_row, aside_row, here_row] = names;
    table.add(
        &Row::new(swap_row, Ok(middle(swapped)))
            .git(git)
            .goals(&[Goal::Faster(size.swap)]),
    );
    table.add(
        &Row::new(aside_row, aside.middle())
            .git(git)
            .goals(&[Goal::Faster(size.land)]),
    );
    table.add(
        &Row::new(here_row, here.middle())
            .git(git)
            .goals(&[Goal::Faster(0.9)]),
    );
    Ok(())
}

/// Milliseconds of a merge without a checkout: merged, committed, the ref moved from where it was.
fn swap(home: &Path, main: &Path, branch: &str) -> io::Result<f64> {
    let id = |name: &str| answer(git(home, main).args(["rev-parse", name]));
    let (old, theirs) = (id("main")?, id(branch)?);
    let git_dir = main.join(".git");
    let person = Person {
        name: "Bench".to_owned(),
        mail: "bench@example.com".to_owned(),
        when: None,
    };
    let begun = Instant::now();
    let request = MergeRequest {
        ours: &old,
        theirs: &theirs,
        base: None,
        attributes: &old,
    };
    let tree = match merge_trees(&git_dir, request).map_err(io::Error::other)? {
        Merged::Clean { tree } => tree,
        Merged::Conflict { .. } => return Err(io::Error::other("it conflicts")),
    };
    let commit = NewCommit {
        tree: &tree,
        parents: &[&old, &theirs],
        message: "merged\n",
        author: &person,
        committer: &person,
    };
    let new = commit_tree(&git_dir, &commit).map_err(io::Error::other)?;
    let change = RefChange {
        name: "refs/heads/main".to_owned(),
        new: Some(new),
        expected: Expected::Holds(old),
    };
    update_refs(&git_dir, &[change], "bench").map_err(io::Error::other)?;
    Ok(ms(begun.elapsed()))
}

/// A sealed tree, however it is made; nobody measures that here.
fn grow(field: &Field<'_>) -> io::Result<Made> {
    let (mut command, name) = field.weald_new("any");
    let told: Value = serde_json::from_str(&field.timed(&mut command)?.1)?;
    let path = told["tree"]["path"].as_str().unwrap_or_default().into();
    Ok(Made {
        name,
        path,
        wall: 0.0,
    })
}

/// A sealed tree with one commit, landed; the command alone is timed.
fn land(field: &Field<'_>, turn: usize) -> io::Result<Made> {
    let mut made = grow(field)?;
    commit_change(field.ground.path(), &made.path, turn)?;
    field.ground.settle()?;
    let (wall, told) = field.timed(&mut field.weald(&["land", &made.name, "--keep", "--json"]))?;
    let told: Value = serde_json::from_str(&told)?;
    let outcome = told["landings"][0]["outcome"].as_str().unwrap_or_default();
    made.wall = wall;
    match outcome {
        "landed" => Ok(made),
        other => Err(io::Error::other(format!("it ended as {other}"))),
    }
}

/// Taking work out of a tree.
fn looks(table: &mut Table, tools: &Tools, size: &Size) -> io::Result<()> {
    let rows = [
        "import of one commit, branch follows (status)",
        "a look, nothing new (status)",
        "snapshot of a small change",
        "a look by times and sizes (conflicts, one tree)",
    ];
    if !table.wants(&rows) {
        return Ok(());
    }
    let ground = Ground::usual(tools.lab.path(), size.gigabytes)?;
    let field = Field::new(tools, &ground, size.files.min(1_000))?;
    field.fill(0)?;
    let tree = grow(&field)?;
    let mut times: [Vec<f64>; 4] = Default::default();
    for turn in 1..=size.rounds {
        commit_change(ground.path(), &tree.path, turn)?;
        times[0].push(field.timed(&mut field.weald(&["status", &tree.name]))?.0);
        times[1].push(field.timed(&mut field.weald(&["status", &tree.name]))?.0);
        fs::write(tree.path.join("draft"), format!("{turn}\n"))?;
        times[2].push(
            field
                .timed(&mut field.weald(&["snapshot", "create", &tree.name]))?
                .0,
        );
    }
    run(&mut field.weald(&["conflicts"]))?;
    // Files that changed just now could change again unseen; after this they are certain.
    std::thread::sleep(std::time::Duration::from_secs(4));
    run(&mut field.weald(&["conflicts"]))?;
    for _ in 0..size.rounds {
        times[3].push(field.timed(&mut field.weald(&["conflicts"]))?.0);
    }
    let goals = [Some(50.0), None, Some(30.0), Some(5.0)];
    for ((row, times), goal) in rows.into_iter().zip(times).zip(goals) {
        let goals: Vec<Goal> = goal.into_iter().map(Goal::AtMost).collect();
        table.add(&Row::new(row, Ok(middle(times))).goals(&goals));
    }
    Ok(())
}

fn pairs(table: &mut Table, tools: &Tools, branches: usize) -> io::Result<()> {
    let count = branches * (branches - 1) / 2;
    let rows = ["cold", "warm", "cold, whole command", "warm, whole command"]
        .map(|row| format!("{count} pairs of {branches} trees, {row}"));
    if !table.wants(&rows.each_ref().map(String::as_str)) {
        return Ok(());
    }
    let ground = Ground::usual(tools.lab.path(), 10)?;
    let field = Field::new(tools, &ground, 1_000)?;
    field.fill(0)?;
    let mut names = Vec::new();
    for turn in 0..branches {
        let made = grow(&field)?;
        // Six files of its own, and for every fifth one that another changes, too.
        commit_change(ground.path(), &made.path, turn % (branches - branches / 5))?;
        run(&mut field.weald(&["status", &made.name]))?;
        names.push(made.name);
    }
    std::thread::sleep(std::time::Duration::from_secs(4));
    let mut times: [Vec<f64>; 4] = Default::default();
    let mut by_git = Vec::new();
    for _ in 0..3 {
        let begun = Instant::now();
        let found = one_process_a_pair(&field, &names)?;
        by_git.push(ms(begun.elapsed()));
        for file in ["conflicts.json", "radar.git"] {
            forget(&field.repository.join(".git/weald/private").join(file))?;
        }
        for warm in [0, 1] {
            let (wall, told) = field.timed(&mut field.weald(&["conflicts", "--json"]))?;
            let told: Value = serde_json::from_str(&told)?;
            let clashes = told["pairs"].as_array().map_or(0, Vec::len);
            if clashes != found {
                return Err(io::Error::other(format!(
                    "{clashes} conflicts, git finds {found}"
                )));
            }
            // It is told in whole milliseconds.
            let settling = told["settling_ms"].as_f64().unwrap_or(f64::NAN);
            times[warm].push(settling.max(1.0));
            times[warm + 2].push(wall);
        }
    }
    let git = middle(by_git);
    let goals = [Some(1_000.0), Some(100.0), None, None];
    for ((row, times), goal) in rows.into_iter().zip(times).zip(goals) {
        let goals: Vec<Goal> = goal.into_iter().map(Goal::AtMost).collect();
        table.add(&Row::new(row, Ok(middle(times))).git(git).goals(&goals));
    }
    say(
        "    pairs: without looking into the trees, as the command says it; the whole command looks into each of them in its sandbox",
    );
    Ok(())
}

/// How many pairs conflict, asked one by one; the target is not among them because nobody moved it.
fn one_process_a_pair(field: &Field<'_>, names: &[String]) -> io::Result<usize> {
    let mut conflicts = 0;
    for (place, a) in names.iter().enumerate() {
        for b in &names[place + 1..] {
            let [a, b] = [a, b].map(|name| format!("wt/{name}"));
            let output = field
                .git(&["merge-tree", "--write-tree", &a, &b])
                .output()?;
            match output.status.code() {
                Some(0) => {}
                Some(1) => conflicts += 1,
                _ => return Err(io::Error::other("git merge-tree failed")),
            }
        }
    }
    Ok(conflicts)
}

fn forget(path: &PathBuf) -> io::Result<()> {
    let gone = match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    match gone {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
