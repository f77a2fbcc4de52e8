//! Landing: strategies, conflicts, and what is cleaned up.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_remove::{KINDS, commit, git_in, grow, repository};

/// Lands with `--json`; answers the exit code and the landings.
#[track_caller]
pub fn land(env: &TestEnv, args: &[&str]) -> (i32, Vec<Value>) {
    let answer = env.weald(&[&["land"], args, &["--json"]].concat());
    let landings = answer.json()["landings"].as_array().cloned();
    let landings = landings.unwrap_or_else(|| panic!("weald land {args:?}: {answer:#?}"));
    (answer.code, landings)
}

/// Lands and expects that everything did.
#[track_caller]
pub fn landed(env: &TestEnv, args: &[&str]) -> Vec<Value> {
    let (code, landings) = land(env, args);
    assert_eq!(code, 0, "{landings:#?}");
    landings
}

pub fn rev(env: &TestEnv, what: &str) -> String {
    env.git(&["rev-parse", what]).trim().to_owned()
}

pub fn show(env: &TestEnv, path: &str) -> String {
    env.git(&["show", &format!("main:{path}")])
}

fn parents(env: &TestEnv, commit: &str) -> Vec<String> {
    let line = env.git(&["rev-list", "--parents", "-1", commit]);
    line.split_whitespace().skip(1).map(str::to_owned).collect()
}

#[test]
fn m1_squash_makes_one_commit_with_one_parent() {
    for kind in KINDS {
        let env = repository();
        let before = rev(&env, "main");
        env.ok(&["task", "add", "Fix the login", "--description", "It hangs."]);
        env.ok(&["new", "a", "--kind", kind, "--task", "1"]);
        let path = env.root().join("app.weald/a");
        commit(&env, &path, "one", "1");
        let other = ["-c", "user.name=Bo", "-c", "user.email=b@x"];
        fs::write(path.join("two"), "2").unwrap();
        git_in(&env, &path, &["add", "two"]);
        let author = ["commit", "-q", "-m", "two", "--author", "Bo <b@x>"];
        git_in(&env, &path, &[&other[..], &author[..]].concat());
        commit(&env, &path, "three", "3");
        let done = landed(&env, &["a"]);
        assert_eq!(done[0]["outcome"], "landed");
        let tip = rev(&env, "main");
        assert_eq!(done[0]["commit"], json!(tip));
        assert_eq!(parents(&env, &tip), [before.as_str()]);
        let message = env.git(&["log", "-1", "--format=%an <%ae>%n%B", "main"]);
        assert_eq!(
            message.trim_end(),
            format!(
                "Test <test@example.com>\nFix the login\n\nIt hangs.\n\n- one\n- two\n- three\n\n\
                 Co-authored-by: Bo <b@x>\nWeald-Task: 1\nWeald-Tree: a\nWeald-Base: {before}\nWeald-Gate: none"
            )
        );
        let trailers = env.git(&["log", "-1", "--format=%(trailers:only)", "main"]);
        assert_eq!(
            trailers.trim().lines().count(),
            5,
            "git reads them: {trailers}"
        );
        for (file, text) in [("one", "1"), ("two", "2"), ("three", "3")] {
            assert_eq!(show(&env, file), text);
        }
    }
}

#[test]
fn m1_merge_has_two_parents_and_the_default_message() {
    for kind in KINDS {
        let env = repository();
        let before = rev(&env, "main");
        env.ok(&["task", "add", "Fix the login"]);
        env.ok(&["new", "a", "--kind", kind, "--task", "1"]);
        let head = commit(&env, &env.root().join("app.weald/a"), "one", "1");
        landed(&env, &["1", "--strategy", "merge"]);
        assert_eq!(parents(&env, "main"), [before, head]);
        let subject = env.git(&["log", "-1", "--format=%s", "main"]);
        assert_eq!(subject.trim(), "Merge task 1: Fix the login");
        let other = repository();
        grow(&other, "b", kind);
        commit(&other, &other.root().join("app.weald/b"), "one", "1");
        other.ok(&["config", "set", "landing.message", "Merge workflow {name}"]);
        landed(&other, &["b", "--strategy", "merge"]);
        let subject = other.git(&["log", "-1", "--format=%s", "main"]);
        assert_eq!(subject.trim(), "Merge workflow b");
    }
}

