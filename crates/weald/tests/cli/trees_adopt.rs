//! Worktrees that git or other tools made: listed, adopted without touching a byte, and then like any linked tree.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_refuse::manifest;
use crate::trees_remove::{commit, git_in, has_event, repository, weald_in};

/// A worktree made by plain git, on a new branch.
fn plain(env: &TestEnv, place: &str, branch: &str) -> PathBuf {
    let path = env.root().join(place);
    let text = path.to_str().unwrap();
    env.git(&["worktree", "add", "-q", "-b", branch, text]);
    path
}

/// git's own entry of a worktree, without weald's note.
fn entry(env: &TestEnv, name: &str) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut files = manifest(&env.repo().join(".git/worktrees").join(name));
    files.remove(Path::new("weald"));
    files
}

fn dirty(env: &TestEnv, path: &Path) {
    commit(env, path, "work", "done\n");
    fs::write(path.join("staged"), "s").unwrap();
    git_in(env, path, &["add", "staged"]);
    fs::write(path.join("config.py"), "changed\n").unwrap();
    fs::write(path.join("untracked"), "u").unwrap();
    fs::write(path.join("x.log"), "ignored").unwrap();
}

#[test]
fn k5_an_adopted_worktree_keeps_every_byte() {
    for place in ["plain", "app/.claude/worktrees/a+b", "app.feature"] {
        let env = repository();
        let base = env.git(&["rev-parse", "HEAD"]).trim().to_owned();
        let path = plain(&env, place, "mine");
        dirty(&env, &path);
        env.git(&["commit", "-q", "--allow-empty", "-m", "main goes on"]);
        env.ok(&["task", "add", "Fix it"]);
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let admin = fs::read_dir(env.repo().join(".git/worktrees")).unwrap();
        let admin = admin
            .flatten()
            .next()
            .unwrap()
            .file_name()
            .into_string()
            .unwrap();
        let before = (
            manifest(&path),
            entry(&env, &admin),
            env.git(&["for-each-ref"]),
        );
        let tree = env.ok(&["adopt", path.to_str().unwrap(), "--task", "1"])["tree"].clone();
        let after = (
            manifest(&path),
            entry(&env, &admin),
            env.git(&["for-each-ref"]),
        );
        assert!(before == after, "{place}: something was touched");
        assert_eq!(tree["name"], name.as_str());
        assert_eq!(tree["kind"], "linked");
        assert_eq!(tree["path"], path.to_str().unwrap());
        assert_eq!(tree["branch"], "mine");
        assert_eq!(tree["target"], "main");
        assert_eq!(tree["base"], json!({"ref": "main", "commit": base}));
        assert_eq!(
            (&tree["task"], &tree["status"]),
            (&json!(1), &json!("active"))
        );
        assert_eq!(
            env.ok(&["task", "show", "1"])["task"]["worktree"],
            name.as_str()
        );
        assert!(has_event(&env, &name, "tree.adopted"));
        let doctor = env.weald(&["doctor", "--json"]);
        assert_eq!(doctor.code, 0, "{doctor:#?}");
        env.refused(&["adopt", path.to_str().unwrap()], 1, "tree_exists");
    }
}

#[test]
fn k5_every_command_works_on_an_adopted_worktree() {
    let env = repository();
    let path = plain(&env, "elsewhere/a", "mine");
    dirty(&env, &path);
    env.ok(&["adopt", path.to_str().unwrap()]);
    let tree = env.ok(&["status", "a"])["tree"].clone();
    assert_eq!(
        (&tree["staged"], &tree["unstaged"], &tree["untracked"]),
        (&json!(1), &json!(1), &json!(1))
    );
    assert_eq!(tree["ahead"], 1);
    // Inside, the tree is known.
    let inside = weald_in(&env, &path, &["status", "--json"]);
    assert_eq!(inside.json()["tree"]["name"], "a", "{inside:#?}");
    let files = env.ok(&["diff", "a"])["files"].clone();
    assert_eq!(files.as_array().unwrap().len(), 4, "{files}");
    assert_eq!(
        env.weald(&["run", "a", "--", "test", "-f", "untracked"])
            .code,
        0
    );
    assert_eq!(env.ok(&["keep", "a"])["tree"]["status"], "kept");
    env.ok(&["lock", "a", "--reason", "mine"]);
    env.refused(&["rm", "a", "--discard"], 1, "tree_locked");
    env.ok(&["unlock", "a"]);
    env.refused(&["rm", "a"], 1, "tree_dirty");
    let (before, status) = (
        manifest(&path),
        git_in(&env, &path, &["status", "--porcelain"]),
    );
    let removed = env.ok(&["rm", "a", "--discard"]);
    assert_eq!(removed["branch"], "kept_by_policy");
    assert!(!path.exists());
    assert_eq!(
        env.ok(&["list", "--all"])["foreign"],
        json!([]),
        "in the trash it is weald's"
    );
    env.ok(&["trash", "restore", "a"]);
    assert_eq!(manifest(&path), before);
    assert_eq!(git_in(&env, &path, &["status", "--porcelain"]), status);
    assert_eq!(
        git_in(&env, &path, &["branch", "--show-current"]).trim(),
        "mine"
    );
    assert_eq!(env.weald(&["doctor"]).code, 0);
}

