//! Setting trees aside and removing them: what refuses, and what a removal leaves behind.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::trees_trash::manifest;

pub const KINDS: [&str; 2] = ["sealed", "linked"];

/// A repository with a file, a rule for ignored files, and a name for commits in trees.
pub fn repository() -> TestEnv {
    TestEnv::with_files(env!("CARGO_BIN_EXE_weald"))
}

/// Makes a tree and answers where it is.
pub fn grow(env: &TestEnv, name: &str, kind: &str) -> PathBuf {
    env.ok(&["new", name, "--kind", kind]);
    env.root().join("app.weald").join(name)
}

/// Runs the user's git in a directory; it may fail.
pub fn try_git(env: &TestEnv, directory: &Path, args: &[&str]) -> (bool, String) {
    let mut command = env.command("git");
    let output = command.args(args).current_dir(directory).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[track_caller]
pub fn git_in(env: &TestEnv, directory: &Path, args: &[&str]) -> String {
    let (done, text) = try_git(env, directory, args);
    assert!(done, "git {args:?}: {text}");
    text
}

/// Commits one file in a tree; answers the commit.
pub fn commit(env: &TestEnv, tree: &Path, file: &str, text: &str) -> String {
    fs::write(tree.join(file), text).unwrap();
    git_in(env, tree, &["add", "--", file]);
    git_in(env, tree, &["commit", "-q", "-m", file]);
    git_in(env, tree, &["rev-parse", "HEAD"]).trim().to_owned()
}

/// The events about a tree: the short type, and the whole.
pub fn events(env: &TestEnv, tree: &str) -> Vec<(String, Value)> {
    let told = env.weald(&["events", "--tree", tree, "--json", "--limit", "200"]);
    let events = told.stdout.lines().map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        let kind = event["type"].as_str().unwrap();
        (kind.replace("dev.weald.", ""), event)
    });
    events.collect()
}

pub fn has_event(env: &TestEnv, tree: &str, kind: &str) -> bool {
    events(env, tree).iter().any(|(known, _)| known == kind)
}

/// Runs weald in a directory.
pub fn weald_in(env: &TestEnv, directory: &Path, args: &[&str]) -> Answer {
    let mut command = env.weald_command(args);
    let output = command.current_dir(directory).output().unwrap();
    Answer {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn has_branch(env: &TestEnv, branch: &str) -> bool {
    !env.git(&["branch", "--list", branch]).is_empty()
}

#[test]
fn d1_keep_records_the_time_and_leaves_tree_and_branch() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        fs::write(path.join("draft"), "mine").unwrap();
        let kept = env.ok(&["keep", "a"]);
        assert_eq!(kept["outcome"], "kept");
        assert_eq!(kept["tree"]["status"], "kept");
        assert!(kept["tree"]["kept_at"].is_string(), "{kept}");
        assert_eq!(env.ok(&["show", "a"])["tree"]["status"], "kept");
        assert!(has_event(&env, "a", "tree.kept"));
        assert_eq!(fs::read_to_string(path.join("draft")).unwrap(), "mine");
        assert!(has_branch(&env, "wt/a"), "{kind}");
        assert_eq!(env.ok(&["keep", "a"])["tree"]["status"], "kept");
        assert_eq!(
            env.weald(&["run", "a", "--", "test", "-f", "draft"]).code,
            0
        );
    }
}

