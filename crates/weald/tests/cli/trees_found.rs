//! Which control plane a tree belongs to: forged ones are never opened, moved ones are found again; tasks and trees.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::env;
use crate::trees_create::{
    KINDS, commit_inside, commit_main, env_with_identity, git_in, listed, path_of, tip, weald_in,
};
use crate::trees_refuse::manifest;

/// Runs weald in a directory with `--json`, and expects success.
#[track_caller]
fn ok_in(env: &TestEnv, directory: &Path, args: &[&str]) -> Value {
    let answer = weald_in(env, directory, &[&["--json"], args].concat());
    assert_eq!(answer.code, 0, "{args:?}: {answer:#?}");
    answer.json()
}

/// A repository with a control plane of its own, that says so in its tasks, and a registration that points at `lure`.
fn forge(env: &TestEnv, evil: &Path, lure: &Path) {
    fs::create_dir_all(evil).unwrap();
    fs::create_dir_all(lure).unwrap();
    let seed = env.root().join("seed");
    fs::create_dir_all(&seed).unwrap();
    git_in(env, &seed, &["init", "-q", "-b", "main"]);
    git_in(env, &seed, &["commit", "-q", "--allow-empty", "-m", "evil"]);
    ok_in(env, &seed, &["task", "add", "planted"]);
    ok_in(env, &seed, &["config", "set", "profile", "jkz"]);
    ok_in(env, &seed, &["new", "x", "--set", "profile=default"]);
    fs::rename(seed.join(".git"), evil.join(".git")).unwrap();
    fs::remove_dir_all(env.root().join("seed.weald")).unwrap();
    let registration = evil.join(".git/worktrees/x");
    let pointer = format!("{}\n", lure.join(".git").display());
    fs::write(registration.join("gitdir"), pointer).unwrap();
    let found = lure.metadata().unwrap();
    let note = json!({"tree": 1, "device": found.dev(), "inode": found.ino()});
    fs::write(registration.join("weald"), note.to_string()).unwrap();
}

/// Every command that reads talks to main's control plane from these directories, and one that writes does too.
#[track_caller]
fn assert_main_answers(env: &TestEnv, directories: &[PathBuf]) {
    for directory in directories {
        let tasks = ok_in(env, directory, &["task", "list"]);
        assert_eq!(
            tasks["tasks"][0]["subject"],
            "real",
            "{}",
            directory.display()
        );
        assert!(!tasks.to_string().contains("planted"));
        let trees = ok_in(env, directory, &["list"]);
        assert_eq!(trees["trees"][0]["name"], "a");
        assert_eq!(trees["trees"].as_array().unwrap().len(), 1);
        let events = weald_in(env, directory, &["events", "--json"]).stdout;
        assert!(events.contains("tree.create.after") && !events.contains("planted"));
        let config = ok_in(env, directory, &["config", "show"]).to_string();
        assert!(!config.contains("jkz-worktree"), "{config}");
        let ensured = ok_in(env, directory, &["ensure", "b"]);
        assert_eq!(
            (&ensured["outcome"], &ensured["tree"]["name"]),
            (&json!("skipped"), &json!("a"))
        );
        let before = env.ok(&["task", "list"])["tasks"].as_array().unwrap().len();
        ok_in(env, directory, &["task", "add", "another"]);
        let after = env.ok(&["task", "list"])["tasks"].as_array().unwrap().len();
        assert_eq!(after, before + 1);
        let mut hinted = env.weald_command(&["task", "show", "1", "--json"]);
        let output = hinted
            .env("WEALD_MAIN", directory)
            .current_dir(directory)
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("real"));
    }
}