#[test]
fn k5_what_can_not_be_adopted_is_refused_with_a_way_on() {
    let env = repository();
    let refused = |path: &Path, exit: i32, code: &str| {
        let answer = env.refused(&["adopt", path.to_str().unwrap()], exit, code);
        let hint = answer["error"]["hint"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(!hint.is_empty(), "{answer}");
        hint
    };
    refused(&env.repo(), 1, "main_checkout");
    let folder = env.root().join("folder");
    fs::create_dir(&folder).unwrap();
    refused(&folder, 1, "not_a_worktree");
    refused(&env.root().join("nowhere"), 1, "not_a_worktree");
    let other = env.root().join("other.git");
    env.git(&["clone", "-q", "--bare", ".", other.to_str().unwrap()]);
    refused(&other, 1, "not_a_worktree");
    let detached = env.root().join("detached");
    env.git(&[
        "worktree",
        "add",
        "-q",
        "--detach",
        detached.to_str().unwrap(),
    ]);
    assert!(refused(&detached, 1, "detached_head").contains("switch -c"));
    let gone = plain(&env, "gone", "gone");
    fs::remove_dir_all(&gone).unwrap();
    assert!(refused(&gone, 4, "worktree_gone").contains("git worktree prune"));
    let copied = plain(&env, "copied", "copied");
    fs::write(
        copied.join(".git"),
        format!(
            "gitdir: {}\n",
            env.repo().join(".git/worktrees/gone").display()
        ),
    )
    .unwrap();
    refused(&copied, 1, "worktree_broken");
    env.git(&["checkout", "-q", "-b", "side"]);
    let on_target = env.root().join("main-again");
    env.git(&["worktree", "add", "-q", on_target.to_str().unwrap(), "main"]);
    refused(&on_target, 1, "target_branch");
    let ours = env.ok(&["new", "ours", "--kind", "linked"])["tree"]["path"].clone();
    refused(Path::new(ours.as_str().unwrap()), 1, "tree_exists");
    let sealed = env.ok(&["new", "sealed"])["tree"]["path"].clone();
    refused(Path::new(sealed.as_str().unwrap()), 1, "tree_exists");
    // A name that is taken, and one that can't be one.
    let twin = plain(&env, "elsewhere/ours", "twin");
    refused(&twin, 1, "tree_exists");
    let made = env.ok(&["adopt", twin.to_str().unwrap(), "--name", "twin"]);
    assert_eq!(made["tree"]["name"], "twin");
    let odd = plain(&env, "with space", "odd");
    env.refused(&["adopt", odd.to_str().unwrap()], 2, "invalid_name");
    let nobody = [
        "adopt",
        odd.to_str().unwrap(),
        "--name",
        "odd",
        "--task",
        "99",
    ];
    env.refused(&nobody, 4, "task_not_found");
    let note = env.repo().join(".git/worktrees/with-space/weald");
    assert!(!note.exists(), "a refusal leaves nothing");
    assert_eq!(env.ok(&["list"])["trees"].as_array().unwrap().len(), 3);
}

#[test]
fn d10_a_lock_of_git_stays_on_an_adopted_worktree() {
    let env = repository();
    env.ok(&["init", "--profile", "claude-code"]);
    let path = plain(&env, "app/.claude/worktrees/a", "worktree-a");
    env.git(&[
        "worktree",
        "lock",
        "--reason",
        "claude session 7",
        path.to_str().unwrap(),
    ]);
    env.ok(&["adopt", path.to_str().unwrap()]);
    let reason = || fs::read_to_string(env.repo().join(".git/worktrees/a/locked")).unwrap();
    assert_eq!(reason().trim(), "claude session 7");
    // The profile shows runs as a lock; not over somebody else's.
    assert_eq!(env.weald(&["run", "a", "--", "true"]).code, 0);
    assert_eq!(reason().trim(), "claude session 7");
    for args in [&["rm", "a"][..], &["rm", "a", "--force"]] {
        let refused = env.refused(args, 1, "tree_locked");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("claude session 7"), "{message}");
    }
    env.ok(&["rm", "a", "--force", "--force"]);
    assert!(!path.exists());
}