#[test]
fn d2_staged_unstaged_and_untracked_changes_refuse() {
    for kind in KINDS {
        let env = repository();
        for (name, counts) in [
            ("staged", [1, 0, 0]),
            ("unstaged", [0, 1, 0]),
            ("untracked", [0, 0, 2]),
        ] {
            let path = grow(&env, name, kind);
            match name {
                "untracked" => {
                    fs::create_dir(path.join("new")).unwrap();
                    fs::write(path.join("new/one"), "1").unwrap();
                    fs::write(path.join("new/two"), "2").unwrap();
                }
                _ => fs::write(path.join("config.py"), "changed\n").unwrap(),
            }
            if name == "staged" {
                git_in(&env, &path, &["add", "config.py"]);
            }
            let before = manifest(&path);
            let refused = env.refused(&["rm", name], 1, "tree_dirty");
            let error = &refused["error"];
            let said = error["message"].as_str().unwrap();
            let [staged, unstaged, untracked] = counts;
            assert!(
                said.contains(&format!(
                    "{staged} staged, {unstaged} unstaged, {untracked} untracked"
                )),
                "{said}"
            );
            let hint = error["hint"].as_str().unwrap();
            assert!(
                hint.contains("--discard") && hint.contains("weald keep"),
                "{hint}"
            );
            let reason = &error["details"]["reasons"][0];
            assert_eq!(reason["untracked"], json!(untracked), "{kind} {name}");
            assert_eq!(manifest(&path), before);
            assert_eq!(env.ok(&["show", name])["tree"]["status"], "active");
        }
    }
}

#[test]
fn d3_commits_that_the_target_lacks_refuse_without_any_remote() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let tip = commit(&env, &path, "work", "work\n");
        let refused = env.refused(&["rm", "a"], 1, "tree_unlanded");
        assert_eq!(refused["error"]["details"]["reasons"][0]["commits"], 1);
        assert!(path.join("work").is_file());
        assert_eq!(env.git(&["rev-parse", "wt/a"]).trim(), tip, "{kind}");
        assert_eq!(git_in(&env, &path, &["rev-parse", "HEAD"]).trim(), tip);
        // An upstream that has everything proves nothing about the target.
        env.git(&["branch", "elsewhere", &tip]);
        env.git(&["config", "branch.wt/a.remote", "."]);
        env.git(&["config", "branch.wt/a.merge", "refs/heads/elsewhere"]);
        env.refused(&["rm", "a"], 1, "tree_unlanded");
        env.git(&["merge", "-q", "--ff-only", "wt/a"]);
        assert_eq!(env.ok(&["rm", "a"])["outcome"], "trashed");
    }
}

#[test]
fn d3_a_commit_on_another_branch_of_a_sealed_tree_refuses() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    git_in(&env, &path, &["checkout", "-q", "-b", "side"]);
    commit(&env, &path, "side-work", "x\n");
    git_in(&env, &path, &["checkout", "-q", "wt/a"]);
    env.refused(&["rm", "a"], 1, "tree_unlanded");
    assert!(path.is_dir());
}

#[test]
fn d4_commits_behind_names_that_weald_can_not_use_refuse_and_are_kept() {
    let env = repository();
    let path = grow(&env, "odd", "sealed");
    // git takes them all; a log of HEAD is the only other place that names the commits.
    let names = [
        "feature\u{200b}x",
        "\u{9b}31m",
        &"n".repeat(250),
        "a\u{202e}b",
    ];
    let mut commits = Vec::new();
    for (number, name) in names.iter().enumerate() {
        git_in(&env, &path, &["checkout", "-q", "-b", name]);
        commits.push(commit(&env, &path, &format!("f{number}"), "precious\n"));
        git_in(&env, &path, &["checkout", "-q", "wt/odd"]);
    }
    git_in(&env, &path, &["reflog", "expire", "--expire=now", "--all"]);
    let refused = env.refused(&["rm", "odd"], 1, "tree_unlanded");
    assert!(refused.to_string().contains("4 commits"), "{refused}");

    // On such a branch everything works, too.
    git_in(&env, &path, &["checkout", "-q", names[0]]);
    assert_eq!(env.weald(&["status", "odd"]).code, 0);
    env.ok(&["rm", "odd", "--discard"]);
    env.ok(&["trash", "purge", "--older-than", "0", "--apply"]);
    let kept = env.ok(&["vault", "list"]).to_string();
    for commit in &commits {
        assert!(kept.contains(commit), "{commit} is not in {kept}");
    }
}

