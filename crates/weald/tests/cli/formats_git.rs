//! Refs as reftable, seen by plain git: what weald writes there is what git would, and git's one lock is waited for.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weald_testkit::TestEnv;
use weald_testkit::storm::{World, kill_at, kinds_of};

use crate::landing::{landed, rev, show};
use crate::trees_remove::{KINDS, commit, git_in, try_git};

/// A repository as git 3 makes it, with a file.
fn repository(options: &[&str]) -> TestEnv {
    let env = TestEnv::without_repository(env!("CARGO_BIN_EXE_weald"));
    fs::create_dir(env.repo()).unwrap();
    env.git(&[&["init", "-q", "-b", "main"], options].concat());
    for (key, value) in [
        ("maintenance.auto", "false"),
        ("user.name", "Test"),
        ("user.email", "test@example.com"),
    ] {
        env.git(&["config", key, value]);
    }
    commit(&env, &env.repo(), "file", "base\n");
    env
}

const GIT_3: [&str; 2] = ["--ref-format=reftable", "--object-format=sha256"];

/// Every live tree is what `git worktree list` says, git finds no fault, and doctor has nothing to mend.
#[track_caller]
fn git_agrees(env: &TestEnv, after: &str) {
    let told = env.git(&["worktree", "list", "--porcelain"]);
    assert!(!told.contains("prunable"), "{after}: {told}");
    let trees = env.ok(&["list"])["trees"].as_array().unwrap().clone();
    for tree in trees {
        let text = |key: &str| tree[key].as_str().unwrap().to_owned();
        let tip = rev(env, &format!("refs/heads/{}", text("branch")));
        let entry = format!(
            "worktree {}\nHEAD {tip}\nbranch refs/heads/{}\n",
            text("path"),
            text("branch")
        );
        assert!(told.contains(&entry), "{after}: {entry} in {told}");
    }
    let fsck = ["fsck", "--strict", "--no-dangling", "--no-progress"];
    let (is_sound, said) = try_git(env, &env.repo(), &fsck);
    assert!(is_sound && said.is_empty(), "{after}: {said}");
    assert_eq!(found(env, &["doctor"]), Vec::<String>::new(), "{after}");
}

/// What doctor finds amiss.
fn found(env: &TestEnv, args: &[&str]) -> Vec<String> {
    let told = env.weald(&[args, &["--json"]].concat()).json();
    let findings = told["findings"].as_array().unwrap().iter();
    let amiss = findings.filter(|one| one["severity"] != "info");
    amiss
        .map(|one| one["code"].as_str().unwrap().to_owned())
        .collect()
}

fn tree(env: &TestEnv, name: &str) -> PathBuf {
    env.root().join("app.weald").join(name)
}

