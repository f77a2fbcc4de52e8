//! weald leaves a repository as it found it, and takes no work along.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use weald_terminal::Size;
use weald_testkit::{Answer, TestEnv, skipped};

const BINARY: &str = env!("CARGO_BIN_EXE_weald");

/// Every file and folder below a directory, but for what a commit on main changes.
fn files(root: &Path, but: &[&str]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if but.iter().any(|skip| name.starts_with(skip)) {
                continue;
            }
            let content = match path.symlink_metadata().unwrap() {
                meta if meta.is_dir() => {
                    open.push(path);
                    b"folder".to_vec()
                }
                meta if meta.is_file() => fs::read(&path).unwrap(),
                _ => b"other".to_vec(),
            };
            found.insert(name, content);
        }
    }
    found
}

/// What the repository and the user's folders look like.
struct Look {
    git: BTreeMap<PathBuf, Vec<u8>>,
    refs: String,
    checkout: BTreeMap<PathBuf, Vec<u8>>,
    beside: Vec<PathBuf>,
    home: Vec<PathBuf>,
}

fn look(env: &TestEnv) -> Look {
    let moved = [
        "objects",
        "index",
        "refs/heads/main",
        "logs/HEAD",
        "logs/refs/heads/main",
        "ORIG_HEAD",
        "reftable",
    ];
    let beside = fs::read_dir(env.root()).unwrap().flatten();
    let mut beside: Vec<_> = beside.map(|entry| entry.path()).collect();
    beside.sort();
    let state = files(
        &env.home().join(".local/state/weald"),
        &["repositories/register.lock", "ports/turn.lock"],
    );
    let layers = files(&env.home().join(".cache/weald/layers"), &[]);
    let is_of_repository = |name: &&PathBuf| {
        let kinds = ["trees/", "directories/", "own/", "repositories/", "ports/"];
        kinds
            .iter()
            .any(|kind| name.to_str().unwrap().starts_with(kind))
    };
    let own = state.keys().filter(is_of_repository).cloned();
    Look {
        git: files(&env.repo().join(".git"), &moved),
        refs: env.git(&["for-each-ref", "--format=%(refname)"]),
        checkout: files(&env.repo(), &[".git", "work.txt", "landed.txt"]),
        beside,
        home: own.chain(layers.into_keys()).collect(),
    }
}

#[track_caller]
fn assert_as_before(env: &TestEnv, before: &Look) {
    let after = look(env);
    assert_eq!(after.git, before.git);
    assert_eq!(after.refs, before.refs);
    assert_eq!(after.checkout, before.checkout);
    assert_eq!(after.beside, before.beside);
    assert_eq!(after.home, before.home);
    let fence = env
        .command("git")
        .args(["rev-parse", "-q", "--verify", "WEALD_FENCE"])
        .output();
    assert!(!fence.unwrap().status.success());
    assert_eq!(env.git(&["worktree", "list"]).lines().count(), 1);
}

fn repository(arguments: &[&str]) -> Option<TestEnv> {
    let env = TestEnv::without_repository(BINARY);
    fs::create_dir(env.repo()).unwrap();
    let words = [&["init", "-q", "-b", "main"], arguments].concat();
    let made = env.command("git").args(&words).output().unwrap();
    if !made.status.success() {
        skipped("refs in tables: this git has none");
        return None;
    }
    for (key, value) in [
        ("user.name", "Test"),
        ("user.email", "test@example.com"),
        ("maintenance.auto", "false"),
    ] {
        env.git(&["config", key, value]);
    }
    fs::write(env.repo().join("file"), "first\n").unwrap();
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "first"]);
    Some(env)
}

/// What stops a deinit, each with the command that resolves it.
fn in_the_way(env: &TestEnv) -> Vec<(String, String)> {
    let answer = env.weald(&["--json", "deinit", "--apply"]);
    assert_eq!(answer.code, 1, "{answer:#?}");
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let found = answer.json()["deinit"]["in_the_way"]
        .as_array()
        .unwrap()
        .clone();
    found
        .iter()
        .map(|one| (text(one, "what"), text(one, "hint")))
        .collect()
}