#[test]
fn k22_an_adopted_worktree_that_moved_is_found_again() {
    let env = repository();
    let path = plain(&env, "here", "mine");
    env.ok(&["adopt", path.to_str().unwrap()]);
    let there = env.root().join("there");
    fs::rename(&path, &there).unwrap();
    assert_eq!(env.ok(&["list"])["trees"][0]["exists"], false);
    let healed = env.weald(&["doctor", "--fix", there.to_str().unwrap(), "--json"]);
    assert_eq!(healed.code, 0, "{healed:#?}");
    let tree = env.ok(&["status", "here"])["tree"].clone();
    assert_eq!(
        (&tree["path"], &tree["dirty"]),
        (&json!(there), &json!(false))
    );
    assert_eq!(
        git_in(&env, &there, &["branch", "--show-current"]).trim(),
        "mine"
    );
}

#[test]
fn k5_a_worktree_with_relative_paths_is_adopted() {
    // As git 2.48 and newer write them on request.
    let env = repository();
    let path = plain(&env, "rel", "mine");
    fs::write(path.join(".git"), "gitdir: ../app/.git/worktrees/rel\n").unwrap();
    fs::write(
        env.repo().join(".git/worktrees/rel/gitdir"),
        "../../../../rel/.git\n",
    )
    .unwrap();
    let before = manifest(&path);
    env.ok(&["adopt", path.to_str().unwrap()]);
    assert_eq!(manifest(&path), before);
    assert_eq!(env.ok(&["list"])["trees"][0]["exists"], true);
    assert_eq!(
        weald_in(&env, &path, &["show", "--json"]).json()["tree"]["name"],
        "rel"
    );
}

#[test]
fn k5_adopt_all_takes_what_it_can_and_list_all_shows_the_rest() {
    let env = repository();
    assert_eq!(env.ok(&["list", "--all"])["foreign"], json!([]));
    assert_eq!(env.ok(&["list"]).get("foreign"), None);
    let one = plain(&env, "one", "b-one");
    let two = plain(&env, "app/.claude/worktrees/two", "worktree-two");
    let detached = env.root().join("free");
    env.git(&[
        "worktree",
        "add",
        "-q",
        "--detach",
        detached.to_str().unwrap(),
    ]);
    env.git(&["worktree", "lock", "--reason", "why", one.to_str().unwrap()]);
    env.ok(&["new", "ours", "--kind", "linked"]);
    let all = env.ok(&["list", "--all"]);
    assert_eq!(all["trees"].as_array().unwrap().len(), 1);
    let foreign = |name: &str, path: &Path, branch: Value, locked: Value| {
        let adopt = format!("weald adopt {}", path.display());
        json!({"name": name, "kind": "foreign", "path": path, "branch": branch, "locked": locked,
            "exists": true, "adopt": adopt})
    };
    let expected = json!([
        foreign("free", &detached, json!(null), json!(null)),
        foreign("one", &one, json!("b-one"), json!("why")),
        foreign("two", &two, json!("worktree-two"), json!(null)),
    ]);
    assert_eq!(all["foreign"], expected);
    let said = env.weald(&["list", "--all"]).stdout;
    assert!(
        said.contains("weald adopt --all") && said.contains("foreign, locked"),
        "{said}"
    );
    let done = env.ok(&["adopt", "--all"]);
    let names: Vec<_> = done["trees"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tree| &tree["name"])
        .collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(done["skipped"][0]["code"], "detached_head");
    assert_eq!(done["skipped"].as_array().unwrap().len(), 1);
    let left = env.ok(&["list", "--all"]);
    assert_eq!(left["foreign"].as_array().unwrap().len(), 1);
    assert_eq!(left["trees"].as_array().unwrap().len(), 3);
}

#[test]
fn k5_a_killed_adoption_can_be_done_again() {
    let env = repository();
    let path = plain(&env, "a", "mine");
    // The note is written before the record: as if the process had ended in between.
    let note = env.repo().join(".git/worktrees/a/weald");
    fs::write(&note, "{\"tree\":7,\"device\":1,\"inode\":1,\"born\":null}").unwrap();
    assert_eq!(env.ok(&["list", "--all"])["foreign"][0]["name"], "a");
    assert_eq!(env.weald(&["doctor"]).code, 0);
    env.ok(&["adopt", path.to_str().unwrap()]);
    assert_eq!(env.ok(&["show", "a"])["tree"]["branch"], "mine");
}

#[test]
fn k5_of_eight_adoptions_at_once_one_counts() {
    let env = repository();
    let path = plain(&env, "a", "mine");
    let text = path.to_str().unwrap();
    let codes: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|number| {
                let (env, name) = (&env, format!("a{number}"));
                scope.spawn(move || env.weald(&["adopt", text, "--name", &name, "--json"]).code)
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(
        codes.iter().filter(|code| **code == 0).count(),
        1,
        "{codes:?}"
    );
    let trees = env.ok(&["list"])["trees"].clone();
    assert_eq!(trees.as_array().unwrap().len(), 1);
    // The note is the winner's: inside, it is found.
    let inside = weald_in(&env, &path, &["show", "--json"]);
    assert_eq!(
        inside.json()["tree"]["name"],
        trees[0]["name"],
        "{inside:#?}"
    );
    assert_eq!(env.weald(&["doctor"]).code, 0);
}