#[test]
fn d13_what_only_an_annotated_tag_holds_is_listed_and_restored() {
    let env = repository();
    let path = grow(&env, "tagged", "sealed");
    let only = commit(&env, &path, "f", "precious\n");
    git_in(&env, &path, &["tag", "-a", "-m", "v1", "v1"]);
    git_in(&env, &path, &["reset", "-q", "--hard", "HEAD~1"]);
    git_in(&env, &path, &["reflog", "expire", "--expire=now", "--all"]);
    env.ok(&["rm", "tagged", "--discard"]);
    env.ok(&["trash", "purge", "--older-than", "0", "--apply"]);
    let kept = env.ok(&["vault", "list"]).to_string();
    assert!(kept.contains(&only), "{kept}");
    env.ok(&["vault", "restore", "tagged", &only]);
    assert!(
        env.git(&["branch", "--contains", &only])
            .contains("wt/tagged")
    );
}

/// Damages a tree; the repository's own part of it is in `own`.
fn damage(what: &str, path: &Path, own: &Path, main: &Path) {
    let dot_git = path.join(".git");
    let away = path.with_extension("away");
    match what {
        "head" => fs::write(own.join("HEAD"), "garbage\n").unwrap(),
        "index" => fs::write(own.join("index"), "garbage").unwrap(),
        "objects" => {
            let _ = fs::remove_dir_all(own.join("objects"));
            fs::create_dir(own.join("objects")).unwrap();
        }
        "missing" => fs::rename(&dot_git, away).unwrap(),
        "file" => {
            fs::rename(&dot_git, away).unwrap();
            fs::write(&dot_git, format!("gitdir: {}\n", main.display())).unwrap();
        }
        "link" => {
            fs::rename(&dot_git, away).unwrap();
            symlink(main, &dot_git).unwrap();
        }
        other => unreachable!("{other}"),
    }
}

#[test]
fn d4_a_damaged_tree_is_unknown_and_refused() {
    for kind in KINDS {
        let env = repository();
        let main = env.repo().join(".git");
        for what in ["head", "index", "objects", "missing", "file", "link"] {
            if kind == "linked" && what == "objects" {
                continue;
            }
            let path = grow(&env, what, kind);
            commit(&env, &path, "work", what);
            let own = match kind {
                "sealed" => path.join(".git"),
                _ => main.join("worktrees").join(what),
            };
            damage(what, &path, &own, &main);
            let before = manifest(&path);
            let shown = env.ok(&["status", what]);
            assert_eq!(shown["tree"]["dirty"], "unknown", "{kind} {what}: {shown}");
            assert!(shown["tree"]["problem"].is_string(), "{kind} {what}");
            let answer = env.weald(&["rm", what, "--json"]);
            assert_eq!(answer.code, 1, "{kind} {what}: {answer:#?}");
            assert_eq!(answer.error_code(), "tree_unknown", "{kind} {what}");
            let why = &answer.json()["error"]["details"]["reasons"][0]["why"];
            assert!(
                why.as_str().is_some_and(|why| !why.is_empty()),
                "{answer:#?}"
            );
            assert_eq!(manifest(&path), before, "{kind} {what}");
            assert_eq!(env.ok(&["show", what])["tree"]["status"], "active");
            let removed = env.ok(&["rm", what, "--discard"]);
            let trash = removed["tree"]["trash"]["path"].as_str().unwrap();
            assert_eq!(manifest(Path::new(trash)), before, "{kind} {what}");
        }
    }
}

#[test]
fn d4_a_look_that_takes_too_long_refuses() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        git_in(&env, &path, &["config", "filter.slow.clean", "sleep 30"]);
        git_in(&env, &path, &["config", "filter.slow.required", "true"]);
        fs::write(path.join(".gitattributes"), "*.py filter=slow\n").unwrap();
        fs::write(path.join("config.py"), "BASE\n").unwrap();
        let slow = ["--set", "tree.look_limit=500ms"];
        let shown = env.ok(&[&["status", "a"][..], &slow].concat());
        assert_eq!(shown["tree"]["dirty"], "unknown", "{kind}: {shown}");
        env.refused(&[&["rm", "a"][..], &slow].concat(), 1, "tree_unknown");
        assert_eq!(
            fs::read_to_string(path.join("config.py")).unwrap(),
            "BASE\n"
        );
    }
}

