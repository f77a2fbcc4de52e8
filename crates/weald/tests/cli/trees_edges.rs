//! Where trees meet other things: shells, claims, other repositories, snapshots of odd states.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use weald_testkit::TestEnv;

use crate::trees_remove::{grow, repository};

fn git_in(env: &TestEnv, directory: &Path, args: &[&str]) -> String {
    let output = env
        .command("git")
        .arg("-C")
        .arg(directory)
        .args(args)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {args:?}: {told}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

#[test]
fn z4_a_snapshot_brings_its_head_back_and_moves_no_other_branch() {
    for kind in ["sealed", "linked"] {
        let env = repository();
        let path = grow(&env, "a", kind);
        fs::write(path.join("mine"), "mine").unwrap();
        let before = git_in(&env, &path, &["rev-parse", "HEAD"]);
        env.ok(&["snapshot", "create", "a"]);
        git_in(&env, &path, &["switch", "-qc", "other"]);
        fs::remove_file(path.join("mine")).unwrap();
        git_in(
            &env,
            &path,
            &["commit", "-q", "--allow-empty", "-m", "on other"],
        );
        let other = git_in(&env, &path, &["rev-parse", "other"]);
        env.ok(&["snapshot", "restore", "a", "1"]);
        assert_eq!(
            git_in(&env, &path, &["symbolic-ref", "HEAD"]),
            "refs/heads/wt/a",
            "{kind}"
        );
        assert_eq!(git_in(&env, &path, &["rev-parse", "HEAD"]), before);
        assert_eq!(git_in(&env, &path, &["rev-parse", "other"]), other);
        assert_eq!(fs::read_to_string(path.join("mine")).unwrap(), "mine");
        let back = env.ok(&["snapshot", "restore", "a", "2"]);
        assert_eq!(back["snapshot"]["id"], 2);
        assert_eq!(
            git_in(&env, &path, &["symbolic-ref", "HEAD"]),
            "refs/heads/other"
        );
    }
}

#[test]
fn z4_what_is_in_the_way_of_a_snapshot_goes_aside() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    fs::write(path.join("x"), "file").unwrap();
    fs::create_dir(path.join("d")).unwrap();
    fs::write(path.join("d/y"), "below").unwrap();
    env.ok(&["snapshot", "create", "a"]);
    fs::remove_file(path.join("x")).unwrap();
    fs::create_dir(path.join("x")).unwrap();
    fs::write(path.join("x/new"), "new").unwrap();
    fs::remove_dir_all(path.join("d")).unwrap();
    fs::write(path.join("d"), "now a file").unwrap();
    env.ok(&["snapshot", "restore", "a", "1"]);
    let text = |name: &str| fs::read_to_string(path.join(name)).unwrap();
    assert_eq!((text("x"), text("d/y")), ("file".into(), "below".into()));
    assert_eq!(text("x.before-restore/new"), "new");
    assert_eq!(text("d.before-restore"), "now a file");
}

#[test]
fn w5_a_shell_in_a_tree_makes_other_trees_where_they_belong() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    let answer = env
        .weald_command(&["new", "b", "--json"])
        .env("WEALD_TREE", "a")
        .env("WEALD_TREE_PATH", &path)
        .env("WEALD_MAIN", env.repo())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&answer.stdout);
    assert!(answer.status.success(), "{text}");
    assert!(env.root().join("app.weald/b/.git").is_dir(), "{text}");
}

