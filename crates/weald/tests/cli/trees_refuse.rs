//! Making trees where something is in the way: impostors, taken branches, failures, the wrong place.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use weald_testkit::TestEnv;

use crate::env;
use crate::trees_create::{
    KINDS, branches, commit_inside, commit_main, env_with_identity, events, git_in, listed,
    path_of, place, tip, weald_in, worktrees,
};

/// Every file below a directory with what it holds; links by their target.
pub fn manifest(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap().file_type();
            let name = path.strip_prefix(directory).unwrap().to_owned();
            if kind.is_dir() {
                found.insert(name.join(""), Vec::new());
                open.push(path);
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                found.insert(name, target.into_os_string().into_encoded_bytes());
            } else {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Only the sandbox's level is found: everything fits.
#[track_caller]
pub fn assert_healthy(env: &TestEnv) {
    let found = env.ok(&["doctor"]);
    let codes: Vec<_> = found["findings"].as_array().unwrap().iter().collect();
    assert!(
        codes
            .iter()
            .all(|finding| finding["code"] == "sandbox_level"),
        "{codes:#?}"
    );
}

#[test]
fn k5_something_else_at_the_path_is_refused_and_untouched() {
    for kind in KINDS {
        for command in ["new", "ensure"] {
            let env = env();
            let path = place(&env, "a");
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("f"), "x").unwrap();
            env.refused(&[command, "a", "--kind", kind], 1, "path_occupied");
            git_in(&env, &path, &["init", "-q", "-b", "main"]);
            let before = manifest(&path);
            env.refused(&[command, "a", "--kind", kind], 1, "path_occupied");
            assert_eq!(manifest(&path), before);
            fs::remove_dir_all(&path).unwrap();
            std::os::unix::fs::symlink(env.home(), &path).unwrap();
            env.refused(&[command, "a", "--kind", kind], 1, "path_occupied");
            assert_eq!(fs::read_link(&path).unwrap(), env.home());
            assert_eq!(branches(&env), ["main"]);
            assert_eq!(worktrees(&env), [env.repo()]);
            assert_eq!(listed(&env), [""; 0]);
        }
    }
}

#[test]
fn k5_ensure_refuses_what_took_the_place_of_a_tree() {
    for kind in KINDS {
        let env = env();
        let path = path_of(&env.ok(&["new", "a", "--kind", kind]));
        let away = env.root().join("away");
        fs::rename(&path, &away).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("f"), "x").unwrap();
        env.refused(&["ensure", "a"], 1, "tree_replaced");
        git_in(&env, &path, &["init", "-q", "-b", "wt/a"]);
        let before = manifest(&path);
        env.refused(&["ensure", "a"], 1, "tree_replaced");
        assert_eq!(manifest(&path), before);
        fs::remove_dir_all(&path).unwrap();
        std::os::unix::fs::symlink(&away, &path).unwrap();
        env.refused(&["ensure", "a"], 1, "tree_replaced");
        assert_eq!(fs::read_link(&path).unwrap(), away);
    }
}

#[test]
fn k5_ensure_refuses_a_linked_tree_on_another_branch() {
    let env = env();
    let path = path_of(&env.ok(&["new", "a", "--kind", "linked"]));
    git_in(&env, &path, &["switch", "-q", "-c", "other"]);
    fs::write(path.join("f"), "x").unwrap();
    let answer = env.weald(&["ensure", "a", "--json"]);
    // A linked tree on another branch is not the tree that was asked for.
    assert_eq!(answer.code, 1, "{answer:#?}");
    let error = &answer.json()["error"];
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("other"), "{message}");
    assert_eq!(fs::read_to_string(path.join("f")).unwrap(), "x");
    let head = ["rev-parse", "--abbrev-ref", "HEAD"];
    assert_eq!(git_in(&env, &path, &head), "other");
}