#[test]
fn m1_ff_moves_to_the_head_itself_or_refuses() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let head = commit(&env, &path, "one", "1");
        landed(&env, &["a", "--strategy", "ff", "--keep"]);
        assert_eq!(rev(&env, "main"), head);
        env.git(&["commit", "-q", "--allow-empty", "-m", "elsewhere"]);
        let tip = rev(&env, "main");
        commit(&env, &path, "two", "2");
        let (code, done) = land(&env, &["a", "--strategy", "ff"]);
        assert_eq!(
            (code, &done[0]["reason"]["code"]),
            (1, &json!("not_fast_forward"))
        );
        assert_eq!(done[0]["reason"]["hint"], "weald sync a --rebase");
        assert_eq!(rev(&env, "main"), tip);
    }
}

#[test]
fn m1_rebase_makes_the_commits_that_git_makes() {
    for kind in KINDS {
        let env = repository();
        fs::write(env.repo().join("lines"), "1\n2\n3\n4\n5\n6\n7\n8\n").unwrap();
        env.git(&["add", "lines"]);
        env.git(&["commit", "-q", "-m", "lines"]);
        let path = grow(&env, "a", kind);
        let edit = |directory: &Path, from: &str, to: &str, message: &str| {
            let file = directory.join("lines");
            let text = fs::read_to_string(&file).unwrap().replace(from, to);
            fs::write(&file, text).unwrap();
            let author = ["commit", "-q", "-am", message, "--author", "Ann <a@x>"];
            git_in(&env, directory, &author);
        };
        edit(&path, "1\n", "one\n", "first\n\nWith a body.");
        edit(&path, "8\n", "eight\n", "second");
        git_in(
            &env,
            &path,
            &["commit", "-q", "--allow-empty", "-m", "empty"],
        );
        // The same change is on the target by itself: git drops it.
        edit(&path, "5\n", "five\n", "third");
        edit(&env.repo(), "5\n", "five\n", "elsewhere");
        let head = git_in(&env, &path, &["rev-parse", "HEAD"])
            .trim()
            .to_owned();
        let before = rev(&env, "main");
        env.ok(&["status", "a"]);
        env.git(&["branch", "expected", &head]);
        let twin = env.root().join("twin");
        env.git(&["worktree", "add", "-q", twin.to_str().unwrap(), "expected"]);
        git_in(&env, &twin, &["rebase", "-q", &before]);
        landed(&env, &["a", "--strategy", "rebase"]);
        let story = |what: &str| {
            env.git(&[
                "log",
                "--format=%T %an %ae %ad %s%n%b",
                &format!("{before}..{what}"),
            ])
        };
        assert_eq!(story("main"), story("expected"));
        assert_eq!(env.git(&["rev-list", "--min-parents=2", "main"]), "");
    }
}

#[test]
fn m3_nothing_to_land_is_no_failure() {
    for kind in KINDS {
        let env = repository();
        let before = rev(&env, "main");
        let path = grow(&env, "a", kind);
        let (code, done) = land(&env, &["a"]);
        assert_eq!((code, &done[0]["outcome"]), (0, &json!("nothing_to_land")));
        assert_eq!(rev(&env, "main"), before);
        assert!(!path.exists(), "there was nothing in it");
        grow(&env, "a", kind);
        // The same content is on the target by another way.
        commit(&env, &path, "one", "1");
        fs::write(env.repo().join("one"), "1").unwrap();
        env.git(&["add", "one"]);
        env.git(&["commit", "-q", "-m", "by hand"]);
        let done = landed(&env, &["a"]);
        assert_eq!(done[0]["outcome"], "nothing_to_land");
        assert_eq!(done[0]["cleanup"]["directory"], "trashed");
        assert!(!path.exists());
    }
}

/// A tree and a target that changed the same line.
pub fn conflicting(kind: &str) -> TestEnv {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    env.ok(&["new", "a", "--kind", kind, "--task", "1"]);
    commit(
        &env,
        &env.root().join("app.weald/a"),
        "config.py",
        "theirs\n",
    );
    fs::write(env.repo().join("config.py"), "ours\n").unwrap();
    env.git(&["commit", "-q", "-am", "ours"]);
    env
}