#[test]
fn d4_another_directory_in_its_place_is_never_taken() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        fs::rename(&path, env.root().join("moved")).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("precious"), "somebody's").unwrap();
        for args in [&["rm", "a"][..], &["rm", "a", "--discard", "--force"]] {
            env.refused(args, 1, "tree_replaced");
        }
        assert_eq!(
            fs::read_to_string(path.join("precious")).unwrap(),
            "somebody's"
        );
        assert!(env.root().join("moved/config.py").is_file());
    }
}

#[test]
fn d5_discard_records_tip_and_where_the_rest_is() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let tip = commit(&env, &path, "work", "work\n");
        fs::write(path.join("config.py"), "uncommitted\n").unwrap();
        let removed = env.ok(&["rm", "a", "--discard"]);
        assert_eq!(removed["outcome"], "trashed");
        assert!(!path.exists());
        let told = events(&env, "a");
        let (_, event) = told
            .iter()
            .rfind(|(kind, _)| kind == "tree.trashed")
            .unwrap();
        let trash = &event["data"]["after"]["tree"]["trash"];
        assert_eq!(trash["tip"], json!(tip), "{kind}");
        let place = Path::new(trash["path"].as_str().unwrap());
        let kept = fs::read_to_string(place.join("config.py")).unwrap();
        assert_eq!(kept, "uncommitted\n");
        let snapshot = trash["snapshot"].as_str().unwrap();
        let vault = env.repo().join(".git/weald/vault");
        git_in(&env, &vault, &["cat-file", "-e", snapshot]);
        let restore = removed["restore"].as_str().unwrap();
        assert_eq!(restore, "weald trash restore 1");
    }
}

#[test]
fn d6_ignored_files_are_told_and_kept_in_the_trash() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        fs::write(path.join("x.log"), "ignored").unwrap();
        let said = env.weald(&["rm", "a"]);
        assert_eq!(said.code, 0, "{said:#?}");
        assert!(said.stdout.contains("1 ignored"), "{said:#?}");
        let trash = env.ok(&["trash", "list"]);
        let place = Path::new(trash["trash"][0]["path"].as_str().unwrap());
        assert_eq!(fs::read_to_string(place.join("x.log")).unwrap(), "ignored");
        env.ok(&["trash", "restore", "a"]);
        assert_eq!(fs::read_to_string(path.join("x.log")).unwrap(), "ignored");
        assert_eq!(env.ok(&["rm", "a"])["ignored"], 1);
    }
}

#[test]
fn d7_after_a_squash_the_branch_is_deleted() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        commit(&env, &path, "one", "1\n");
        commit(&env, &path, "two", "2\n");
        env.ok(&["status", "a"]);
        env.git(&["merge", "-q", "--squash", "wt/a"]);
        env.git(&["commit", "-q", "-m", "squashed"]);
        // The target went on since.
        env.git(&["commit", "-q", "--allow-empty", "-m", "later"]);
        let removed = env.ok(&["rm", "a"]);
        assert_eq!(removed["branch"], "deleted", "{kind}: {removed}");
        assert!(!has_branch(&env, "wt/a"), "{kind}");
    }
}