#[test]
fn k6_an_existing_branch_is_refused_reused_or_made_anew_with_a_backup() {
    for kind in KINDS {
        let env = env();
        let main = tip(&env, "main");
        env.git(&["switch", "-q", "-c", "wt/a"]);
        let old = commit_main(&env, "old", "work");
        let new = |name: &str, how: &str| {
            vec!["new".to_owned(), name.into(), "--kind".into(), kind.into()]
                .into_iter()
                .chain((!how.is_empty()).then(|| format!("--on-branch-exists={how}")))
                .collect::<Vec<_>>()
        };
        let refused = |how: &str, code: &str| {
            let args = new("a", how);
            let args: Vec<_> = args.iter().map(String::as_str).collect();
            let refused = env.refused(&args, 1, code);
            assert_eq!(refused["error"]["details"]["branch"], "wt/a");
            assert_eq!(tip(&env, "wt/a"), old);
            assert!(!place(&env, "a").exists());
        };
        for how in ["", "reuse", "recreate"] {
            refused(how, "branch_in_use");
        }
        env.git(&["switch", "-q", "main"]);
        for how in ["", "error", "ask"] {
            refused(how, "branch_exists");
        }
        let made = env.ok(&["new", "a", "--kind", kind, "--on-branch-exists", "reuse"]);
        let path = path_of(&made);
        assert_eq!(git_in(&env, &path, &["rev-parse", "HEAD"]), old);
        assert_eq!(fs::read_to_string(path.join("old")).unwrap(), "work");
        assert_eq!(tip(&env, "wt/a"), old);
        env.git(&["branch", "wt/b", &old]);
        let made = env.ok(&["new", "b", "--kind", kind, "--on-branch-exists", "recreate"]);
        assert_eq!(tip(&env, "wt/b"), main);
        assert!(!path_of(&made).join("old").exists());
        let vault = env.repo().join(".git/weald/vault");
        let kept = format!("refs/tree/{}/old/1", made["tree"]["id"]);
        assert_eq!(git_in(&env, &vault, &["rev-parse", &kept]), old);
        git_in(
            &env,
            &vault,
            &["cat-file", "-e", &format!("{old}^{{tree}}")],
        );
    }
}

/// A create fails, leaves nothing, says so in the log, and works once `mend` is done.
fn assert_failure_leaves_nothing(kind: &str, spoil: impl Fn(&TestEnv), mend: impl Fn(&TestEnv)) {
    let env = env();
    commit_main(&env, "file", "text");
    env.ok(&["task", "add", "Fix it"]);
    spoil(&env);
    let answer = env.weald(&["new", "a", "--kind", kind, "--task", "1", "--json"]);
    assert_ne!(answer.code, 0, "{answer:#?}");
    let error = answer.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    mend(&env);
    assert_eq!(branches(&env), ["main"], "{error}");
    assert_eq!(worktrees(&env), [env.repo()], "{error}");
    assert!(place(&env, "a").symlink_metadata().is_err(), "{error}");
    let root = fs::read_dir(place(&env, "")).into_iter().flatten();
    let left: Vec<_> = root.map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == ".weald"), "{left:?}");
    assert_eq!(listed(&env), [""; 0], "{error}");
    let failed = events(&env, "tree.create.failed");
    assert_eq!(failed.len(), 1, "{error}");
    let told = failed[0]["data"]["error"].as_str().unwrap();
    assert!(!told.is_empty() && error.contains(told), "{told} / {error}");
    assert_eq!(events(&env, "tree.create.after").len(), 0);
    assert_eq!(
        env.ok(&["task", "show", "1"])["task"]["worktree"],
        json!(null)
    );
    assert_healthy(&env);
    env.ok(&["new", "a", "--kind", kind, "--task", "1"]);
    assert_healthy(&env);
}

#[test]
fn k7_a_create_that_git_refuses_leaves_nothing() {
    for kind in KINDS {
        let lock = |env: &TestEnv| env.repo().join(".git/refs/heads/wt/a.lock");
        let spoil = |env: &TestEnv| {
            fs::create_dir_all(lock(env).parent().unwrap()).unwrap();
            fs::write(lock(env), "").unwrap();
        };
        let mend = |env: &TestEnv| fs::remove_file(lock(env)).unwrap();
        assert_failure_leaves_nothing(kind, spoil, mend);
    }
}

