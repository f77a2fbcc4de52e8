//! One control plane for all trees: many processes at once, locks, remotes, the target inside, bindings.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::env;
use crate::trees_create::{
    KINDS, branches, commit_inside, commit_main, env_with_identity, events, git_in, listed,
    path_of, place, tip, worktrees,
};
use crate::trees_refuse::{assert_healthy, manifest};

fn start(env: &TestEnv, args: &[&str]) -> Child {
    env.weald_command(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

#[test]
fn k17_forty_processes_make_forty_trees() {
    let env = env();
    let base = commit_main(&env, "file", "text");
    let names: Vec<_> = (0..40).map(|number| format!("tree-{number:02}")).collect();
    let started: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(number, name)| start(&env, &["new", name, "--kind", KINDS[number % 2]]))
        .collect();
    for child in started {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
    assert_eq!(sorted(listed(&env)), names);
    assert_eq!(worktrees(&env).len(), 41);
    assert_eq!(branches(&env).len(), 41);
    for (number, name) in names.iter().enumerate() {
        let path = place(&env, name);
        assert_eq!(git_in(&env, &path, &["rev-parse", "HEAD"]), base);
        assert_eq!(git_in(&env, &path, &["status", "--porcelain"]), "");
        assert_eq!(tip(&env, &format!("wt/{name}")), base);
        assert_eq!(path.join(".git").is_dir(), number % 2 == 0, "{name}");
    }
    assert_eq!(events(&env, "tree.create.after").len(), 40);
    assert_healthy(&env);
}

#[test]
fn k17_of_ten_processes_with_one_name_exactly_one_wins() {
    for kind in KINDS {
        let env = env();
        commit_main(&env, "file", "text");
        let started: Vec<_> = (0..10)
            .map(|_| start(&env, &["new", "same", "--kind", kind, "--json"]))
            .collect();
        let mut won = 0;
        for child in started {
            let output = child.wait_with_output().unwrap();
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
            match output.status.success() {
                true => won += 1,
                false => {
                    let code = &answer["error"]["code"];
                    let known = [
                        "tree_exists",
                        "path_occupied",
                        "branch_in_use",
                        "branch_exists",
                    ];
                    assert!(known.iter().any(|known| code == known), "{answer}");
                }
            }
        }
        assert_eq!(won, 1, "{kind}");
        assert_eq!(listed(&env), ["same"]);
        assert_eq!(worktrees(&env), [env.repo(), place(&env, "same")]);
        assert_eq!(branches(&env), ["main", "wt/same"]);
        assert!(place(&env, "same").join("file").exists());
        assert_healthy(&env);
    }
}

#[test]
fn k17_of_ten_processes_that_ensure_one_tree_none_fails() {
    for kind in KINDS {
        let env = env();
        let started: Vec<_> = (0..10)
            .map(|_| start(&env, &["ensure", "same", "--kind", kind, "--json"]))
            .collect();
        let mut made = 0;
        for child in started {
            let output = child.wait_with_output().unwrap();
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert!(output.status.success(), "{answer}");
            assert_eq!(path_of(&answer), place(&env, "same"));
            // Whoever says that it is there can use it.
            assert_eq!(answer["tree"]["status"], "active", "{answer}");
            made += usize::from(answer["outcome"] == "created");
        }
        assert_eq!(made, 1);
        assert_eq!(listed(&env), ["same"]);
        assert_healthy(&env);
    }
}

#[test]
fn z6_sixty_four_parallel_creates() {
    let env = env();
    commit_main(&env, "file", "text");
    env.git(&["pack-refs", "--all"]);
    let git_dir = env.repo().join(".git");
    let before = manifest(&git_dir);
    let names: Vec<_> = (0..64).map(|number| format!("t{number:02}")).collect();
    let started: Vec<_> = names
        .iter()
        .map(|name| start(&env, &["new", name]))
        .collect();
    for child in started {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
    let after = manifest(&git_dir);
    let ours = |path: &&std::path::PathBuf| {
        ["worktrees", "refs", "logs", "weald"]
            .iter()
            .any(|folder| path.starts_with(folder))
    };
    let everything = before.keys().chain(after.keys());
    let changed: Vec<_> = everything
        .filter(|path| before.get(*path) != after.get(*path))
        .collect();
    let foreign: Vec<_> = changed.iter().filter(|path| !ours(path)).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert!(before.contains_key(Path::new("packed-refs")));
    // What was there in refs and logs is as it was.
    for (path, content) in before.iter().filter(|(path, _)| !path.starts_with("weald")) {
        assert_eq!(after.get(path), Some(content), "{}", path.display());
    }
    assert_eq!(sorted(listed(&env)), names);
    assert_eq!(worktrees(&env).len(), 65);
    assert_healthy(&env);
}

/// The line that git shows about a tree's lock.
fn git_lock(env: &TestEnv, path: &Path) -> Option<String> {
    let text = env.git(&["worktree", "list", "--porcelain"]);
    let head = format!("worktree {}", path.display());
    let mut blocks = text.split("\n\n").map(str::lines);
    let mut block = blocks.find(|block| block.clone().next() == Some(&head))?;
    block
        .find_map(|line| line.strip_prefix("locked"))
        .map(|reason| reason.trim().to_owned())
}

#[test]
fn k18_a_lock_records_owner_and_reason_and_the_seal_is_none() {
    for kind in KINDS {
        let env = env();
        let made = env.ok(&["new", "a", "--kind", kind]);
        let path = path_of(&made);
        let seal = (kind == "sealed").then(|| "sealed by weald".to_owned());
        assert_eq!(made["tree"]["locked"], json!(null));
        assert_eq!(git_lock(&env, &path), seal);
        let mut command = env.weald_command(&["lock", "a", "--reason", "for the demo"]);
        let locked = command.env("WEALD_SESSION", "alice").output().unwrap();
        assert!(locked.status.success());
        let wanted = json!({"owner": "alice", "reason": "for the demo"});
        assert_eq!(env.ok(&["list"])["trees"][0]["locked"], wanted);
        let shown = git_lock(&env, &path).unwrap();
        assert!(shown.contains("alice") && shown.contains("for the demo"));
        for args in [vec!["rm", "a"], vec!["rm", "a", "--discard"]] {
            let refused = env.refused(&args, 1, "tree_locked");
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(message.contains("for the demo"), "{message}");
        }
        assert!(path.join(".git").exists());
        let unlocked = env.ok(&["unlock", "a"]);
        assert_eq!(unlocked["tree"]["locked"], json!(null));
        assert_eq!(git_lock(&env, &path), seal);
        env.ok(&["rm", "a"]);
        assert!(!path.exists());
    }
}

#[test]
fn k18_the_jkz_profile_locks_on_create_with_owner_and_task() {
    for kind in KINDS {
        let env = env();
        env.ok(&["init", "--profile", "jkz"]);
        env.ok(&["task", "add", "Fix it", "--id", "gh-12"]);
        let args = ["new", "--task", "gh-12", "--kind", kind, "--json"];
        let mut command = env.weald_command(&args);
        let made = command.env("WEALD_SESSION", "alice").output().unwrap();
        let made: Value = serde_json::from_slice(&made.stdout).unwrap();
        assert_eq!(made["tree"]["locked"]["owner"], "alice");
        let reason = made["tree"]["locked"]["reason"].as_str().unwrap();
        assert!(reason.contains("gh-12"), "{reason}");
        let shown = git_lock(&env, &path_of(&made)).unwrap();
        assert!(shown.contains("alice") && shown.contains("gh-12"));
        env.refused(&["rm", "12"], 1, "tree_locked");
    }
}

#[test]
fn k18_the_claude_code_profile_locks_while_something_runs() {
    for kind in KINDS {
        let env = env();
        env.ok(&["init", "--profile", "claude-code"]);
        let path = path_of(&env.ok(&["new", "a", "--kind", kind]));
        let before = git_lock(&env, &path);
        let wait = "touch started; until test -e go; do sleep 0.02; done";
        let mut child = start(&env, &["run", "a", "--", "sh", "-c", wait]);
        let deadline = Instant::now() + Duration::from_secs(30);
        while !path.join("started").exists() {
            assert!(Instant::now() < deadline, "the run did not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        let during = git_lock(&env, &path);
        fs::write(path.join("go"), "").unwrap();
        assert!(child.wait().unwrap().success());
        assert_ne!(during, before, "locked while it runs");
        assert_eq!(git_lock(&env, &path), before, "and not afterwards");
        assert_eq!(env.ok(&["show", "a"])["tree"]["locked"], json!(null));
    }
}

#[test]
fn k19_no_command_changes_a_remote() {
    for kind in KINDS {
        let env = env_with_identity();
        commit_main(&env, "file", "text");
        let remote = env.root().join("remote.git");
        git_in(
            &env,
            env.root(),
            &["init", "-q", "--bare", "-b", "main", "remote.git"],
        );
        env.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
        env.git(&["push", "-q", "-u", "origin", "main"]);
        env.git(&["config", "push.default", "current"]);
        let before = manifest(&remote);
        env.ok(&["new", "a", "--kind", kind]);
        commit_inside(&env, "a", "one");
        env.ok(&["status", "a"]);
        commit_main(&env, "more", "text");
        assert_eq!(env.ok(&["sync", "a"])["outcome"], "merged");
        commit_inside(&env, "a", "two");
        env.ok(&["keep", "a"]);
        env.ok(&["snapshot", "create", "a"]);
        env.ok(&["rm", "a", "--discard"]);
        env.ok(&["trash", "restore", "a"]);
        env.ok(&["doctor", "--fix"]);
        env.ok(&["rm", "a", "--discard"]);
        assert_eq!(manifest(&remote), before, "{kind}");
        assert!(before.contains_key(Path::new("refs/heads/main")));
    }
}

#[test]
fn k20_the_target_inside_a_sealed_tree_is_refreshed() {
    let env = env_with_identity();
    commit_main(&env, "file", "text");
    let path = path_of(&env.ok(&["new", "a"]));
    commit_inside(&env, "a", "mine");
    for (number, args) in [
        vec!["status", "a"],
        vec!["show", "a"],
        vec!["enter", "a"],
        vec!["run", "a", "--", "true"],
        vec!["sync", "a"],
    ]
    .iter()
    .enumerate()
    {
        let moved = commit_main(&env, &format!("main-{number}"), "text");
        assert_ne!(git_in(&env, &path, &["rev-parse", "main"]), moved);
        assert_eq!(env.weald(args).code, 0, "{args:?}");
        assert_eq!(
            git_in(&env, &path, &["rev-parse", "main"]),
            moved,
            "{args:?}"
        );
        let differs = git_in(&env, &path, &["diff", "--name-only", "main..."]);
        assert_eq!(differs, "mine", "{args:?}");
    }
    // After the sync everything of main is in.
    assert!(path.join("main-4").exists());
    assert_eq!(
        git_in(&env, &path, &["rev-list", "--count", "HEAD..main"]),
        "0"
    );
}

#[test]
fn k20_the_remote_target_inside_a_sealed_tree_is_refreshed() {
    let env = env_with_identity();
    commit_main(&env, "file", "text");
    let first = tip(&env, "HEAD");
    env.git(&["update-ref", "refs/remotes/origin/main", &first]);
    let path = path_of(&env.ok(&["new", "a"]));
    commit_inside(&env, "a", "mine");
    let log = ["log", "--format=%s", "origin/main.."];
    assert_eq!(git_in(&env, &path, &log), "mine");
    for command in ["status", "show", "sync"] {
        let moved = commit_main(&env, command, "text");
        env.git(&["update-ref", "refs/remotes/origin/main", &moved]);
        env.ok(&[command, "a"]);
        let inside = git_in(&env, &path, &["rev-parse", "origin/main"]);
        assert_eq!(inside, moved, "{command}");
        let first_line = git_in(&env, &path, &log);
        assert!(first_line.lines().any(|line| line == "mine"), "{command}");
        let differs = git_in(&env, &path, &["diff", "--name-only", "origin/main..."]);
        assert_eq!(differs, "mine", "{command}");
    }
}

#[test]
fn k20_an_agents_own_commits_on_the_targets_name_stay() {
    let env = env_with_identity();
    let path = path_of(&env.ok(&["new", "a"]));
    git_in(&env, &path, &["switch", "-q", "main"]);
    git_in(&env, &path, &["commit", "-q", "--allow-empty", "-m", "own"]);
    git_in(&env, &path, &["switch", "-q", "wt/a"]);
    let own = git_in(&env, &path, &["rev-parse", "main"]);
    commit_main(&env, "file", "text");
    env.ok(&["status", "a"]);
    assert_eq!(git_in(&env, &path, &["rev-parse", "main"]), own);
    git_in(&env, &path, &["switch", "-q", "main"]);
    let shown = env.ok(&["show", "a"]);
    // The record's branch is the registered one, whatever the inner HEAD is.
    assert_eq!(shown["tree"]["branch"], "wt/a");
}