#[test]
fn u14_deinit_leaves_a_repository_as_a_clone_that_weald_never_saw() {
    for (arguments, profile) in [
        (&[][..], "default"),
        (&["--ref-format=reftable"], "two-plane"),
    ] {
        let Some(env) = repository(arguments) else {
            continue;
        };
        let before = look(&env);
        env.ok(&["init", "--profile", profile]);
        env.ok(&["install", "claude", "--project"]);
        env.ok(&["new", "left"]);
        let script = "echo work > work.txt";
        let worked = env.weald(&["work", "Do it", "--land", "--", "sh", "-c", script]);
        assert_eq!(worked.code, 0, "{worked:#?}");
        assert!(env.repo().join("work.txt").exists());
        assert!(env.repo().join(".mcp.json").exists());
        // Nothing goes by asking, and nothing without a yes.
        let trees = env.ok(&["list"])["trees"].clone();
        let asked = env.weald(&["deinit"]);
        assert_eq!(asked.code, 0, "{asked:#?}");
        assert!(asked.stdout.contains("would remove:"), "{asked:#?}");
        assert!(
            asked.stdout.contains("to remove it: weald deinit --apply"),
            "{asked:#?}"
        );
        let kept = env.ok(&["list"])["trees"].as_array().unwrap().len();
        assert_eq!(kept, trees.as_array().unwrap().len());
        let gone = env.weald(&["deinit", "--apply"]);
        assert_eq!(gone.code, 0, "{gone:#?}");
        assert!(
            gone.stdout
                .contains("weald is no longer used in this repository"),
            "{gone:#?}"
        );
        assert_as_before(&env, &before);
        // Again there is nothing to do, and weald can be used as for the first time.
        let again = env.weald(&["deinit", "--apply"]);
        assert_eq!(
            (again.code, again.stdout.as_str()),
            (0, "weald is not used in this repository\n")
        );
        assert_as_before(&env, &before);
        env.ok(&["task", "add", "Another"]);
        assert_eq!(env.ok(&["task", "show", "1"])["task"]["subject"], "Another");
        env.ok(&["deinit", "--apply"]);
        assert_as_before(&env, &before);
    }
}

