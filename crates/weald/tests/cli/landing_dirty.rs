//! A checkout with changes of the user's: what overlaps refuses, everything else stays, and nothing that landed is
//! reverted by the next commit.

use std::fs;

use serde_json::json;

use crate::landing::{land, landed, rev};
use crate::landing_moving::{nothing_left, sh, state};
use crate::trees_remove::{commit, git_in, grow, repository};

const BASE: &str =
    "mkdir d; for f in a b gone d/x turned assumed; do echo 1 >$f; done; echo '*.log' >.gitignore
                    git add -A; git commit -q -m base";

const CHANGE: &str = "echo 2 >a; git rm -q gone; echo 2 >new; mkdir -p e/f; echo 2 >e/f/g; echo 2 >out.log
                      echo 2 >assumed; git rm -rq d; echo 2 >d; git rm -q turned; mkdir turned; echo 2 >turned/in
                      git add -A -f; git commit -q -m change";

#[test]
fn m7_what_overlaps_refuses_before_anything_is_touched() {
    let overlaps = [
        ("echo mine >a", "a"),
        ("echo mine >a; git add a", "a"),
        ("echo mine >a; git add a; echo 1 >a", "a"),
        ("rm a", "a"),
        ("chmod +x a", "a"),
        ("rm a; ln -s b a", "a"),
        ("git rm -q --cached a", "a"),
        ("echo mine >gone", "gone"),
        ("echo mine >new", "new"),
        ("echo mine >new; git add new", "new"),
        ("echo mine >new; git add -N new", "new"),
        ("echo mine >out.log", "out.log"),
        ("echo mine >e", "e"),
        ("mkdir -p e; ln -s ../b e/f", "e/f"),
        ("mkdir -p e/f/g; echo mine >e/f/g/h", "e/f/g/h"),
        ("echo mine >d/x", "d/x"),
        ("echo mine >d/mine", "d/mine"),
        ("echo mine >d/mine.log", "d/mine.log"),
        ("mkdir d/sub; git -C d/sub init -q", "d/sub"),
        ("echo mine >turned", "turned"),
        (
            "git update-index --assume-unchanged assumed; echo mine >assumed",
            "assumed",
        ),
    ];
    let env = repository();
    sh(&env, &env.repo(), BASE);
    let tree = grow(&env, "t", "sealed");
    sh(&env, &tree, CHANGE);
    let tip = rev(&env, "main");
    for (dirty, path) in overlaps {
        sh(&env, &env.repo(), dirty);
        let before = state(&env, &env.repo());
        let (code, ended) = land(&env, &["t"]);
        assert_eq!(
            (code, &ended[0]["outcome"]),
            (1, &json!("refused")),
            "{dirty}: {ended:#?}"
        );
        let reason = &ended[0]["reason"];
        assert_eq!(reason["code"], "target_dirty", "{dirty}");
        let named = reason["paths"].as_array().unwrap();
        let is_named = named
            .iter()
            .any(|named| named.as_str().unwrap().starts_with(path));
        assert!(is_named, "{dirty}: {named:?}");
        assert_eq!(state(&env, &env.repo()), before, "{dirty}");
        assert_eq!(rev(&env, "main"), tip);
        nothing_left(&env);
        sh(
            &env,
            &env.repo(),
            "git update-index --no-assume-unchanged assumed; git reset -q --hard; git clean -qffdx",
        );
    }
    landed(&env, &["t"]);
    assert_eq!(
        git_in(&env, &env.repo(), &["status", "--porcelain", "--ignored"]),
        ""
    );
}

/// Changes of every kind that a landing does not touch.
const MINE: &str = "echo mine >b; echo staged >s; git add s; echo both >s; echo mine >untracked; echo mine >mine.log
                    mkdir m; echo mine >m/x; git rm -q --cached config.py";

#[test]
fn m7_other_changes_stay_and_the_next_commit_reverts_nothing() {
    for commit in [
        "git commit -q -m mine",
        "git commit -q -a -m mine",
        "git add -A; git commit -q -m mine",
    ] {
        let env = repository();
        sh(&env, &env.repo(), BASE);
        let tree = grow(&env, "t", "sealed");
        sh(&env, &tree, CHANGE);
        sh(&env, &env.repo(), MINE);
        let status = |args: &[&str]| {
            git_in(
                &env,
                &env.repo(),
                &[&["status", "--porcelain"], args].concat(),
            )
        };
        let before = status(&["--ignored"]);
        let files = ["b", "s", "untracked", "mine.log", "m/x", "config.py"];
        let inodes = || {
            files.map(|file| {
                fs::metadata(env.repo().join(file))
                    .map(|found| {
                        use std::os::unix::fs::MetadataExt;
                        (found.ino(), found.mtime_nsec())
                    })
                    .unwrap()
            })
        };
        let same = inodes();
        let done = landed(&env, &["t"]);
        assert_eq!(status(&["--ignored"]), before);
        assert_eq!(
            inodes(),
            same,
            "files that it does not touch are not written"
        );
        let tip = done[0]["commit"].as_str().unwrap();
        sh(&env, &env.repo(), commit);
        let differs = git_in(&env, &env.repo(), &["diff", "--name-only", tip, "HEAD"]);
        let allowed = ["b", "s", "untracked", "m/x", "config.py"];
        assert!(
            differs.lines().all(|path| allowed.contains(&path)),
            "{commit}: {differs}"
        );
        nothing_left(&env);
    }
}