#[test]
fn w5_exit_leaves_the_same_name_in_another_repository_alone() {
    let env = repository();
    grow(&env, "a", "sealed");
    let other = env.root().join("other");
    fs::create_dir(&other).unwrap();
    git_in(&env, &other, &["init", "-q", "-b", "main"]);
    git_in(
        &env,
        &other,
        &["commit", "-q", "--allow-empty", "-m", "first"],
    );
    let there = other.to_str().unwrap();
    env.ok(&["-C", there, "new", "a"]);
    let exit = |directory: &Path| {
        let mut command = env.weald_command(&["exit", "--remove", "--json"]);
        command
            .current_dir(directory)
            .env("WEALD_TREE", "a")
            .env("WEALD_TREE_PATH", env.root().join("app.weald/a"))
            .env("WEALD_MAIN", env.repo());
        command.output().unwrap()
    };
    assert!(!exit(&other).status.success());
    assert!(env.root().join("other.weald/a/.git").is_dir());
    // From no repository at all, the shell's own repository counts.
    assert!(exit(env.root()).status.success());
    assert!(!env.root().join("app.weald/a").exists());
    assert!(env.root().join("other.weald/a/.git").is_dir());
}

#[test]
fn s21_a_scratch_tree_needs_no_name() {
    let env = repository();
    grow(&env, "a", "sealed");
    let first = env.ok(&["new", "--scratch", "--for", "a"]);
    let second = env.ok(&["new", "--scratch", "--for", "a"]);
    assert_eq!(first["tree"]["name"], "a-s1");
    assert_eq!(second["tree"]["name"], "a-s2");
    assert_eq!(second["tree"]["target"], "wt/a");
}

#[test]
fn t10_a_removal_completes_no_task_under_somebody_elses_claim() {
    let env = repository();
    env.ok(&["task", "add", "work"]);
    env.ok(&["new", "a", "--task", "1"]);
    let path = env.root().join("app.weald/a");
    env.ok(&["task", "claim", "1", "--session", "alice"]);
    env.refused(&["rm", "a", "--complete-task"], 1, "token_required");
    env.refused(
        &[
            "task",
            "closeout",
            "1",
            "remove",
            "--reason",
            "r",
            "--complete-task",
        ],
        1,
        "token_required",
    );
    assert!(path.join(".git").is_dir(), "nothing was touched");
    let task = &env.ok(&["task", "show", "1"])["task"];
    assert_eq!(
        (task["status"].as_str(), task["worktree"].as_str()),
        (Some("in_progress"), Some("a"))
    );
    assert!(task["closeout"].is_null());
    env.ok(&["rm", "a", "--complete-task", "--token", "1"]);
    assert_eq!(
        env.ok(&["task", "show", "1"])["task"]["status"],
        "completed"
    );
}

#[test]
fn d3_a_commit_that_only_a_tag_holds_refuses() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    env.git(&["tag", "of-main"]);
    git_in(&env, &path, &["checkout", "-q", "--detach"]);
    git_in(
        &env,
        &path,
        &["commit", "-q", "--allow-empty", "-m", "tagged"],
    );
    git_in(&env, &path, &["tag", "-a", "mine", "-m", "mine"]);
    let tagged = git_in(&env, &path, &["rev-parse", "HEAD"]);
    git_in(&env, &path, &["checkout", "-q", "wt/a"]);
    env.refused(&["rm", "a"], 1, "tree_unlanded");
    git_in(&env, &path, &["tag", "-d", "mine"]);
    git_in(&env, &path, &["reflog", "expire", "--expire=now", "--all"]);
    env.ok(&["status", "a"]);
    let vault = env.repo().join(".git/weald/vault");
    let held = git_in(
        &env,
        &vault,
        &["for-each-ref", "--contains", &tagged, "refs/tree/1/old/"],
    );
    assert!(!held.is_empty(), "a deleted tag is kept");
}

#[test]
fn x3_main_keeps_a_trees_commits_while_it_is_rebased() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    for (directory, text) in [(&path, "tree"), (&env.repo(), "main")] {
        fs::write(directory.join("config.py"), text).unwrap();
        git_in(&env, directory, &["commit", "-qam", text]);
    }
    env.ok(&["status", "a"]);
    let tip = env.git(&["rev-parse", "wt/a"]);
    let answer = env.weald(&["sync", "a", "--rebase", "--json"]);
    assert_eq!(answer.code, 3, "{answer:#?}");
    assert_eq!(answer.json()["operation"], "rebase");
    env.ok(&["status", "a"]);
    assert_eq!(env.git(&["rev-parse", "wt/a"]), tip);
}

