//! File views that were edited, torn, blocked or behind, and processes that write them at once.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_remove::repository;
use crate::views::{assert_two_plane, file, lines, unmarked, view, with_profile};

/// The codes of what doctor finds about views, with their paths.
fn findings(env: &TestEnv, args: &[&str]) -> Vec<(String, String, bool)> {
    let answer = env.weald(&[&["doctor", "--json"], args].concat());
    let found = answer.json()["findings"].clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let found = found.as_array().unwrap().iter();
    let views = found.filter(|one| text(&one["code"]).starts_with("view"));
    views
        .map(|one| {
            let path = text(&one["what"]);
            let path = path.split(' ').next().unwrap().to_owned();
            (text(&one["code"]), path, one["fixed"] == json!(true))
        })
        .collect()
}

fn found(code: &str, path: &str, fixed: bool) -> (String, String, bool) {
    (code.to_owned(), path.to_owned(), fixed)
}

#[test]
fn p16_an_edit_is_told_never_read_back_and_overwritten() {
    let env = with_profile("two-plane");
    env.ok(&["task", "add", "Fix it"]);
    env.ok(&["new", "a", "--task", "1"]);
    assert_eq!(findings(&env, &[]), []);
    let paths = [
        ".tasks/task_1.json",
        ".worktrees/index.json",
        ".worktrees/events.jsonl",
    ];
    let kept = paths.map(|path| fs::read(file(&env, path)).unwrap());
    for (path, text) in paths.iter().zip(&kept) {
        let text = String::from_utf8(text.clone()).unwrap();
        fs::write(
            file(&env, path),
            text.replace("wt/a", "wt/z").replace("Fix it", "Mine"),
        )
        .unwrap();
    }
    let edited = paths.map(|path| found("view_edited", path, false));
    assert_eq!(findings(&env, &[]), edited);
    assert_eq!(env.ok(&["task", "show", "1"])["task"]["subject"], "Fix it");
    assert_eq!(env.ok(&["show", "a"])["tree"]["branch"], "wt/a");
    // The next change of each writes it again.
    env.ok(&["task", "edit", "1", "--priority", "P0"]);
    env.ok(&["lock", "a"]);
    assert_two_plane(&env);
    assert_eq!(fs::read(file(&env, paths[2])).unwrap(), kept[2]);
    assert_eq!(findings(&env, &[]), []);
    // So does doctor.
    fs::remove_file(file(&env, paths[0])).unwrap();
    fs::write(file(&env, paths[2]), "").unwrap();
    let wrong = |fixed| {
        [
            found("view_missing", paths[0], fixed),
            found("view_edited", paths[2], fixed),
        ]
    };
    assert_eq!(findings(&env, &[]), wrong(false));
    assert_eq!(findings(&env, &["--fix"]), wrong(true));
    assert_two_plane(&env);
    assert_eq!(fs::read(file(&env, paths[2])).unwrap(), kept[2]);
    assert_eq!(findings(&env, &[]), []);
}

#[test]
fn p16_files_of_others_are_left_alone_until_doctor_moves_them_aside() {
    let env = repository();
    fs::create_dir(file(&env, ".tasks")).unwrap();
    fs::create_dir(file(&env, ".worktrees")).unwrap();
    let theirs = [
        ".tasks/task_1.json",
        ".worktrees/index.json",
        ".worktrees/events.jsonl",
    ];
    for path in theirs {
        fs::write(file(&env, path), "{\"theirs\": true}\n").unwrap();
    }
    env.ok(&["init", "--profile", "two-plane"]);
    let told = env.weald(&["task", "add", "Fix it"]);
    assert_eq!(told.code, 0);
    assert!(
        told.stderr
            .contains(".tasks/task_1.json was not written by weald"),
        "{told:#?}"
    );
    env.ok(&["task", "add", "Next"]);
    env.ok(&["task", "edit", "1", "--priority", "P0"]);
    env.ok(&["new", "a", "--task", "1"]);
    for path in theirs {
        assert_eq!(
            fs::read_to_string(file(&env, path)).unwrap(),
            "{\"theirs\": true}\n"
        );
    }
    assert_eq!(view(&env, ".tasks/task_2.json")["subject"], "Next");
    let blocked = |fixed| theirs.map(|path| found("view_blocked", path, fixed));
    assert_eq!(findings(&env, &[]), blocked(false));
    assert_eq!(findings(&env, &["--fix"]), blocked(true));
    assert_two_plane(&env);
    for path in theirs {
        let aside = file(&env, &format!("{path}.before-weald"));
        assert_eq!(fs::read_to_string(aside).unwrap(), "{\"theirs\": true}\n");
    }
    assert_eq!(findings(&env, &[]), []);
}

#[test]
fn p16_a_file_that_somebody_put_in_a_views_place_is_kept() {
    let env = with_profile("two-plane");
    env.ok(&["task", "add", "Fix it"]);
    env.ok(&["new", "a", "--task", "1"]);
    let theirs = [
        ".tasks/task_1.json",
        ".worktrees/index.json",
        ".worktrees/events.jsonl",
    ];
    for round in ["", "-2"] {
        for path in theirs {
            fs::remove_file(file(&env, path)).unwrap();
            fs::write(file(&env, path), format!("mine{round}\n")).unwrap();
        }
        let edited = env.weald(&["task", "edit", "1", "--description", &format!("d{round}")]);
        let (on, off) = (env.weald(&["lock", "a"]), env.weald(&["unlock", "a"]));
        let told = [edited.stderr, on.stderr, off.stderr].concat();
        for path in theirs {
            let aside = format!("{path}.before-weald{round}");
            assert_eq!(
                fs::read_to_string(file(&env, &aside)).unwrap(),
                format!("mine{round}\n")
            );
            assert!(
                told.contains(&format!("{path} was not written by weald and is kept as")),
                "{told}"
            );
        }
        assert_two_plane(&env);
        assert_eq!(findings(&env, &[]), []);
    }
    // A view that was only edited, or is as it was left, makes no copies.
    env.ok(&["task", "edit", "1", "--priority", "P0"]);
    let names = fs::read_dir(file(&env, ".worktrees")).unwrap().flatten();
    let kept = names.filter(|entry| entry.file_name().to_string_lossy().contains("before-weald"));
    assert_eq!(kept.count(), 4);
}