#[test]
fn k7_a_create_that_cannot_write_its_place_leaves_nothing() {
    for kind in KINDS {
        // Root writes into read-only folders, so a file is where the folder should be.
        for what in ["app.weald", "app/.git/weald/private/workshop"] {
            let spoil = |env: &TestEnv| fs::write(env.root().join(what), "mine").unwrap();
            let mend = |env: &TestEnv| {
                let file = env.root().join(what);
                assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
                fs::remove_file(&file).unwrap();
            };
            assert_failure_leaves_nothing(kind, spoil, mend);
        }
    }
}

#[test]
fn k7_a_create_whose_record_cannot_be_written_leaves_nothing() {
    for kind in KINDS {
        let sql = |env: &TestEnv, text: &str| {
            let database = rusqlite::Connection::open(env.private().join("weald.db")).unwrap();
            database.execute_batch(text).unwrap();
        };
        let spoil = |env: &TestEnv| {
            let raise = "ON trees WHEN NEW.status = 'active' BEGIN SELECT RAISE(ABORT, 'no'); END;";
            sql(env, &format!("CREATE TRIGGER one BEFORE INSERT {raise}"));
            sql(env, &format!("CREATE TRIGGER two BEFORE UPDATE {raise}"));
        };
        let mend = |env: &TestEnv| sql(env, "DROP TRIGGER one; DROP TRIGGER two;");
        assert_failure_leaves_nothing(kind, spoil, mend);
    }
}

#[test]
fn k8_an_unknown_task_is_refused_before_git() {
    for kind in KINDS {
        let env = env();
        for command in ["new", "ensure"] {
            for task in ["nosuch", "7"] {
                let args = [command, "a", "--kind", kind, "--task", task];
                env.refused(&args, 4, "task_not_found");
                let args = [command, "--kind", kind, "--task", task];
                env.refused(&args, 4, "task_not_found");
            }
        }
        assert_eq!(branches(&env), ["main"]);
        assert_eq!(worktrees(&env), [env.repo()]);
        assert!(!place(&env, "").exists());
        assert_eq!(listed(&env), [""; 0]);
        assert_eq!(events(&env, "tree.create.before").len(), 0);
    }
}

#[test]
fn k9_uncommitted_changes_in_main_are_judged_and_never_come_along() {
    for kind in KINDS {
        let env = env();
        commit_main(&env, "file", "committed");
        env.git(&["config", "status.showUntrackedFiles", "all"]);
        fs::write(env.repo().join("file"), "changed").unwrap();
        fs::write(env.repo().join("staged"), "staged").unwrap();
        env.git(&["add", "staged"]);
        fs::write(env.repo().join("untracked"), "untracked").unwrap();
        let before = env.git(&["status", "--porcelain"]);
        let refuse = ["--set", "tree.dirty_main=refuse"];
        let args = [&["new", "a", "--kind", kind], &refuse[..]].concat();
        let refused = env.refused(&args, 1, "main_dirty");
        assert_eq!(refused["error"]["details"]["count"], 2);
        assert!(!place(&env, "a").exists());
        assert_eq!(branches(&env), ["main"]);
        for (policy, warns) in [("warn", true), ("ignore", false)] {
            let set = format!("tree.dirty_main={policy}");
            let answer = env.weald(&["new", policy, "--kind", kind, "--set", &set]);
            assert_eq!(answer.code, 0, "{answer:#?}");
            assert_eq!(answer.stderr.contains("uncommitted"), warns, "{answer:#?}");
            let path = place(&env, policy);
            assert_eq!(fs::read_to_string(path.join("file")).unwrap(), "committed");
            assert!(!path.join("staged").exists() && !path.join("untracked").exists());
            assert_eq!(git_in(&env, &path, &["status", "--porcelain"]), "");
        }
        assert_eq!(env.git(&["status", "--porcelain"]), before);
        env.git(&["stash", "-q"]);
        // A file that git does not know makes no checkout dirty.
        env.ok(&args);
    }
}