#[test]
fn k21_forged_markers_and_pointers_in_a_tree_are_never_followed() {
    for kind in KINDS {
        let env = env();
        env.ok(&["task", "add", "real"]);
        let path = path_of(&env.ok(&["new", "a", "--kind", kind]));
        let (evil, lure) = (path.join("evil"), path.join("sub"));
        forge(&env, &evil, &lure);
        let deep = lure.join("deep");
        fs::create_dir(&deep).unwrap();
        let planes = evil.join(".git").to_str().unwrap().to_owned();
        let before = manifest(&evil);
        let everywhere = [path.clone(), lure.clone(), deep.clone(), evil.clone()];
        assert_main_answers(&env, &everywhere);
        for marker in [path.join(".weald"), lure.join(".weald")] {
            fs::write(marker, format!("{planes}\n")).unwrap();
        }
        assert_main_answers(&env, &everywhere);
        let pointer = format!("gitdir: {planes}/worktrees/x\n");
        fs::write(lure.join(".git"), pointer).unwrap();
        assert_main_answers(&env, &everywhere);
        let status = ok_in(&env, &deep, &["status"]);
        assert_eq!(status["tree"]["name"], "a", "{status}");
        assert_eq!(manifest(&evil), before);
    }
}

#[test]
fn k21_a_database_planted_in_a_tree_is_never_opened() {
    for kind in KINDS {
        let env = env();
        env.ok(&["task", "add", "real"]);
        let path = path_of(&env.ok(&["new", "a", "--kind", kind]));
        let (evil, lure) = (path.join("evil"), path.join("sub"));
        forge(&env, &evil, &lure);
        let mut planted = vec![lure.join(".git")];
        if kind == "sealed" {
            planted.push(path.join(".git"));
        }
        git_in(&env, &lure, &["init", "-q"]);
        for git_dir in &planted {
            let mut copy = env.command("cp");
            copy.arg("-a").args([&evil.join(".git/weald"), git_dir]);
            assert!(copy.status().unwrap().success());
        }
        let before: Vec<_> = planted
            .iter()
            .map(|at| manifest(&at.join("weald")))
            .collect();
        assert!(
            before
                .iter()
                .all(|found| found.contains_key(Path::new("private/weald.db")))
        );
        assert_main_answers(&env, &[path.clone(), lure]);
        for args in [vec!["status"], vec!["show"], vec!["diff"], vec!["keep"]] {
            ok_in(&env, &path, &args);
        }
        let after: Vec<_> = planted
            .iter()
            .map(|at| manifest(&at.join("weald")))
            .collect();
        assert!(after == before, "a planted database was touched");
    }
}

#[test]
fn k21_a_tree_whose_git_was_replaced_still_belongs_to_main() {
    for kind in KINDS {
        let env = env();
        env.ok(&["task", "add", "real"]);
        let path = path_of(&env.ok(&["new", "a", "--kind", kind]));
        let evil = env.root().join("evil");
        forge(&env, &evil, &path);
        let before = manifest(&evil);
        let held = tip(&env, "wt/a");
        fs::rename(path.join(".git"), env.root().join("aside")).unwrap();
        for pointed in [".git/worktrees/x", ".git"] {
            let pointer = format!("gitdir: {}\n", evil.join(pointed).display());
            fs::write(path.join(".git"), pointer).unwrap();
            assert_main_answers(&env, std::slice::from_ref(&path));
            let status = ok_in(&env, &path, &["status"]);
            assert_eq!(status["tree"]["dirty"], "unknown", "{status}");
            assert_eq!(tip(&env, "wt/a"), held);
            let run = weald_in(&env, &path, &["run", "a", "--", "true"]);
            assert_eq!(run.code, 125, "{run:#?}");
        }
        fs::remove_file(path.join(".git")).unwrap();
        std::os::unix::fs::symlink(evil.join(".git"), path.join(".git")).unwrap();
        assert_main_answers(&env, std::slice::from_ref(&path));
        assert!(
            manifest(&evil) == before,
            "the other repository was touched"
        );
    }
}

