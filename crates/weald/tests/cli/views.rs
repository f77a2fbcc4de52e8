//! File views: the files of other systems, after each operation, after a kill, among processes, edited by hand.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_remove::{commit, repository};

const MARK: &str = "_view";

fn with_profile(profile: &str) -> TestEnv {
    let env = repository();
    env.ok(&["init", "--profile", profile]);
    env
}

fn file(env: &TestEnv, path: &str) -> PathBuf {
    env.repo().join(path)
}

/// A file as JSON, without its mark, which it must have.
#[track_caller]
fn view(env: &TestEnv, path: &str) -> Value {
    let text = fs::read(file(env, path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    unmarked(&text)
}

#[track_caller]
fn unmarked(text: &[u8]) -> Value {
    let mut value: Value = serde_json::from_slice(text).expect("whole JSON");
    let mark = value.as_object_mut().unwrap().remove(MARK);
    assert!(mark.is_some(), "not marked: {value}");
    value
}

fn lines(env: &TestEnv) -> Vec<Value> {
    let text = fs::read_to_string(file(env, ".worktrees/events.jsonl")).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    text.lines().map(|line| unmarked(line.as_bytes())).collect()
}

fn seconds(time: &Value) -> f64 {
    let time: weald_core::Timestamp = time.as_str().unwrap().parse().unwrap();
    time.as_millisecond() as f64 / 1e3
}

/// Every task of the store and its file say the same; so do every tree and the index.
#[track_caller]
fn assert_two_plane(env: &TestEnv) {
    let tasks = env.ok(&["task", "list"])["tasks"].clone();
    for task in tasks.as_array().unwrap() {
        let expected = json!({
            "id": task["id"], "subject": task["subject"], "description": task["description"],
            "status": task["status"], "owner": task["owner"].as_str().unwrap_or(""),
            "worktree": task["worktree"].as_str().unwrap_or(""), "blockedBy": task["blocked_by"],
            "created_at": seconds(&task["created_at"]), "updated_at": seconds(&task["updated_at"]),
        });
        let id = task["id"].to_string();
        let path = format!(".tasks/task_{}.json", id.trim_matches('"'));
        assert_eq!(view(env, &path), expected);
    }
    let index = view(env, ".worktrees/index.json")["worktrees"].clone();
    for tree in env.ok(&["list"])["trees"].as_array().unwrap() {
        let expected = json!({
            "name": tree["name"], "path": tree["path"], "branch": tree["branch"], "task_id": tree["task"],
            "status": tree["status"], "created_at": seconds(&tree["created_at"]),
        });
        assert!(
            index.as_array().unwrap().contains(&expected),
            "{index} lacks {expected}"
        );
    }
    assert_eq!(
        env.git(&["status", "--porcelain"]),
        "",
        "views are excluded"
    );
}

fn index_statuses(env: &TestEnv) -> Vec<(String, String)> {
    let index = view(env, ".worktrees/index.json");
    let entries = index["worktrees"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    entries
        .map(|entry| (text(&entry["name"]), text(&entry["status"])))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(name, status): &(&str, &str)| ((*name).to_owned(), (*status).to_owned());
    expected.iter().map(own).collect()
}

#[test]
fn p16_two_plane_files_after_each_operation() {
    let env = with_profile("two-plane");
    assert_eq!(
        view(&env, ".worktrees/index.json"),
        json!({"worktrees": []})
    );
    let mut seen = 0;
    let mut step = |args: &[&str], code: i32, expected: &[&str]| {
        let answer = env.weald(&[args, &["--json"]].concat());
        assert_eq!(answer.code, code, "{args:?} {answer:#?}");
        assert_two_plane(&env);
        let all = lines(&env);
        let new: Vec<_> = all[seen..]
            .iter()
            .map(|line| line["event"].as_str().unwrap())
            .collect();
        assert_eq!(new, expected, "{args:?}");
        seen = all.len();
        all
    };
    step(&["task", "add", "Fix it"], 0, &[]);
    step(
        &[
            "task",
            "add",
            "Then this",
            "--after",
            "1",
            "--description",
            "more",
        ],
        0,
        &[],
    );
    let made = step(
        &["new", "a", "--task", "1"],
        0,
        &["worktree.create.before", "worktree.create.after"],
    );
    let path = file(&env, ".worktrees/a");
    assert_eq!(made[0]["task"], json!({"id": 1}));
    assert_eq!(
        made[0]["worktree"],
        json!({"name": "a", "base_ref": "HEAD"})
    );
    let part = json!({"name": "a", "path": path, "branch": "wt/a", "status": "active"});
    assert_eq!(made[1]["worktree"], part);
    assert!(made[1]["ts"].is_f64(), "{made:?}");
    assert_eq!(
        view(&env, ".tasks/task_1.json")["status"],
        "in_progress",
        "bind advances"
    );
    step(
        &["new", "b"],
        0,
        &["worktree.create.before", "worktree.create.after"],
    );
    step(&["task", "bind", "2", "b"], 0, &[]);
    step(&["keep", "b"], 0, &["worktree.keep"]);
    assert_eq!(
        index_statuses(&env),
        pairs(&[("a", "active"), ("b", "kept")])
    );
    fs::write(path.join("draft"), "mine").unwrap();
    let refused = step(
        &["rm", "a"],
        1,
        &["worktree.remove.before", "worktree.remove.failed"],
    );
    let error = refused.last().unwrap()["error"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(error.contains("uncommitted"), "{error}");
    step(
        &["rm", "a", "--discard"],
        0,
        &["worktree.remove.before", "worktree.remove.after"],
    );
    assert_eq!(
        index_statuses(&env),
        pairs(&[("a", "removed"), ("b", "kept")])
    );
    step(&["trash", "restore", "a"], 0, &["worktree.create.after"]);
    step(
        &["rm", "a", "--discard", "--complete-task"],
        0,
        &[
            "worktree.remove.before",
            "worktree.remove.after",
            "task.completed",
        ],
    );
    let purge = ["trash", "purge", "--older-than", "1ms", "--apply"];
    step(&purge, 0, &[]);
    // A creation that fails on the way: a file is where a folder should be.
    env.ok(&["task", "add", "Third"]);
    let odd = "tree.path={repo}/.worktrees/index.json/c";
    let failed = env.weald(&["new", "c", "--task", "3", "--set", odd]);
    assert_ne!(failed.code, 0);
    let last = lines(&env).pop().unwrap();
    assert_eq!(last["event"], "worktree.create.failed", "{failed:#?}");
    assert_eq!(last["worktree"]["name"], "c");
    assert_eq!(last["task"], json!({"id": 3}));
    assert!(last["error"].is_string());
    assert_eq!(
        index_statuses(&env),
        pairs(&[("a", "removed"), ("b", "kept")])
    );
    assert_two_plane(&env);
}

#[test]
fn p16_classroom_files_after_each_operation() {
    let env = with_profile("classroom");
    let task = |worktree: Value, status: &str| {
        json!({"id": 1, "subject": "Fix it", "description": "", "status": status, "owner": null,
            "blockedBy": [], "worktree": worktree})
    };
    env.ok(&["task", "add", "Fix it"]);
    assert_eq!(view(&env, ".tasks/1.json"), task(json!(null), "pending"));
    assert_eq!(lines(&env), [] as [Value; 0]);
    env.ok(&["new", "a", "--task", "1"]);
    assert_eq!(view(&env, ".tasks/1.json"), task(json!("a"), "pending"));
    env.ok(&["keep", "a"]);
    commit(&env, &file(&env, ".worktrees/a"), "x", "1");
    env.refused(&["rm", "a"], 1, "tree_unlanded");
    env.ok(&["rm", "a", "--discard"]);
    assert_eq!(view(&env, ".tasks/1.json"), task(json!(null), "pending"));
    env.ok(&["task", "start", "1"]);
    env.ok(&["task", "done", "1"]);
    assert_eq!(view(&env, ".tasks/1.json"), task(json!(null), "completed"));
    let told: Vec<_> = lines(&env)
        .into_iter()
        .map(|line| {
            assert!(line["ts"].is_f64());
            (
                line["type"].clone(),
                line["worktree"].clone(),
                line["task_id"].clone(),
            )
        })
        .collect();
    // After success only: the refused removal is not there.
    let expected = ["create", "keep", "remove"].map(|kind| (json!(kind), json!("a"), json!(1)));
    assert_eq!(told, expected);
    assert!(!file(&env, ".worktrees/index.json").exists());
    assert_eq!(env.git(&["status", "--porcelain"]), "");
}

#[test]
fn p16_jean_claude_state_after_each_operation() {
    let env = with_profile("jean-claude");
    env.ok(&["task", "add", "Fix it", "--id", "jc-y97"]);
    assert!(!file(&env, "agents").exists(), "nobody works on it yet");
    env.ok(&["new", "--task", "jc-y97"]);
    let state = |phase: &str, there: bool| {
        let path = file(&env, "trees/beads-jc-y97");
        json!({
            "workflow_id": "beads-jc-y97", "workflow_name": "beads-jc-y97", "workflow_type": "beads",
            "beads_task_id": "jc-y97", "beads_task_title": "Fix it", "phase": phase,
            "worktree_path": there.then_some(path), "worktree_branch": there.then_some("beads/jc-y97"),
        })
    };
    let name = "agents/beads-jc-y97/state.json";
    assert_eq!(view(&env, name), state("planning", true));
    assert!(file(&env, "agents/beads-jc-y97/logs").is_dir());
    env.ok(&["task", "start", "jc-y97"]);
    assert_eq!(view(&env, name), state("implementing", true));
    env.ok(&["keep", "beads-jc-y97"]);
    assert_eq!(view(&env, name), state("implementing", true));
    env.ok(&["rm", "beads-jc-y97"]);
    assert_eq!(view(&env, name), state("implementing", false));
    env.ok(&["trash", "restore", "beads-jc-y97"]);
    assert_eq!(view(&env, name), state("implementing", true));
    env.ok(&["task", "done", "jc-y97"]);
    assert_eq!(view(&env, name), state("complete", true));
    env.ok(&["new", "loose"]);
    let loose = view(&env, "agents/loose/state.json");
    assert_eq!(
        (&loose["phase"], &loose["beads_task_id"]),
        (&json!("implementing"), &json!(null))
    );
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    // A folder of that name may be the project's own.
    fs::write(file(&env, "agents/code.py"), "").unwrap();
    assert_eq!(env.git(&["status", "--porcelain"]), "?? agents/\n");
}

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
    // The next change of each writes it again; junk without a mark, too.
    fs::write(file(&env, paths[0]), "junk").unwrap();
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
        told.stderr.contains(".tasks/task_1.json is not weald's"),
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
fn p16_a_link_is_not_followed() {
    let env = repository();
    let outside = env.root().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, file(&env, ".tasks")).unwrap();
    env.ok(&["init", "--profile", "two-plane"]);
    let told = env.weald(&["task", "add", "Fix it"]);
    assert_eq!(told.code, 0, "the change itself counts: {told:#?}");
    assert!(told.stderr.contains("a link is not followed"), "{told:#?}");
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
        let deadline = Instant::now() + Duration::from_secs(10);
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