#[test]
fn k10_inside_a_tree_nothing_is_nested() {
    for kind in KINDS {
        let env = env();
        let path = path_of(&env.ok(&["new", "a", "--kind", kind]));
        let below = path.join("src/deep");
        fs::create_dir_all(&below).unwrap();
        for directory in [&path, &below] {
            for name in ["a", "b"] {
                let answer = weald_in(&env, directory, &["ensure", name, "--json"]);
                assert_eq!(answer.code, 0, "{answer:#?}");
                assert_eq!(answer.json()["outcome"], "skipped");
                assert_eq!(answer.json()["tree"]["name"], "a");
            }
        }
        assert_eq!(worktrees(&env), [env.repo(), path.clone()]);
        let mut command = env.weald_command(&["ensure", "b", "--kind", kind]);
        command.env("WEALD_DEFER_CLAUDE", "0").current_dir(&below);
        assert!(command.output().unwrap().status.success());
        let answer = weald_in(&env, &below, &["new", "c", "--kind", kind, "--json"]);
        assert_eq!(path_of(&answer.json()), place(&env, "c"));
        let all = [env.repo(), path, place(&env, "b"), place(&env, "c")];
        assert_eq!(worktrees(&env), all);
        assert_eq!(listed(&env), ["a", "b", "c"]);
    }
}

#[test]
fn k10_inside_a_worktree_of_another_system_nothing_is_made() {
    for foreign in ["app/.claude/worktrees/x", "jkz-worktree-7"] {
        let env = env();
        let path = env.root().join(foreign);
        env.git(&["worktree", "add", "-q", path.to_str().unwrap()]);
        let below = path.join("src");
        fs::create_dir(&below).unwrap();
        let answer = weald_in(&env, &below, &["ensure", "b", "--json"]);
        assert_eq!(answer.code, 0, "{answer:#?}");
        assert_eq!(answer.json()["outcome"], "skipped");
        assert_eq!(worktrees(&env), [env.repo(), path.clone()]);
        let mut command = env.weald_command(&["ensure", "b"]);
        command.env("WEALD_DEFER_CLAUDE", "0").current_dir(&below);
        assert!(command.output().unwrap().status.success());
        assert!(worktrees(&env).contains(&place(&env, "b")));
        assert!(place(&env, "b").join(".git").is_dir());
        let switched = |value: &str| {
            let args = ["ensure", "c", "--set", "defer.kill_switches=JKZ_USE=0"];
            let mut command = env.weald_command(&args);
            command.env("JKZ_USE", value).current_dir(&below);
            assert!(command.output().unwrap().status.success());
            worktrees(&env).contains(&place(&env, "c"))
        };
        assert!(!switched("1") && switched("0"));
    }
}

#[test]
fn k11_a_deleted_directory_is_made_again_with_its_commits() {
    for kind in KINDS {
        let env = env_with_identity();
        commit_main(&env, "file", "text");
        env.ok(&["task", "add", "Fix it"]);
        let made = env.ok(&["new", "a", "--kind", kind, "--task", "1"]);
        let path = path_of(&made);
        commit_inside(&env, "a", "first");
        fs::remove_dir_all(&path).unwrap();
        let gone = env.weald(&["--json", "run", "a", "--", "true"]);
        assert_eq!(
            (gone.code, gone.error_code().as_str()),
            (125, "tree_missing")
        );
        let answer = env.weald(&["ensure", "a", "--json"]);
        assert_eq!(answer.code, 0, "{answer:#?}");
        let again = answer.json();
        assert_eq!(again["outcome"], "recreated");
        assert_eq!(again["tree"]["id"], made["tree"]["id"]);
        assert_eq!(again["tree"]["task"], 1);
        assert_eq!(path_of(&again), path);
        assert_eq!(fs::read_to_string(path.join("first")).unwrap(), "first\n");
        assert_eq!(git_in(&env, &path, &["status", "--porcelain"]), "");
        let branch = git_in(&env, &path, &["rev-parse", "--abbrev-ref", "HEAD"]);
        assert_eq!(branch, "wt/a");
        commit_inside(&env, "a", "second");
        let log = env.git(&["log", "--format=%s", "main..wt/a"]);
        assert_eq!(log, "second\nfirst\n");
        assert_eq!(worktrees(&env), [env.repo(), path]);
        assert_eq!(env.ok(&["ensure", "a"])["outcome"], "reused");
        assert_healthy(&env);
    }
}