#[test]
fn y32_git_agrees_after_every_command_on_reftable() {
    let env = repository(&GIT_3);
    for kind in KINDS {
        let name = &format!("{kind}-a");
        let done = |args: &[&str]| -> Value {
            let answer = env.ok(args);
            git_agrees(&env, &format!("{kind}: weald {args:?}"));
            answer
        };
        done(&["new", name, "--kind", kind]);
        assert_eq!(env.ok(&["ensure", name])["outcome"], "reused");
        let script = "echo 1 > one; git add one; git commit -qm one";
        let ran = env.weald(&["run", name, "--", "sh", "-c", script]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        fs::write(tree(&env, name).join("loose"), "kept\n").unwrap();
        done(&["status", name]);
        done(&["snapshot", "create", name]);
        commit(&env, &env.repo(), &format!("main-{kind}"), "1");
        done(&["sync", name]);
        assert!(tree(&env, name).join(format!("main-{kind}")).is_file());
        done(&["rm", name, "--discard"]);
        done(&["trash", "restore", name]);
        assert!(tree(&env, name).join("loose").is_file());
        done(&["snapshot", "restore", name]);
        let diff = env.weald(&["diff", name]).stdout;
        assert!(diff.contains("loose"), "{diff}");
        fs::remove_file(tree(&env, name).join("loose")).unwrap();
        let before = rev(&env, "main");
        let landing = landed(&env, &[name])[0].clone();
        git_agrees(&env, &format!("{kind}: landed"));
        assert_eq!(
            (show(&env, "one"), rev(&env, "ORIG_HEAD")),
            ("1\n".into(), before)
        );
        assert!(env.repo().join("one").is_file());
        let log = env.git(&["reflog", "show", "--format=%gs", "main"]);
        let said = format!("weald: land {}", landing["id"]);
        assert!(log.starts_with(&said), "{log}");
        done(&["revert", &landing["id"].to_string()]);
        assert!(!env.repo().join("one").exists());
        // A target that the checkout is not on.
        env.git(&["switch", "-q", "-c", &format!("other-{kind}")]);
        done(&["new", "b", "--kind", kind]);
        commit(&env, &tree(&env, "b"), &format!("two-{kind}"), "2");
        landed(&env, &["b"]);
        git_agrees(&env, &format!("{kind}: landed elsewhere"));
        assert_eq!(show(&env, &format!("two-{kind}")), "2");
        assert!(!env.repo().join(format!("two-{kind}")).exists());
        env.git(&["switch", "-q", "main"]);
        done(&["trash", "purge", "--older-than", "0s", "--apply"]);
        env.git(&[
            "worktree",
            "add",
            "-q",
            "-b",
            &format!("hand-{kind}"),
            "../hand",
        ]);
        let hand = env.root().join("hand");
        done(&["adopt", hand.to_str().unwrap()]);
        done(&["clean", "--apply"]);
        done(&["rm", "hand", "--discard"]);
        done(&["trash", "purge", "--older-than", "0s", "--apply"]);
    }
    assert_eq!(found(&env, &["doctor", "--fix"]), Vec::<String>::new());
}

/// Where refs are written; the long versions of the suites kill at every step.
#[test]
fn y32_a_kill_where_refs_are_written_loses_nothing_on_reftable() {
    let world = World::of(repository(&GIT_3));
    for (number, (label, kind)) in [
        ("create.registered", "sealed"),
        ("create.branched", "linked"),
        ("remove.head_kept", "linked"),
        ("land.ref_prepared", "sealed"),
        ("land.index_renamed", "sealed"),
        ("land.ref_committed", "linked"),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(kinds_of(label).contains(&kind), "{label}");
        kill_at(&world, label, kind, &format!("k{number}"));
    }
}

/// A prepared landing holds the one lock that all refs share, and git 2.47 does not wait for it.
#[test]
fn y32_many_at_once_wait_for_the_lock_of_refs_in_tables() {
    let env = repository(&GIT_3);
    env.ok(&["new", "first"]);
    let names: Vec<_> = (0..8).map(|number| format!("t{number}")).collect();
    let started = names.iter().enumerate().map(|(number, name)| {
        let kind = KINDS[number % 2];
        let mut command = env.weald_command(&["new", name, "--kind", kind, "--json"]);
        command
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    });
    let started: Vec<_> = started.collect();
    for one in started {
        let ended = one.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success(), "{said}");
    }
    git_agrees(&env, "eight at once");
    assert_eq!(env.ok(&["list"])["trees"].as_array().unwrap().len(), 9);
}

/// What a worktree inside of an inner repository, or its stash, holds is in logs, which tables have, too.
#[test]
fn y32_older_stashes_survive_in_a_worktree_whose_agent_chose_reftable() {
    let env = repository(&["--ref-format=files"]);
    env.ok(&["new", "a"]);
    let script = "set -e; rm -rf .git/logs; git refs migrate --ref-format=reftable
        for i in 1 2 3; do echo $i > file; git stash push -q -m $i; done; git stash list --format=%H";
    let told = env.weald(&["run", "a", "--", "sh", "-c", script]);
    assert_eq!(told.code, 0, "{told:#?}");
    let stashes: Vec<_> = told.stdout.split_whitespace().collect();
    assert_eq!(stashes.len(), 3);
    assert_eq!(env.ok(&["status", "a"])["tree"]["stashed"], 3);
    env.ok(&["rm", "a", "--discard"]);
    env.ok(&["trash", "purge", "--older-than", "0s", "--apply"]);
    let vault = env.repo().join(".git/weald/vault");
    for stash in stashes {
        git_in(&env, &vault, &["cat-file", "-e", stash]);
        let named = git_in(&env, &vault, &["for-each-ref", "--contains", stash]);
        assert!(!named.is_empty(), "{stash} is named by no ref");
    }
}