#[test]
fn k21_a_copy_of_a_sealed_tree_is_refused_with_its_planted_database() {
    let env = env();
    env.ok(&["task", "add", "real"]);
    let path = path_of(&env.ok(&["new", "a"]));
    let private = path.join(".git/weald/private");
    fs::create_dir_all(&private).unwrap();
    fs::copy(env.private().join("weald.db"), private.join("weald.db")).unwrap();
    let copy = env.root().join("copy");
    let done = env.command("cp").arg("-a").args([&path, &copy]).status();
    assert!(done.unwrap().success());
    fs::create_dir(copy.join("sub")).unwrap();
    let before = manifest(&copy);
    for directory in [copy.clone(), copy.join("sub")] {
        for args in [["task", "list"], ["task", "add"], ["trash", "list"]] {
            let args = [
                &["--json"],
                &args[..],
                &["x"][..usize::from(args[1] == "add")],
            ]
            .concat();
            let answer = weald_in(&env, &directory, &args);
            assert_eq!(
                (answer.code, answer.error_code().as_str()),
                (1, "tree_lost")
            );
        }
    }
    assert!(manifest(&copy) == before, "the copy was touched");
}

/// Git and weald both work in a tree at `path`, and its commits reach main.
#[track_caller]
fn assert_works(env: &TestEnv, main: &Path, path: &Path, file: &str) {
    let doctor = ok_in(env, main, &["doctor"]);
    assert_eq!(
        doctor["findings"].as_array().unwrap().len(),
        1,
        "{doctor:#}"
    );
    assert_eq!(git_in(env, path, &["status", "--porcelain"]), "");
    assert_eq!(git_in(env, path, &["log", "-1", "--format=%s"]), "before");
    fs::write(path.join(file), "text").unwrap();
    git_in(env, path, &["add", file]);
    let inside = ok_in(env, path, &["status"]);
    assert_eq!(inside["tree"]["path"], path.to_str().unwrap());
    assert_eq!(inside["tree"]["dirty"], true);
    let commit = ["run", "a", "--", "git", "commit", "-q", "-m", file];
    let answer = weald_in(env, path, &commit);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert_eq!(
        git_in(env, main, &["log", "-1", "--format=%s", "wt/a"]),
        file
    );
    let known = git_in(env, main, &["worktree", "list", "--porcelain"]);
    assert!(
        known.contains(&format!("worktree {}\n", path.display())),
        "{known}"
    );
    assert_eq!(ok_in(env, path, &["list"])["trees"][0]["exists"], true);
}

#[track_caller]
fn codes(answer: &Answer) -> Vec<String> {
    let found = answer.json()["findings"].clone();
    let codes = found.as_array().unwrap().iter();
    codes
        .map(|finding| finding["code"].as_str().unwrap().to_owned())
        .filter(|code| code != "sandbox_level")
        .collect()
}

/// Moves main and the tree where told, and heals with `doctor --fix`.
fn move_and_heal(kind: &str, main_to: Option<&str>, tree_to: Option<&str>, tell: bool) {
    let env = env_with_identity();
    commit_main(&env, "file", "text");
    let old = path_of(&env.ok(&["new", "a", "--kind", kind]));
    commit_inside(&env, "a", "before");
    let (mut main, mut path) = (env.repo(), old.clone());
    for (from, to) in [(&mut main, main_to), (&mut path, tree_to)] {
        if let Some(to) = to {
            let to = env.root().join(to);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::rename(&*from, &to).unwrap();
            *from = to;
        }
    }
    let told = weald_in(&env, &main, &["doctor", "--json"]);
    assert_eq!(told.code, 1, "{kind}: {told:#?}");
    assert!(!codes(&told).is_empty());
    if kind == "sealed" {
        let inside = weald_in(&env, &path, &["status", "--json"]);
        assert_eq!(
            (inside.code, inside.error_code().as_str()),
            (1, "tree_lost")
        );
    }
    if tree_to.is_some() {
        let listed = ok_in(&env, &main, &["list"]);
        assert_eq!(listed["trees"][0]["exists"], false);
    }
    let mut fix = vec!["doctor", "--fix"];
    if tell {
        fix.push(path.to_str().unwrap());
    }
    let fixed = ok_in(&env, &main, &fix);
    let open = |finding: &&Value| finding["severity"] != "info" && finding["fixed"] != true;
    assert_eq!(
        fixed["findings"].as_array().unwrap().iter().find(open),
        None
    );
    assert_works(&env, &main, &path, "after");
}

