//! Doctor and what somebody put in place of weald's own files: kept, told, never written through and never waited for.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use weald_testkit::{Answer, full_scale, skipped};

use crate::doctor::{codes, the};
use crate::doctor_poisoned::{Ward, ward};
use crate::sandbox::{as_user, is_root, ordinary_home};
use crate::trees_remove::{commit, git_in};

/// Everything that was put aside, as text.
fn put_aside(ward: &Ward) -> String {
    let entries = fs::read_dir(ward.env.private().join("aside"));
    let files = entries.into_iter().flatten().flatten();
    let texts = files.map(|file| fs::read(file.path()).unwrap_or_default());
    String::from_utf8_lossy(&texts.collect::<Vec<_>>().concat()).into_owned()
}

#[test]
fn l15_alternates_that_serve_or_hang_are_only_told() {
    let ward = ward();
    let file = ward.a.join(".git/objects/info/alternates");
    let whole = fs::read(&file).unwrap();
    let other = ward.env.root().join("other.git/objects");
    fs::create_dir_all(&other).unwrap();
    let served = format!("{}\n", other.display());
    fs::write(&file, &served).unwrap();
    let told = ward.doctor(&["--fix"]);
    assert_eq!(the(&told, "alternates_broken")["fixed"], false);
    assert_eq!(fs::read_to_string(&file).unwrap(), served);
    // A place that is gone serves nobody, and what was said is kept.
    fs::remove_dir_all(&other).unwrap();
    let told = ward.doctor(&["--fix"]);
    assert_eq!(the(&told, "alternates_broken")["fixed"], true);
    assert_eq!(fs::read(&file).unwrap(), whole);
    assert!(put_aside(&ward).contains(&served));
    fs::remove_file(&file).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &file, kind, mode, 0).unwrap();
    let told = ward.doctor(&["--fix"]);
    assert_eq!(the(&told, "alternates_broken")["fixed"], false);
}

#[test]
fn l15_what_a_repair_writes_over_is_kept() {
    let ward = ward();
    let marker = ward.env.root().join("app.weald/.weald");
    fs::write(&marker, "a list of mine\n").unwrap();
    assert_eq!(the(&ward.doctor(&["--fix"]), "marker_lost")["fixed"], true);
    assert!(put_aside(&ward).contains("a list of mine"));
    let pointer = ward.l.join(".git");
    let own = fs::read(&pointer).unwrap();
    fs::write(&pointer, "gitdir: /nowhere/at/all\n").unwrap();
    the(&ward.doctor(&["--fix"]), "pointer_wrong");
    assert!(put_aside(&ward).contains("/nowhere/at/all"));
    assert_eq!(fs::read(&pointer).unwrap(), own);
    // The way to another repository is somebody's choice, and so is a repository of its own.
    let other = ward.env.root().join("elsewhere");
    let path = other.to_str().unwrap();
    git_in(&ward.env, ward.env.root(), &["init", "-q", path]);
    let text = format!("gitdir: {path}/.git\n");
    fs::write(&pointer, &text).unwrap();
    let told = ward.doctor(&["--fix"]);
    assert_eq!(the(&told, "tree_replaced")["fixed"], false);
    assert_eq!(fs::read_to_string(&pointer).unwrap(), text);
    fs::remove_file(&pointer).unwrap();
    fs::rename(other.join(".git"), &pointer).unwrap();
    let told = ward.doctor(&["--fix"]);
    assert_eq!(the(&told, "tree_replaced")["fixed"], false);
    assert!(!codes(&told).contains(&"pointer_wrong"), "{told:#?}");
}

/// A repository whose private folder has held everything that it ever holds.
fn lived() -> Ward {
    let ward = ward();
    let env = &ward.env;
    env.ok(&["task", "add", "one"]);
    env.ok(&["task", "bind", "1", "a"]);
    env.ok(&["config", "set", "clean.min_age", "2h"]);
    env.ok(&["conflicts"]);
    env.ok(&["vault", "maintain"]);
    let script = "echo new > new; git add new; git commit -q -m new";
    let work = env.weald(&["work", "--new", "two", "--", "sh", "-c", script]);
    assert_eq!(work.code, 0, "{work:#?}");
    // So that there is something to tell of it.
    commit(env, &ward.l, "config.py", "l's\n");
    env.ok(&["status", "l"]);
    for (words, input) in commands(&ward) {
        endures(&ward, &ward.a, &words, &input);
    }
    ward
}

/// Every file of weald's own in a folder. What git reads, and the checkouts of the pool, are repositories.
fn own_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let is_repository = ["vault", "radar.git", "donor"].contains(&name.as_str());
        if is_repository || name.starts_with("spare-") {
            continue;
        }
        match path.is_dir() {
            true => own_files(&path, found),
            false => found.push(path),
        }
    }
}