#[test]
fn u14_deinit_refuses_while_work_would_be_lost_and_names_the_way_out() {
    let env = repository(&[]).unwrap();
    let before = look(&env);
    for name in ["dirty", "ahead", "busy"] {
        env.ok(&["new", name]);
    }
    let tree = |name: &str| env.root().join("app.weald").join(name);
    fs::write(tree("dirty").join("new.txt"), "new\n").unwrap();
    let commit = "echo x > landed.txt; git add .; git commit -qm x";
    assert_eq!(
        env.weald(&["run", "ahead", "--", "sh", "-c", commit]).code,
        0
    );
    let mut run = env.weald_command(&["run", "busy", "--", "sh", "-c", "read line"]);
    let mut run = run.stdin(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let found = loop {
        let found = in_the_way(&env);
        if found
            .iter()
            .any(|(what, _)| what.contains("is running in busy"))
        {
            break found;
        }
        assert!(Instant::now() < deadline, "{found:?}");
    };
    let has = |found: &[(String, String)], what: &str, hint: &str| {
        assert!(
            found
                .iter()
                .any(|one| one.0.contains(what) && one.1.contains(hint)),
            "{found:#?}"
        );
    };
    has(
        &found,
        "dirty has 1 uncommitted change",
        "weald land dirty --commit=all",
    );
    has(
        &found,
        "ahead has 1 commit that main lacks",
        "weald land ahead",
    );
    drop(run.stdin.take());
    run.wait().unwrap();
    assert!(tree("dirty").join("new.txt").exists() && tree("ahead").join("landed.txt").exists());
    // A queued landing, and what the trash holds.
    env.ok(&["queue", "pause"]);
    env.ok(&["land", "ahead", "--no-wait"]);
    has(
        &in_the_way(&env),
        "landing 1 of ahead is queued",
        "weald queue drop 1",
    );
    env.ok(&["queue", "drop", "1"]);
    env.ok(&["queue", "resume", "--no-work"]);
    env.ok(&["rm", "dirty", "--discard"]);
    has(
        &in_the_way(&env),
        "uncommitted changes of worktree dirty",
        "weald clean --trash",
    );
    env.ok(&["clean", "--trash", "--older-than", "0", "--apply"]);
    assert_eq!(in_the_way(&env).len(), 1);
    env.ok(&["land", "ahead"]);
    assert!(env.repo().join("landed.txt").exists());
    // At a terminal it asks.
    let size = Size {
        columns: 100,
        rows: 30,
    };
    let (terminal, mut person) = env.shell(None, size);
    person.types("weald deinit\r");
    person.sees("remove: worktree busy");
    person.sees("Remove weald from this repository? [y/N]");
    person.types("\r");
    person.sees("nothing was removed");
    assert!(tree("busy").exists());
    // What is on the screen from before must not be taken for the second question.
    person.types("clear; printf 'sec%s\\n' ond; weald deinit\r");
    person.sees("second");
    person.sees("Remove weald from this repository? [y/N]");
    person.types("y\r");
    person.sees("weald is no longer used in this repository");
    person.types("exit\r");
    terminal.ended();
    assert_as_before(&env, &before);
    // With --discard work goes, too; its branch in main, which holds the commits, stays.
    env.ok(&["new", "lost"]);
    assert_eq!(
        env.weald(&[
            "run",
            "lost",
            "--",
            "sh",
            "-c",
            "echo y > y; git add .; git commit -qm y; echo z > z"
        ])
        .code,
        0
    );
    assert_eq!(in_the_way(&env).len(), 2);
    let gone = env.weald(&["deinit", "--apply", "--discard"]);
    assert_eq!(gone.code, 0, "{gone:#?}");
    assert!(
        gone.stdout
            .contains("branch wt/lost: 1 commits that no target has"),
        "{gone:#?}"
    );
    env.git(&["branch", "-qD", "wt/lost"]);
    assert_as_before(&env, &before);
}

#[test]
fn u14_deinit_keeps_branches_that_are_the_user_s() {
    let env = TestEnv::new(BINARY);
    env.git(&["branch", "wt/mine"]);
    env.ok(&["new", "--branch", "wt/mine"]);
    // One that weald made and removed, and that the user made again.
    env.ok(&["new", "two"]);
    env.ok(&["rm", "two"]);
    env.git(&["checkout", "-qb", "wt/two"]);
    env.ok(&["deinit", "--apply"]);
    let left = env.git(&["branch", "--format=%(refname:short)"]);
    assert_eq!(left, "main\nwt/mine\nwt/two\n");
}

#[test]
fn u14_a_killed_deinit_is_finished_by_the_next() {
    for step in [
        "remove.renamed",
        "remove.recorded",
        "purge.renamed",
        "purge.unregistered",
        "away",
    ] {
        let env = repository(&[]).unwrap();
        let before = look(&env);
        env.ok(&["new", "left"]);
        env.weald(&["run", "left", "--", "true"]);
        match step {
            // The last step of all was done, and nothing after it.
            "away" => {
                env.ok(&["rm", "left"]);
                env.ok(&["clean", "--trash", "--older-than", "0", "--apply"]);
                let git = env.repo().join(".git");
                fs::rename(git.join("weald"), git.join("weald-removed")).unwrap();
                fs::remove_dir(git.join("worktrees")).unwrap();
                fs::remove_dir_all(env.root().join("app.weald")).unwrap();
            }
            step => {
                let mut killed = env.weald_command(&["deinit", "--apply"]);
                let killed = killed
                    .env("WEALD_STEP", format!("kill:{step}"))
                    .output()
                    .unwrap();
                assert_eq!(Answer::of(killed).code, -1, "{step}");
                assert!(env.repo().join(".git/weald").exists());
            }
        }
        let gone = env.weald(&["deinit", "--apply"]);
        assert_eq!(gone.code, 0, "{step}: {gone:#?}");
        assert_as_before(&env, &before);
    }
}

#[test]
fn u14_deinit_in_a_copy_touches_nothing_of_the_original() {
    let env = repository(&[]).unwrap();
    env.ok(&["new", "mine"]);
    fs::write(env.root().join("app.weald/mine/new.txt"), "new\n").unwrap();
    let copy = env.root().join("copy");
    let copied = env
        .command("cp")
        .arg("-a")
        .arg(env.repo())
        .arg(&copy)
        .status();
    assert!(copied.unwrap().success());
    let before = look(&env);
    let mut deinit = env.weald_command(&["deinit", "--apply"]);
    let gone = Answer::of(deinit.current_dir(&copy).output().unwrap());
    assert_eq!(gone.code, 0, "{gone:#?}");
    assert!(!copy.join(".git/weald").exists() && !copy.join(".git/worktrees").exists());
    assert_as_original(&env, &before);
    // A database that is broken names what makes it again.
    let database = env.private().join("weald.db");
    fs::write(&database, "this is no database, whatever it was before").unwrap();
    let refused = env.weald(&["--json", "deinit", "--apply"]);
    assert_ne!(refused.code, 0);
    let hint = refused.json()["error"]["hint"].to_string();
    assert!(hint.contains("weald doctor --rebuild"), "{refused:#?}");
    assert!(env.root().join("app.weald/mine/new.txt").exists());
}

#[track_caller]
fn assert_as_original(env: &TestEnv, before: &Look) {
    let after = look(env);
    assert_eq!(
        after.git.keys().collect::<Vec<_>>(),
        before.git.keys().collect::<Vec<_>>()
    );
    assert_eq!((&after.refs, &after.home), (&before.refs, &before.home));
    assert_eq!(env.ok(&["status", "mine"])["tree"]["dirty"], true);
}