#[test]
fn k22_a_moved_main_is_reported_and_healed() {
    for kind in KINDS {
        move_and_heal(kind, Some("renamed"), None, false);
        move_and_heal(kind, Some("deep/er/renamed"), None, false);
    }
}

#[test]
fn k22_a_moved_tree_is_reported_and_healed() {
    for kind in KINDS {
        move_and_heal(kind, None, Some("app.weald/other"), false);
        move_and_heal(kind, None, Some("far/away/tree"), true);
    }
}

#[test]
fn k22_both_moved_are_reported_and_healed() {
    for kind in KINDS {
        move_and_heal(kind, Some("x/app"), Some("x/app.weald/a"), false);
        move_and_heal(kind, Some("x/main"), Some("y/z/tree"), true);
    }
}

fn task(env: &TestEnv, id: &str) -> Value {
    env.ok(&["task", "show", id])["task"].clone()
}

fn tree(env: &TestEnv, name: &str) -> Value {
    env.ok(&["show", name])["tree"].clone()
}

#[test]
fn t2_binding_keeps_the_status() {
    for kind in KINDS {
        let env = env();
        env.ok(&["task", "add", "one"]);
        env.ok(&["new", "a", "--kind", kind]);
        let bound = env.ok(&["task", "bind", "1", "a"]);
        assert_eq!(bound["task"]["status"], "pending");
        assert_eq!(bound["task"]["worktree"], "a");
        assert_eq!(
            (&task(&env, "1")["status"], &tree(&env, "a")["task"]),
            (&json!("pending"), &json!(1))
        );
        env.ok(&["task", "add", "two"]);
        env.ok(&["new", "b", "--task", "2", "--kind", kind]);
        assert_eq!(task(&env, "2")["status"], "pending");
        env.refused(&["task", "bind", "7", "a"], 4, "task_not_found");
        env.refused(&["task", "bind", "1", "nosuch"], 4, "tree_not_found");
    }
}

#[test]
fn t3_binding_starts_the_task_where_asked_or_by_profile() {
    for kind in KINDS {
        let env = env();
        for name in ["a", "b", "c", "d", "e"] {
            env.ok(&["task", "add", name]);
            env.ok(&["new", name, "--kind", kind]);
        }
        assert_eq!(
            env.ok(&["task", "bind", "1", "a", "--start"])["task"]["status"],
            "in_progress"
        );
        let owned = env.ok(&["task", "bind", "2", "b", "--owner", "alice"]);
        assert_eq!(owned["task"]["status"], "in_progress");
        assert_eq!(owned["task"]["owner"], "alice");
        env.ok(&["task", "start", "3"]);
        env.ok(&["task", "done", "3"]);
        let done = env.ok(&["task", "bind", "3", "c", "--start"]);
        assert_eq!(
            (&done["task"]["status"], &done["task"]["worktree"]),
            (&json!("completed"), &json!("c"))
        );
        env.ok(&["init", "--profile", "two-plane"]);
        assert_eq!(
            env.ok(&["task", "bind", "4", "d"])["task"]["status"],
            "in_progress"
        );
        env.ok(&["task", "start", "5"]);
        env.ok(&["task", "done", "5"]);
        assert_eq!(
            env.ok(&["task", "bind", "5", "e"])["task"]["status"],
            "completed"
        );
        env.ok(&["task", "add", "f"]);
        env.ok(&["new", "f", "--task", "6", "--kind", kind]);
        assert_eq!(task(&env, "6")["status"], "in_progress");
    }
}