#[test]
fn k21_a_moved_tree_that_hides_what_it_is_opens_no_database_of_its_own() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    git_in(&env, &path, &["repack", "-adq"]);
    fs::remove_file(path.join(".git/objects/info/alternates")).unwrap();
    let moved = env.root().join("moved");
    fs::rename(&path, &moved).unwrap();
    let place = moved.to_str().unwrap();
    for command in ["list", "status", "doctor"] {
        env.refused(&["-C", place, command], 1, "tree_lost");
    }
    assert!(!moved.join(".git/weald").exists());
}

#[test]
fn k21_state_behind_a_link_is_refused() {
    let env = repository();
    let outside = env.root().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, env.repo().join(".git/weald")).unwrap();
    env.refused(&["list"], 1, "state_linked");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

/// A filter of the tree's runs beside git inside; it finds the process that answers and tries to answer for it.
#[test]
fn x6_nobody_in_a_tree_answers_for_the_look() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    let script = "for p in /proc/[0-9]*; do\n\
                  grep -qa __weald-inside \"$p/cmdline\" 2>/dev/null || continue\n\
                  echo '{\"error\":\"FORGED\",\"paths\":[],\"files\":[],\"truncated\":false}' > \"$p/fd/1\"\n\
                  done 2>/dev/null\ncat\n";
    fs::write(path.join(".git/answer.sh"), script).unwrap();
    fs::write(path.join(".git/info/attributes"), "* filter=f\n").unwrap();
    let clean = format!("sh {}/.git/answer.sh", path.display());
    git_in(&env, &path, &["config", "filter.f.clean", &clean]);
    let text = fs::read_to_string(path.join("config.py")).unwrap();
    fs::write(
        path.join("config.py"),
        text.replace(|c: char| c.is_alphanumeric(), "x"),
    )
    .unwrap();
    for _ in 0..3 {
        let answer = env.weald(&["status", "a", "--json"]);
        assert!(!answer.stdout.contains("FORGED"), "{answer:#?}");
        assert_eq!(answer.json()["tree"]["dirty"], true, "{answer:#?}");
    }
}

/// A directory that got the number of a deleted tree is not that tree, and a folder elsewhere with it is no tree at all.
#[test]
fn k5_a_number_that_was_given_again_is_no_tree() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    let state = env.home().join(".local/state/weald/directories");
    let entry = fs::read_dir(&state)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let plain = env.root().join("plain");
    fs::create_dir(&plain).unwrap();
    git_in(&env, &plain, &["init", "-q", "-b", "main"]);
    git_in(
        &env,
        &plain,
        &["commit", "-q", "--allow-empty", "-m", "first"],
    );
    let found = fs::metadata(&plain).unwrap();
    use std::os::unix::fs::MetadataExt;
    // As if the tree's number had been given to the folder.
    let forged = state.join(format!("{:x}-{:x}", found.dev(), found.ino()));
    fs::copy(&entry, &forged).unwrap();
    env.ok(&["-C", plain.to_str().unwrap(), "list"]);
    let record = fs::read_to_string(env.repo().join(".git/worktrees/a/weald")).unwrap();
    assert!(
        record.contains("\"born\":1"),
        "the time is on record: {record}"
    );
    assert!(path.is_dir());
}

#[test]
fn d16_doctor_leaves_the_binding_of_an_older_tree_that_came_back() {
    let env = repository();
    env.ok(&["task", "add", "work"]);
    env.ok(&["new", "a", "--task", "1"]);
    env.ok(&["rm", "a"]);
    env.ok(&["new", "a"]);
    env.ok(&["rm", "a"]);
    env.ok(&["trash", "restore", "1"]);
    let found = env.ok(&["doctor", "--fix"]);
    assert_eq!(found["findings"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(env.ok(&["task", "show", "1"])["task"]["worktree"], "a");
}