#[test]
fn d7_the_policy_decides_about_the_branch_and_no_tip_is_lost() {
    for kind in KINDS {
        let env = repository();
        for (name, policy, work, outcome) in [
            ("a", "if_landed", true, "kept_unmerged"),
            ("b", "if_landed", false, "deleted"),
            ("c", "keep", false, "kept_by_policy"),
            ("d", "always", true, "deleted"),
            ("e", "if_unchanged", true, "kept_by_policy"),
            ("f", "if_unchanged", false, "deleted"),
            ("g", "with_tree", false, "deleted"),
        ] {
            let path = grow(&env, name, kind);
            if work {
                commit(&env, &path, "work", name);
            }
            let tip = git_in(&env, &path, &["rev-parse", "HEAD"]);
            let set = format!("remove.branch={policy}");
            let removed = env.ok(&["rm", name, "--discard", "--set", &set]);
            assert_eq!(removed["branch"], outcome, "{kind} {policy} {work}");
            assert_eq!(
                has_branch(&env, &format!("wt/{name}")),
                outcome != "deleted"
            );
            let vault = env.repo().join(".git/weald/vault");
            if outcome == "deleted" {
                let held = ["for-each-ref", "--contains", tip.trim()];
                let held = git_in(&env, &vault, &held);
                assert!(!held.is_empty(), "{kind} {policy}: the vault lost {tip}");
            }
        }
    }
}

#[test]
fn d8_a_directory_that_is_gone_is_forgotten() {
    for kind in KINDS {
        let env = repository();
        for (name, branch) in [("a", "deleted"), ("b", "kept_unmerged")] {
            let path = grow(&env, name, kind);
            if name == "b" {
                commit(&env, &path, "work", "work\n");
                env.ok(&["status", name]);
            }
            fs::remove_dir_all(&path).unwrap();
            let removed = env.ok(&["rm", name]);
            assert_eq!(removed["outcome"], "already_gone");
            assert_eq!(removed["stale_path"], true);
            assert_eq!(removed["tree"]["status"], "removed");
            assert_eq!(removed["branch"], branch, "{kind}");
            assert!(has_event(&env, name, "tree.remove.after"));
            let listed = env.git(&["worktree", "list"]);
            assert!(!listed.contains("app.weald"), "{listed}");
            assert_eq!(env.ok(&["list"])["trees"], json!([]));
        }
    }
}

#[test]
fn d9_what_git_refuses_is_a_failure_on_record() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        env.ok(&["task", "add", "work"]);
        env.ok(&["task", "bind", "1", "a", "--start"]);
        let before = manifest(&path);
        let blockers = [
            env.repo().join(".git/refs/heads/wt/a.lock"),
            env.root().join("app.weald/.trash"),
        ];
        for blocker in blockers {
            let _ = fs::remove_dir_all(&blocker);
            fs::write(&blocker, "").unwrap();
            let answer = env.weald(&["rm", "a", "--complete-task", "--json"]);
            assert_eq!(answer.code, 1, "{kind} {}: {answer:#?}", blocker.display());
            assert_eq!(manifest(&path), before, "{kind}");
            assert_eq!(env.ok(&["show", "a"])["tree"]["status"], "active");
            assert_eq!(env.ok(&["task", "show", "1"])["task"]["worktree"], "a");
            let told = events(&env, "a");
            let (last, event) = told.last().unwrap();
            assert_eq!(last, "tree.remove.failed", "{kind}");
            assert!(event["data"]["error"].is_string(), "{event}");
            fs::remove_file(&blocker).unwrap();
        }
        assert!(env.git(&["worktree", "list"]).contains("app.weald/a"));
        let removed = env.ok(&["rm", "a", "--complete-task"]);
        assert_eq!(removed["task"]["status"], "completed");
    }
}

#[test]
fn d9_a_lock_that_git_knows_refuses() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let name = path.to_str().unwrap();
        try_git(&env, &env.repo(), &["worktree", "unlock", name]);
        env.git(&["worktree", "lock", "--reason", "on a stick", name]);
        let refused = env.refused(&["rm", "a", "--discard"], 1, "tree_locked");
        let said = refused["error"]["message"].as_str().unwrap();
        assert!(said.contains("on a stick"), "{kind}: {said}");
        assert!(path.join("config.py").is_file());
        assert_eq!(env.ok(&["show", "a"])["tree"]["status"], "active");
        assert!(has_event(&env, "a", "tree.remove.failed"));
    }
}