#[test]
fn k11_what_was_never_imported_is_reported() {
    let env = env_with_identity();
    let path = path_of(&env.ok(&["new", "a"]));
    commit_inside(&env, "a", "imported");
    fs::write(path.join("late"), "late").unwrap();
    git_in(&env, &path, &["add", "late"]);
    git_in(&env, &path, &["commit", "-q", "-m", "late"]);
    assert_eq!(env.ok(&["list"])["trees"][0]["unimported"], true);
    fs::remove_dir_all(&path).unwrap();
    let answer = env.weald(&["ensure", "a"]);
    assert!(answer.stderr.contains("never imported"), "{answer:#?}");
    assert!(path.join("imported").exists() && !path.join("late").exists());
}

#[test]
fn k12_outside_of_a_repository_every_command_says_what_to_do() {
    let env = TestEnv::without_repository(env!("CARGO_BIN_EXE_weald"));
    let before = manifest(env.root());
    for line in [
        "new a",
        "ensure a",
        "list",
        "show a",
        "status",
        "status a",
        "path a",
        "diff a",
        "sync a",
        "enter a",
        "exit",
        "keep a",
        "rm a",
        "lock a",
        "unlock a",
        "trash list",
        "trash restore a",
        "snapshot create a",
        "snapshot list a",
        "doctor",
        "doctor --fix",
        "vault status",
        "task add x",
        "task list",
        "task bind 1 a",
        "events",
        "init",
        "config show",
        "session list",
        "msg inbox",
        "run a -- true",
    ] {
        let args: Vec<_> = line.split(' ').collect();
        let exit = if args[0] == "run" { 125 } else { 4 };
        // Before the command, because what follows `--` is the run's.
        let answer = env.weald(&[&["--json"], &args[..]].concat());
        assert_eq!(
            (answer.code, answer.error_code().as_str()),
            (exit, "not_a_repository"),
            "{line}"
        );
        let hint = answer.json()["error"]["hint"].as_str().unwrap().to_owned();
        assert!(hint.contains("git init"), "{line}: {hint}");
    }
    assert_eq!(manifest(env.root()), before);
}

#[test]
fn k13_a_repository_without_a_commit_is_told_apart() {
    for kind in KINDS {
        let env = TestEnv::without_repository(env!("CARGO_BIN_EXE_weald"));
        fs::create_dir(env.repo()).unwrap();
        env.git(&["init", "-q", "-b", "main"]);
        for command in ["new", "ensure"] {
            let refused = env.refused(&[command, "a", "--kind", kind], 1, "no_commit");
            let hint = refused["error"]["hint"].as_str().unwrap();
            assert!(hint.contains("git commit"), "{hint}");
        }
        assert!(!place(&env, "").exists() && !env.repo().join(".git/worktrees").exists());
        assert_eq!(branches(&env), [""; 0]);
        assert_eq!(listed(&env), [""; 0]);
        env.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
        env.ok(&["new", "a", "--kind", kind]);
    }
}

/// Commits are there, and no branch: more commits would not help.
#[test]
fn k13_a_repository_without_a_target_is_told_apart() {
    let env = env();
    env.git(&["checkout", "-q", "--detach"]);
    env.git(&["branch", "-q", "-D", "main"]);
    env.refused(&["new", "a"], 1, "no_target");
    env.git(&["switch", "-q", "-c", "trunk"]);
    env.ok(&["new", "a"]);
}

/// Whoever stands on another branch is told where a tree comes from and goes to.
#[test]
fn k1_a_checkout_on_another_branch_than_the_target_is_told() {
    let env = env();
    assert_eq!(env.weald(&["new", "a"]).stderr, "");
    env.git(&["switch", "-q", "-c", "feature"]);
    let told = env.weald(&["new", "b"]).stderr;
    assert!(
        told.contains("on feature") && told.contains("--target feature"),
        "{told}"
    );
    assert_eq!(env.weald(&["new", "c", "--target", "feature"]).stderr, "");
}