#[test]
fn m4_a_conflict_changes_nothing_and_says_what_to_do() {
    for kind in KINDS {
        let env = conflicting(kind);
        let state = || {
            let index = fs::read(env.repo().join(".git/index")).unwrap();
            let file = fs::read(env.repo().join("config.py")).unwrap();
            (rev(&env, "main"), rev(&env, "HEAD"), index, file)
        };
        let before = state();
        let (code, done) = land(&env, &["a"]);
        assert_eq!((code, &done[0]["outcome"]), (3, &json!("conflict")));
        assert_eq!(done[0]["conflicts"], json!(["config.py"]));
        assert_eq!(state(), before);
        assert!(!env.repo().join(".git/MERGE_HEAD").exists());
        assert!(env.root().join("app.weald/a/config.py").exists());
        assert_eq!(
            env.ok(&["task", "show", "1"])["task"]["status"],
            "needs_merge"
        );
        let told = env.weald(&["land", "a"]);
        assert_eq!(told.code, 3);
        for word in [
            "config.py",
            "weald sync a",
            "weald run a -- git commit",
            "weald land a",
            "main is unchanged",
        ] {
            assert!(told.stdout.contains(word), "{told:#?}");
        }
        assert!(!told.stdout.contains("weald enter"), "it needs the shell");
    }
}

#[test]
fn m5_a_conflict_is_left_in_the_target_on_request() {
    for strategy in ["squash", "merge"] {
        let env = conflicting("sealed");
        let args = ["a", "--on-conflict", "leave", "--strategy", strategy];
        let told = env.weald(&[&["land"], &args[..]].concat());
        assert_eq!(told.code, 3, "{told:#?}");
        let place = env.repo().canonicalize().unwrap().display().to_string();
        let commit = format!("git -C {place} commit -a");
        for word in [&commit, "the conflict is left in"] {
            assert!(told.stdout.contains(word), "{told:#?}");
        }
        assert!(!told.stdout.contains("is unchanged"), "{told:#?}");
        assert_eq!(env.git(&["status", "--porcelain"]), "UU config.py\n");
        let text = fs::read_to_string(env.repo().join("config.py")).unwrap();
        assert!(
            text.contains("<<<<<<<") && text.contains("theirs"),
            "{text}"
        );
        assert_eq!(
            env.repo().join(".git/MERGE_HEAD").exists(),
            strategy == "merge"
        );
        // It can be taken back as printed, and programs are told the place.
        let line = told.stdout.lines().find(|line| line.contains("abort it"));
        let (_, back) = line.unwrap().split_once("git ").unwrap();
        env.git(&back.split(' ').collect::<Vec<_>>());
        assert_eq!(env.git(&["status", "--porcelain"]), "");
        let (code, done) = land(&env, &args);
        assert_eq!((code, &done[0]["left"]), (3, &json!(place)), "{done:#?}");
        fs::write(env.repo().join("config.py"), "both\n").unwrap();
        env.git(&["commit", "-qa", "--no-edit", "--cleanup=strip"]);
        assert_eq!(
            parents(&env, "main").len(),
            if strategy == "merge" { 2 } else { 1 }
        );
        // The words are those of a landing.
        let words = env.git(&["log", "-1", "--format=%B", "main"]);
        for word in ["Weald-Task: 1", "Weald-Tree: a", "Weald-Gate: none"] {
            assert!(words.contains(word), "{strategy}: {words}");
        }
    }
    // What is in the way of git stays, and is told.
    let env = conflicting("sealed");
    fs::write(env.repo().join("config.py"), "edited\n").unwrap();
    let told = env.weald(&["land", "a", "--on-conflict", "leave"]);
    assert_eq!(told.code, 3, "{told:#?}");
    assert!(told.stderr.contains("git did not merge"), "{told:#?}");
    assert_eq!(
        fs::read_to_string(env.repo().join("config.py")).unwrap(),
        "edited\n"
    );
    assert_eq!(env.git(&["status", "--porcelain"]), " M config.py\n");
}

#[test]
fn m6_a_resolved_conflict_lands_and_leaves_needs_merge() {
    for kind in KINDS {
        let env = conflicting(kind);
        assert_eq!(land(&env, &["a"]).0, 3);
        assert_eq!(env.weald(&["sync", "a"]).code, 3);
        let path = env.root().join("app.weald/a");
        fs::write(path.join("config.py"), "both\n").unwrap();
        let (code, done) = land(&env, &["a"]);
        let why = &done[0]["reason"]["code"];
        assert_eq!(
            (code, why),
            (1, &json!("tree_in_operation")),
            "m9_ a merge is going on"
        );
        git_in(&env, &path, &["commit", "-qam", "resolved"]);
        landed(&env, &["a"]);
        assert_eq!(show(&env, "config.py"), "both\n");
        assert_eq!(
            env.ok(&["task", "show", "1"])["task"]["status"],
            "completed"
        );
    }
}