#[test]
fn m7_autostash_brings_changes_of_every_kind_back() {
    let env = repository();
    sh(&env, &env.repo(), BASE);
    sh(
        &env,
        &env.repo(),
        "for n in 1 2 3 4 5 6 7 8 9; do echo $n; done >long; git add long; git commit -q -m long",
    );
    let tree = grow(&env, "t", "sealed");
    sh(
        &env,
        &tree,
        "sed -i s/^1/one/ long; echo 2 >new; git add -A; git commit -q -m change",
    );
    sh(&env, &env.repo(), MINE);
    // A file that left the index and stayed is nothing that git can put back from a stash.
    sh(
        &env,
        &env.repo(),
        "git add config.py; sed -i s/^9/nine/ long",
    );
    env.ok(&["config", "set", "landing.autostash", "true"]);
    let before = git_in(&env, &env.repo(), &["status", "--porcelain", "--ignored"]);
    landed(&env, &["t"]);
    assert_eq!(
        git_in(&env, &env.repo(), &["status", "--porcelain", "--ignored"]),
        before
    );
    let long = fs::read_to_string(env.repo().join("long")).unwrap();
    assert!(
        long.starts_with("one\n") && long.ends_with("nine\n"),
        "{long}"
    );
    assert_eq!(git_in(&env, &env.repo(), &["show", ":s"]), "staged\n");
    assert_eq!(fs::read_to_string(env.repo().join("s")).unwrap(), "both\n");
    assert_eq!(git_in(&env, &env.repo(), &["stash", "list"]), "");
    nothing_left(&env);
    // An ignored file in the way is nothing that a stash holds.
    let tree = grow(&env, "u", "sealed");
    sh(
        &env,
        &tree,
        "echo 2 >mine.log; git add -f mine.log; git commit -q -m change",
    );
    let before = state(&env, &env.repo())["index"].clone();
    let (code, ended) = land(&env, &["u"]);
    assert_eq!(
        (code, &ended[0]["reason"]["code"]),
        (1, &json!("target_dirty")),
        "{ended:#?}"
    );
    assert_eq!(
        fs::read_to_string(env.repo().join("mine.log")).unwrap(),
        "mine\n"
    );
    assert_eq!(state(&env, &env.repo())["index"], before);
    assert_eq!(git_in(&env, &env.repo(), &["stash", "list"]), "");
}