#[test]
fn t4_one_task_has_one_tree_and_both_agree() {
    for kind in KINDS {
        let env = env();
        for name in ["a", "b"] {
            env.ok(&["task", "add", name]);
            env.ok(&["new", name, "--kind", kind]);
        }
        env.ok(&["task", "bind", "1", "a"]);
        env.ok(&["task", "bind", "1", "a"]);
        env.refused(&["task", "bind", "1", "b"], 1, "task_bound");
        env.refused(&["task", "bind", "2", "a"], 1, "tree_bound");
        env.refused(
            &["new", "c", "--task", "1", "--kind", kind],
            1,
            "task_bound",
        );
        env.refused(&["ensure", "a", "--task", "2"], 1, "tree_bound");
        assert_eq!(listed(&env), ["a", "b"]);
        assert_eq!(tip(&env, "wt/a"), tip(&env, "main"));
        env.ok(&["task", "bind", "2", "b"]);
        let agree = |pairs: [(&str, Value, Value); 2]| {
            for (id, name, last) in pairs {
                let task = task(&env, id);
                assert_eq!((&task["worktree"], &task["last_worktree"]), (&name, &last));
            }
        };
        agree([
            ("1", json!("a"), json!(null)),
            ("2", json!("b"), json!(null)),
        ]);
        let bound = env.weald(&["task", "bind", "1", "b", "--rebind"]);
        let said = "worktree b belonged to task 2, which has no worktree now";
        assert!(bound.code == 0 && bound.stderr.contains(said), "{bound:#?}");
        agree([
            ("1", json!("b"), json!("a")),
            ("2", json!(null), json!("b")),
        ]);
        assert_eq!(tree(&env, "a")["task"], json!(null));
        assert_eq!(tree(&env, "b")["task"], 1);
        env.ok(&["task", "bind", "2", "a"]);
        assert_eq!(tree(&env, "a")["task"], 2);
    }
}

#[test]
fn t5_unbinding_remembers_the_tree() {
    for kind in KINDS {
        let env = env();
        env.ok(&["task", "add", "one"]);
        env.ok(&["new", "a", "--task", "1", "--kind", kind]);
        let before = task(&env, "1");
        let free = env.ok(&["task", "unbind", "1"])["task"].clone();
        assert_eq!(free["worktree"], json!(null));
        assert_eq!(free["last_worktree"], "a");
        assert_eq!(free["status"], before["status"]);
        assert!(free["updated_at"].as_str() > before["updated_at"].as_str());
        assert_eq!(tree(&env, "a")["task"], json!(null));
        env.refused(&["task", "unbind", "1"], 1, "not_bound");
    }
}

#[test]
fn t10_a_removal_completes_the_task_only_when_asked() {
    for kind in KINDS {
        let env = env();
        for (id, name) in [("1", "a"), ("2", "b"), ("3", "c")] {
            env.ok(&["task", "add", name]);
            env.ok(&["new", name, "--task", id, "--kind", kind]);
        }
        env.ok(&["task", "start", "1"]);
        env.ok(&["keep", "a"]);
        assert_eq!(
            (&task(&env, "1")["status"], &task(&env, "1")["worktree"]),
            (&json!("in_progress"), &json!("a"))
        );
        env.ok(&["rm", "a"]);
        let removed = task(&env, "1");
        assert_eq!(removed["status"], "in_progress");
        assert_eq!(
            (&removed["worktree"], &removed["last_worktree"]),
            (&json!(null), &json!("a"))
        );
        env.ok(&["task", "start", "2"]);
        env.ok(&["rm", "b", "--complete-task"]);
        let completed = task(&env, "2");
        assert_eq!(completed["status"], "completed");
        assert_eq!(
            (&completed["worktree"], &completed["last_worktree"]),
            (&json!(null), &json!("b"))
        );
        // A task that was never started can't be completed: nothing is removed either.
        let path = path_of(&env.ok(&["show", "c"]));
        env.refused(&["rm", "c", "--complete-task"], 1, "illegal_move");
        assert!(path.join(".git").exists());
        assert_eq!(
            (&task(&env, "3")["status"], &task(&env, "3")["worktree"]),
            (&json!("pending"), &json!("c"))
        );
        assert_eq!(listed(&env), ["c"]);
        assert_eq!(ok_in(&env, &path, &["status"])["tree"]["status"], "active");
        crate::trees_refuse::assert_healthy(&env);
    }
}