#[test]
fn m10_no_identity_no_signing_no_hooks() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    commit(&env, &path, "one", "1");
    for (key, value) in [
        ("commit.gpgsign", "true"),
        ("user.signingkey", "nobody"),
        ("gpg.program", "/bin/false"),
    ] {
        env.git(&["config", key, value]);
    }
    env.git(&["config", "--unset", "user.name"]);
    env.git(&["config", "--unset", "user.email"]);
    for hook in [
        "commit-msg",
        "pre-commit",
        "post-merge",
        "reference-transaction",
    ] {
        let file = env.repo().join(".git/hooks").join(hook);
        fs::write(&file, "#!/bin/sh\necho ran >> ../ran\nexit 1\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&file, mode).unwrap();
    }
    landed(&env, &["a", "--keep"]);
    let who = env.git(&["log", "-1", "--format=%cn <%ce> %G?", "main"]);
    assert_eq!(who.trim(), "weald <weald@localhost> N");
    assert!(!env.root().join("ran").exists(), "a hook ran");
    fs::remove_dir_all(env.repo().join(".git/hooks")).unwrap();
    commit(&env, &path, "two", "2");
    env.ok(&[
        "config",
        "set",
        "landing.identity",
        "Queue <queue@example.com>",
    ]);
    landed(&env, &["a"]);
    let who = env.git(&["log", "-1", "--format=%cn <%ce>", "main"]);
    assert_eq!(who.trim(), "Queue <queue@example.com>");
}

#[test]
fn m11_landing_needs_no_remote_and_no_upstream() {
    let env = repository();
    for remote in [None, Some("/nowhere/at/all")] {
        if let Some(url) = remote {
            env.git(&["remote", "add", "origin", url]);
        }
        let name = remote.map_or("a", |_| "b");
        let path = grow(&env, name, "sealed");
        commit(&env, &path, name, "1");
        landed(&env, &[name]);
        assert_eq!(show(&env, name), "1");
    }
}

#[test]
fn m13_what_goes_after_a_landing_is_gone() {
    for kind in KINDS {
        let env = repository();
        env.ok(&["task", "add", "Fix it"]);
        env.ok(&["new", "a", "--kind", kind, "--task", "1"]);
        let path = env.root().join("app.weald/a");
        commit(&env, &path, "one", "1");
        let cleanup = landed(&env, &["a"])[0]["cleanup"].clone();
        assert_eq!(cleanup["directory"], "trashed");
        assert_eq!(cleanup["branch"], "deleted");
        assert_eq!(cleanup["record"], "removed");
        assert_eq!(cleanup["task"], "completed");
        assert!(!path.exists());
        assert_eq!(env.git(&["branch", "--list", "wt/a"]), "");
        let task = env.ok(&["task", "show", "1"])["task"].clone();
        assert_eq!(
            (&task["status"], &task["worktree"]),
            (&json!("completed"), &Value::Null)
        );
        assert!(!env.git(&["worktree", "list"]).contains("app.weald/a "));
        let restore = cleanup["restore"].as_str().unwrap().to_owned();
        let words: Vec<_> = restore.split(' ').skip(1).collect();
        env.ok(&words);
        assert_eq!(fs::read_to_string(path.join("one")).unwrap(), "1");
    }
}

#[test]
fn m22_what_is_kept_is_listed_and_true() {
    for kind in KINDS {
        let env = repository();
        // Kept by flag, also where nothing was done, and because something untracked is in it.
        let path = grow(&env, "b", kind);
        let cleanup = landed(&env, &["b", "--keep"])[0]["cleanup"].clone();
        assert_eq!(cleanup["directory"], "kept", "nothing_to_land: {cleanup:#}");
        assert!(path.is_dir());
        commit(&env, &path, "two", "2");
        let cleanup = landed(&env, &["b", "--keep"])[0]["cleanup"].clone();
        assert_eq!(
            (&cleanup["directory"], &cleanup["record"]),
            (&json!("kept"), &json!("kept"))
        );
        assert!(path.is_dir() && !env.git(&["branch", "--list", "wt/b"]).is_empty());
        commit(&env, &path, "three", "3");
        fs::write(path.join("draft"), "mine").unwrap();
        let cleanup = landed(&env, &["b"])[0]["cleanup"].clone();
        assert_eq!(cleanup["directory"], "kept", "{cleanup:#}");
        assert!(cleanup["why"].as_str().is_some(), "{cleanup:#}");
        assert_eq!(fs::read_to_string(path.join("draft")).unwrap(), "mine");
    }
}