#[test]
fn m7_a_stash_that_does_not_fit_any_more_is_kept_and_told() {
    let env = repository();
    sh(&env, &env.repo(), BASE);
    let tree = grow(&env, "t", "sealed");
    sh(&env, &tree, "echo landed >a; git commit -q -a -m change");
    sh(
        &env,
        &env.repo(),
        "echo mine >a; echo mine >b; echo mine >unknown",
    );
    env.ok(&["config", "set", "landing.autostash", "true"]);
    let answer = env.weald(&["land", "t"]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert!(answer.stdout.contains("stash@{0}"), "{answer:#?}");
    // The checkout is what landed: no half of the stash, no marks of a conflict. What was not in the way stayed.
    assert_eq!(env.git(&["status", "--porcelain"]), "?? unknown\n");
    assert_eq!(
        fs::read_to_string(env.repo().join("a")).unwrap(),
        "landed\n"
    );
    assert_eq!(env.git(&["show", "stash@{0}:a"]), "mine\n");
    assert_eq!(env.git(&["show", "main:a"]), "landed\n");
    let told = env.ok(&["doctor"]);
    let findings = told["findings"].as_array().unwrap();
    assert!(
        findings.iter().any(|one| one["code"] == "landing_stash"),
        "{findings:#?}"
    );
    // The command that is named brings it back, conflict and all.
    let line = answer
        .stdout
        .lines()
        .find(|line| line.contains("stash pop"));
    let (_, command) = line.unwrap().split_once(": git ").unwrap();
    let popped = env
        .command("git")
        .args(command.split(' '))
        .output()
        .unwrap();
    assert_eq!(popped.status.code(), Some(1), "{popped:?}");
    assert_eq!(fs::read_to_string(env.repo().join("b")).unwrap(), "mine\n");
    assert!(env.repo().join("unknown").exists());
}

#[test]
fn m7_a_stash_whose_place_was_taken_is_kept_whole() {
    let env = repository();
    sh(&env, &env.repo(), BASE);
    let tree = grow(&env, "t", "sealed");
    sh(
        &env,
        &tree,
        "echo landed >taken; git add taken; git commit -q -a -m change",
    );
    sh(&env, &env.repo(), "echo mine >taken; echo mine >b");
    env.ok(&["config", "set", "landing.autostash", "true"]);
    let answer = env.weald(&["land", "t"]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert!(answer.stdout.contains("taken does not fit"), "{answer:#?}");
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    assert_eq!(env.git(&["show", "stash@{0}:b"]), "mine\n");
    assert_eq!(env.git(&["show", "stash@{0}^3:taken"]), "mine\n");
}

#[test]
fn m7_what_was_stashed_comes_back_byte_by_byte() {
    use std::os::unix::fs::PermissionsExt;
    let env = repository();
    fs::write(env.repo().join(".gitattributes"), "*.txt text\n").unwrap();
    for file in ["shared", "notes.txt"] {
        fs::write(env.repo().join(file), "1\n2\n3\n4\n5\n6\n7\n8\n").unwrap();
    }
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "more"]);
    let tree = grow(&env, "a", "sealed");
    commit(&env, &tree, "shared", "one\n2\n3\n4\n5\n6\n7\n8\n");
    env.ok(&["config", "set", "landing.autostash", "true"]);
    // In the way, but it goes together; and files that are not in the way at all.
    fs::write(env.repo().join("shared"), "1\n2\n3\n4\n5\n6\n7\neight\n").unwrap();
    fs::write(env.repo().join("notes.txt"), "with\r\nreturns\r\n").unwrap();
    fs::write(env.repo().join("new.txt"), "new\r\n").unwrap();
    fs::write(env.repo().join("key.pem"), "secret").unwrap();
    let only_me = fs::Permissions::from_mode(0o600);
    fs::set_permissions(env.repo().join("key.pem"), only_me).unwrap();
    fs::hard_link(env.repo().join("key.pem"), env.root().join("key")).unwrap();
    landed(&env, &["a", "--keep"]);
    let read = |file: &str| fs::read_to_string(env.repo().join(file)).unwrap();
    assert_eq!(read("shared"), "one\n2\n3\n4\n5\n6\n7\neight\n");
    assert_eq!(read("notes.txt"), "with\r\nreturns\r\n");
    assert_eq!(read("new.txt"), "new\r\n");
    let found = fs::metadata(env.repo().join("key.pem")).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    let same = fs::metadata(env.root().join("key")).unwrap();
    use std::os::unix::fs::MetadataExt;
    assert_eq!(found.ino(), same.ino(), "the same file as before");
    assert_eq!(env.git(&["stash", "list"]), "");
}

/// A run in a linked worktree can write the index of main: what that says of times is not believed.
#[test]
fn m7_an_index_that_calls_an_edited_file_clean_is_not_believed() {
    for bit in ["", "--assume-unchanged", "--skip-worktree"] {
        let env = repository();
        sh(&env, &env.repo(), BASE);
        let tree = grow(&env, "t", "sealed");
        sh(&env, &tree, "echo 2 >a; git commit -q -a -m change");
        let bytes = |id: String| hex::decode(id.trim()).unwrap();
        let old = bytes(env.git(&["rev-parse", "HEAD:a"]));
        sh(&env, &env.repo(), "echo mine >a; git add a");
        let new = bytes(env.git(&["rev-parse", ":a"]));
        if !bit.is_empty() {
            env.git(&["update-index", bit, "a"]);
        }
        // The entry keeps the times of the edited file, and gets the id of the old one.
        let path = env.repo().join(".git/index");
        let mut index = fs::read(&path).unwrap();
        let place = index.windows(new.len()).position(|part| part == new);
        index[place.unwrap()..][..old.len()].copy_from_slice(&old);
        let end = index.len() - old.len();
        index[end..].fill(0);
        fs::write(&path, index).unwrap();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(later).unwrap();
        assert_eq!(env.git(&["status", "--porcelain"]), "", "git believes it");
        let (code, ended) = land(&env, &["t"]);
        assert_eq!(code, 1, "{bit}: {ended:#?}");
        assert_eq!(ended[0]["reason"]["code"], "target_dirty", "{bit}");
        assert_eq!(ended[0]["reason"]["paths"], json!(["a"]), "{bit}");
        let found = fs::read_to_string(env.repo().join("a")).unwrap();
        assert_eq!(found, "mine\n", "{bit}");
        nothing_left(&env);
    }
}