/// Commands that between them open all of that, each with what it reads.
fn commands(ward: &Ward) -> Vec<(Vec<&'static str>, String)> {
    let edited = ward.a.join("config.py");
    let edit = json!({"session_id": "7", "cwd": ward.a, "hook_event_name": "PostToolUse",
        "tool_name": "Edit", "tool_input": {"file_path": edited}});
    let quiet = [
        &["list"][..],
        &["task", "add", "x"],
        &["status", "a"],
        &["snapshot", "create", "a", "--background"],
        &["conflicts"],
        &["config", "set", "clean.min_age", "3h"],
        &["vault", "maintain"],
        &["pool", "fill", "--set", "pool.size=1"],
        &["agent", "list"],
        &["clean"],
        &["doctor"],
    ];
    let quiet = quiet.iter().map(|words| (words.to_vec(), String::new()));
    let hook = (vec!["hook", "claude", "post-tool-use"], edit.to_string());
    quiet.chain([hook]).collect()
}

/// Runs a command that must end, and that says what it can't do.
fn endures(ward: &Ward, file: &Path, words: &[&str], input: &str) {
    let mut command = ward.env.command("timeout");
    command
        .args(["60", env!("CARGO_BIN_EXE_weald")])
        .args(words);
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = streams.stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let answer = Answer::of(child.wait_with_output().unwrap());
    let said = format!("{words:?} with {file:?}: {answer:#?}");
    assert!([0, 1, 4, 5].contains(&answer.code), "{said}");
    let name = file.file_name().unwrap().to_str().unwrap();
    let is_told = [&answer.stdout, &answer.stderr]
        .iter()
        .any(|text| text.contains(name));
    assert!(answer.code == 0 || is_told, "{said}");
}

/// Puts something in place of each file, then runs every command. With small counts each file meets every fourth command,
/// and others of them in the other test (`turn`).
fn hostile(turn: usize, make: impl Fn(&Path)) {
    let ward = lived();
    let mut files = Vec::new();
    own_files(ward.env.private().parent().unwrap(), &mut files);
    // These go when nobody needs them.
    let workshop = ward.env.private().join("workshop");
    files.extend(["snapshot-1", "snapshot-1.next"].map(|name| workshop.join(name)));
    for name in [
        "events.jsonl",
        "write.lock",
        "vault.lock",
        "told.json.lock",
        "fill.lock",
    ] {
        let is_named = |file: &PathBuf| file.ends_with(name);
        assert!(files.iter().any(is_named), "{name}: {files:?}");
    }
    // SQLite's own, which are nothing without the database.
    files.retain(|file| !file.to_string_lossy().contains("weald.db-"));
    let was = ward.env.root().join("was");
    for (place, file) in files.into_iter().enumerate() {
        let is_there = file.exists();
        if is_there {
            fs::rename(&file, &was).unwrap();
        }
        let commands = commands(&ward).into_iter().enumerate();
        let is_tried =
            |number: usize| full_scale() || (place + number + 2 * turn).is_multiple_of(4);
        for (_, (words, input)) in commands.filter(|(number, _)| is_tried(*number)) {
            // A command may have put its own there.
            let _ = fs::remove_file(&file);
            make(&file);
            endures(&ward, &file, &words, &input);
        }
        let _ = fs::remove_file(&file);
        if is_there {
            fs::rename(&was, &file).unwrap();
        }
        // What this one kept from being written is there before the next one's turn.
        ward.env.ok(&["task", "add", "y"]);
    }
}

#[test]
fn l15_no_fifo_in_weald_s_folder_is_waited_for() {
    hostile(0, |file| {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, file, kind, mode, 0).unwrap();
    });
}

#[test]
fn l15_no_link_in_weald_s_folder_is_written_through() {
    let elsewhere = tempfile::tempdir().unwrap();
    let (target, absent) = (
        elsewhere.path().join("mine"),
        elsewhere.path().join("absent"),
    );
    fs::write(&target, "mine\n").unwrap();
    let turn = std::cell::Cell::new(false);
    hostile(1, |file| {
        // To a file of somebody's, and to none: by turns.
        turn.set(!turn.get());
        symlink(if turn.get() { &target } else { &absent }, file).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine\n", "{file:?}");
        assert!(!absent.exists(), "{file:?}");
    });
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine\n");
    assert!(!absent.exists());
}

#[test]
fn l15_what_another_user_keeps_is_not_called_broken() {
    if !is_root() {
        return skipped("the state of another user needs root");
    }
    let Some(home) = ordinary_home("l15-user") else {
        return;
    };
    let ward = ward();
    fs::set_permissions(ward.env.root(), Permissions::from_mode(0o755)).unwrap();
    fs::write(home.join(".gitconfig"), "[safe]\n\tdirectory = *\n").unwrap();
    for args in [vec!["doctor", "--fix"], vec!["list"], vec!["new", "x"]] {
        let mut command = Command::new(home.join("weald"));
        as_user(&mut command).args(["--json", "-C"]);
        command.arg(ward.env.repo()).args(&args).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        let answer = Answer::of(command.env("HOME", &home).output().unwrap());
        assert_eq!(
            answer.error_code(),
            "state_foreign",
            "{args:?}: {answer:#?}"
        );
    }
    ward.env.ok(&["doctor"]);
    let _ = fs::remove_dir_all(&home);
}