#[test]
fn p16_a_link_is_not_followed() {
    let env = repository();
    let outside = env.root().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, file(&env, ".tasks")).unwrap();
    env.ok(&["init", "--profile", "two-plane"]);
    let told = env.weald(&["task", "add", "Fix it"]);
    assert_eq!(told.code, 0, "the change itself counts: {told:#?}");
    assert!(told.stderr.contains("does not follow links"), "{told:#?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(
        env.ok(&["task", "list"])["tasks"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn p16_a_kill_between_commit_and_view_is_made_good() {
    let env = with_profile("two-plane");
    env.ok(&["task", "add", "First"]);
    env.ok(&["new", "a"]);
    let held = File::open(env.private().join("views.lock")).unwrap();
    for (number, mends) in [(2, &["task", "add", "Next"][..]), (4, &["doctor", "--fix"])] {
        held.lock().unwrap();
        let mut command = env.weald_command(&["task", "add", "Killed"]);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It has committed and waits for the views.
        let deadline = Instant::now() + Duration::from_secs(30);
        while env.weald(&["task", "show", &number.to_string()]).code != 0 {
            assert!(Instant::now() < deadline, "the task is not there");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        held.unlock().unwrap();
        let path = format!(".tasks/task_{number}.json");
        assert!(!file(&env, &path).exists(), "killed before the view");
        assert_eq!(findings(&env, &[])[0].0, "view_behind");
        assert_eq!(env.weald(mends).code, 0);
        assert_eq!(view(&env, &path)["subject"], "Killed");
        assert_two_plane(&env);
        assert_eq!(findings(&env, &[]), []);
    }
    // Killed between the line and the note of it: half a line, or a whole one.
    let events = file(&env, ".worktrees/events.jsonl");
    let kept = fs::read_to_string(&events).unwrap();
    for tail in ["{\"event\": \"worktr", kept.lines().last().unwrap()] {
        fs::write(&events, format!("{kept}{tail}\n").trim_end()).unwrap();
        env.ok(&["task", "edit", "1", "--priority", "P1"]);
        assert_eq!(
            fs::read_to_string(&events).unwrap(),
            kept,
            "nothing lost, nothing doubled"
        );
    }
}

/// Reads a file again and again; whatever is there must be whole.
fn watch(path: &Path, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        if let Ok(text) = fs::read(path) {
            unmarked(&text);
        }
    }
}

#[test]
fn p16_eight_processes_tear_nothing() {
    let env = with_profile("two-plane");
    env.ok(&["task", "add", "Shared"]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for path in [".worktrees/index.json", ".tasks/task_1.json"] {
            let path = file(&env, path);
            let done = &done;
            scope.spawn(move || watch(&path, done));
        }
        let workers: Vec<_> = (0..8)
            .map(|number| {
                let env = &env;
                scope.spawn(move || {
                    let name = format!("t{number}");
                    env.ok(&["new", &name]);
                    for round in 0..8 {
                        let id = format!("{name}-{round}");
                        env.ok(&["task", "add", &id, "--id", &id]);
                        env.ok(&["task", "edit", "1", "--description", &id]);
                        env.ok(&["task", "start", &id]);
                        env.ok(&["task", "done", &id]);
                    }
                    env.ok(&["keep", &name]);
                    if number % 2 == 0 {
                        env.ok(&["rm", &name]);
                    }
                })
            })
            .collect();
        let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    assert_two_plane(&env);
    let all = lines(&env);
    let count = |name: &str| all.iter().filter(|line| line["event"] == name).count();
    assert_eq!(count("worktree.create.after"), 8);
    assert_eq!(count("worktree.keep"), 8);
    assert_eq!(count("task.completed"), 64);
    assert_eq!(count("worktree.remove.after"), 4);
    assert_eq!(findings(&env, &[]), []);
    let left = fs::read_dir(file(&env, ".tasks")).unwrap().flatten();
    let left: Vec<_> = left
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(".new"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn p16_without_views_nothing_is_written_and_a_switch_writes_all() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    env.ok(&["new", "a", "--task", "1"]);
    for path in [
        ".tasks",
        ".worktrees",
        "agents",
        ".git/weald/private/views.json",
    ] {
        assert!(!file(&env, path).exists(), "{path}");
    }
    env.ok(&["config", "set", "views", "two-plane"]);
    env.ok(&["task", "add", "Next"]);
    assert_two_plane(&env);
    assert_eq!(lines(&env).len(), 2, "what happened before is there, too");
    env.ok(&["config", "set", "views", "classroom"]);
    env.ok(&["task", "add", "More"]);
    assert_eq!(view(&env, ".tasks/1.json")["worktree"], "a");
    assert_eq!(lines(&env)[0]["type"], "create");
    env.ok(&["config", "set", "views", "none"]);
    assert_eq!(findings(&env, &[])[0].0, "views_old");
    assert_eq!(findings(&env, &["--fix"])[0].0, "views_old");
    assert_eq!(findings(&env, &[]), []);
}