#[test]
fn y32_a_renamed_target_is_followed_on_reftable() {
    let env = repository(&GIT_3);
    env.ok(&["new", "a"]);
    commit(&env, &tree(&env, "a"), "one", "1");
    env.git(&["branch", "-m", "main", "trunk"]);
    landed(&env, &["a"]);
    assert_eq!(env.git(&["show", "trunk:one"]), "1");
}

#[test]
fn y32_doctor_mends_an_entry_without_its_tables_and_reports_a_left_lock() {
    let env = repository(&GIT_3);
    for kind in KINDS {
        env.ok(&["new", kind, "--kind", kind]);
        let entry = env.repo().join(".git/worktrees").join(kind);
        fs::remove_dir_all(entry.join("reftable")).unwrap();
        fs::write(entry.join("HEAD"), [0; 20]).unwrap();
        let amiss = found(&env, &["doctor", "--fix"]);
        assert_eq!(amiss, ["registration_broken"]);
        git_agrees(&env, kind);
    }
    let lock = env.repo().join(".git/reftable/tables.list.lock");
    fs::write(&lock, "").unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    fs::File::options()
        .write(true)
        .open(&lock)
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    let amiss = found(&env, &["doctor", "--fix"]);
    assert_eq!(amiss, ["lock_stale"]);
    assert!(lock.exists(), "it may be another program's");
}

/// git refuses to migrate while it knows worktrees. What is in the trash is known to weald alone, and comes back after.
#[test]
fn y32_a_migrated_repository_keeps_its_worktrees() {
    // git 2.47 migrates no logs.
    let env = repository(&["--ref-format=files"]);
    env.git(&["config", "core.logAllRefUpdates", "false"]);
    fs::remove_dir_all(env.repo().join(".git/logs")).unwrap();
    env.ok(&["new", "a"]);
    commit(&env, &tree(&env, "a"), "one", "1");
    for format in ["reftable", "files"] {
        let migrate = format!("--ref-format={format}");
        let migrate = ["refs", "migrate", &migrate];
        let (is_done, said) = try_git(&env, &env.repo(), &migrate);
        assert!(!is_done && said.contains("worktrees"), "{said}");
        git_agrees(&env, "a refused migration");
        env.ok(&["rm", "a", "--discard"]);
        env.git(&migrate);
        env.ok(&["trash", "restore", "a"]);
        git_agrees(&env, format);
        landed(&env, &["a"]);
        git_agrees(&env, format);
        env.ok(&["new", "a"]);
        commit(&env, &tree(&env, "a"), format, "1");
    }
    assert_eq!(show(&env, "one"), "1");
}

/// Says that it is 2.44, and is too old for reftable in earnest.
#[test]
fn y32_a_git_that_can_not_read_reftable_is_refused_by_name() {
    let env = repository(&GIT_3);
    let bin = env.home().join("old");
    fs::create_dir(&bin).unwrap();
    let script = "#!/bin/sh\ncase $* in --version) echo git version 2.44.1;;\n\
        *) echo 'fatal: unknown repository extension found: refstorage' >&2; exit 128;; esac\n";
    write_program(&bin.join("git"), script);
    let path = format!("{}:{}", bin.display(), env.plain_path());
    for args in [&["new", "a"][..], &["list"], &["land"]] {
        let mut command = env.weald_command(args);
        let output = command.arg("--json").env("PATH", &path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let wanted = "git 2.44.1 is too old: this repository stores its refs as reftable, which needs 2.45 or newer";
        assert!(
            said.contains("git_old") && said.contains(wanted),
            "{args:?}: {said}"
        );
    }
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
