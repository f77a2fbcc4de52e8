//! Scratch worktrees: they land on their parent, whatever its kind and the profile, and are nobody's issue.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weald_core::config::PROFILES;
use weald_testkit::TestEnv;

use crate::hooks_claude::hook;
use crate::trees_create::{branches, git_in, listed, path_of, weald_in};
use crate::trees_remove::{KINDS, commit, repository};

/// A parent and a scratch worktree of it.
struct Pair {
    parent: PathBuf,
    scratch: PathBuf,
    branch: String,
}

fn pair(env: &TestEnv, kind: &str) -> Pair {
    let parent = env.ok(&["new", "parent", "--kind", kind]);
    let scratch = env.ok(&["new", "part", "--scratch", "--for", "parent"]);
    Pair {
        parent: path_of(&parent),
        scratch: path_of(&scratch),
        branch: parent["tree"]["branch"].as_str().unwrap().to_owned(),
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn y9_a_scratch_worktree_lands_on_its_parent_in_every_profile() {
    for &profile in PROFILES {
        for kind in KINDS {
            let env = repository();
            env.ok(&["init", "--profile", profile]);
            let Pair {
                parent,
                scratch,
                branch,
            } = pair(&env, kind);
            commit(&env, &scratch, "part", "of the scratch worktree\n");
            let landed = env.ok(&["land", "part"])["landings"][0].clone();
            let about = format!("{profile} {kind}: {landed}");
            assert_eq!(landed["outcome"], "landed", "{about}");
            assert_eq!(landed["target"], json!(branch), "{about}");
            assert_eq!(landed["cleanup"]["directory"], "trashed", "{about}");
            assert!(!scratch.exists(), "{about}");
            assert_eq!(read(&parent.join("part")), "of the scratch worktree\n");
            assert_eq!(git_in(&env, &parent, &["status", "--porcelain"]), "");
            let inside = git_in(&env, &parent, &["rev-parse", "HEAD"]);
            let commit = landed["commit"].as_str().unwrap();
            assert_eq!(inside, commit, "{about}");
            assert_eq!(env.git(&["rev-parse", &branch]).trim(), commit, "{about}");
            assert_eq!(env.git(&["show", "main:config.py"]), "base\n");
        }
    }
}

#[test]
fn y9_changes_in_a_sealed_parent_are_kept_and_refuse_what_would_overwrite_them() {
    let env = repository();
    env.ok(&["task", "add", "Parent"]);
    let Pair {
        parent, scratch, ..
    } = pair(&env, "sealed");
    env.ok(&["task", "bind", "1", "parent", "--owner", "alice"]);
    commit(&env, &scratch, "config.py", "of the scratch worktree\n");
    fs::write(parent.join("config.py"), "not committed\n").unwrap();
    fs::write(parent.join("own"), "untracked\n").unwrap();
    let refused = env.weald(&["land", "part", "--json"]);
    let landing = refused.json()["landings"][0].clone();
    assert_eq!(landing["reason"]["code"], "target_dirty", "{landing}");
    assert_eq!(
        landing["reason"]["paths"],
        json!(["config.py"]),
        "{landing}"
    );
    assert_eq!(read(&parent.join("config.py")), "not committed\n");
    // The agent of the parent is handed the merge, and can do it.
    let told = env.ok(&["msg", "inbox", "--session", "alice"]);
    let text = told["messages"][0]["text"].as_str().unwrap();
    let (_, command) = text.split_once("git merge ").expect(text);
    git_in(&env, &parent, &["checkout", "-q", "config.py"]);
    let merged = env.weald(&["run", "parent", "--", "git", "merge", "-q", command]);
    assert_eq!(merged.code, 0, "{merged:#?}");
    assert_eq!(read(&parent.join("config.py")), "of the scratch worktree\n");
    assert_eq!(read(&parent.join("own")), "untracked\n");
    let landed = env.ok(&["land", "part"])["landings"][0].clone();
    assert_eq!(landed["outcome"], "nothing_to_land", "{landed}");
}

#[test]
fn y9_what_a_sealed_parent_committed_meanwhile_is_merged_or_conflicts() {
    let env = repository();
    let Pair {
        parent, scratch, ..
    } = pair(&env, "sealed");
    commit(&env, &parent, "beside", "of the parent\n");
    commit(&env, &scratch, "part", "1\n");
    let landed = env.ok(&["land", "part", "--keep"])["landings"][0].clone();
    assert_eq!(landed["outcome"], "landed", "{landed}");
    assert_eq!(read(&parent.join("beside")), "of the parent\n");
    assert_eq!(read(&parent.join("part")), "1\n");
    let undone = env.ok(&["revert", &landed["id"].to_string()])["landing"].clone();
    assert_eq!(undone["outcome"], "landed", "{undone}");
    assert!(!parent.join("part").exists());
    commit(&env, &parent, "config.py", "of the parent\n");
    commit(&env, &scratch, "config.py", "of the scratch worktree\n");
    let conflict = env.weald(&["land", "part", "--json"]);
    assert_eq!(conflict.code, 3, "{conflict:#?}");
    assert_eq!(read(&parent.join("config.py")), "of the parent\n");
    assert_eq!(git_in(&env, &parent, &["status", "--porcelain"]), "");
}

/// A killed landing is found again as it really is: before the worktree moved, or after.
#[test]
fn y9_a_killed_landing_on_a_sealed_parent_is_taken_back_or_finished() {
    for step in ["land.intent", "land.moved"] {
        let env = repository();
        let Pair {
            parent, scratch, ..
        } = pair(&env, "sealed");
        commit(&env, &scratch, "part", "1\n");
        let mut killed = env.weald_command(&["land", "part"]);
        let killed = killed.env("WEALD_STEP", format!("kill:{step}")).output();
        assert!(!killed.unwrap().status.success(), "{step}");
        assert_eq!(parent.join("part").exists(), step == "land.moved");
        env.weald(&["land"]);
        assert_eq!(read(&parent.join("part")), "1\n", "{step}");
        assert_eq!(git_in(&env, &parent, &["status", "--porcelain"]), "");
        let log = git_in(&env, &parent, &["log", "--format=%s"]);
        assert_eq!(
            log.lines().filter(|line| *line == "part").count(),
            1,
            "{step}: {log}"
        );
    }
}

fn tree(env: &TestEnv, name: &str) -> Value {
    env.ok(&["show", name])["tree"].clone()
}

#[test]
fn y9_scratch_worktrees_of_jkz_are_not_locked_and_go_at_exit() {
    let env = repository();
    env.ok(&["init", "--profile", "jkz"]);
    env.ok(&["task", "add", "Issue", "--id", "gh-7"]);
    let issue = env.ok(&["new", "--task", "gh-7"]);
    assert_eq!(issue["tree"]["locked"]["reason"], "task gh-7");
    let scratch = env.ok(&["new", "--scratch", "--for", "7"]);
    assert_eq!(scratch["tree"]["locked"], json!(null), "{scratch}");
    assert_eq!(scratch["tree"]["branch"], "jkz/7-s1", "no issue's branch");
    // A subagent's worktree, as Claude Code asks for one.
    let input = json!({"hook_event_name": "WorktreeCreate", "cwd": env.repo(), "name": "agent-1"});
    let made = hook(&env, "worktree-create", &input);
    assert_eq!(made.code, 0, "{made:#?}");
    let subagent = tree(&env, "agent-1");
    assert_eq!(subagent["branch"], "jkz/agent-1");
    assert_eq!(subagent["locked"], json!(null));
    let path = path_of(&scratch);
    let left = weald_in(&env, &path, &["exit", "--json"]);
    assert_eq!(left.json()["outcome"], "removed", "{left:#?}");
    assert!(!path.exists());
    assert!(!branches(&env).contains(&"jkz/7-s1".to_owned()));
    env.ok(&["rm", "agent-1"]);
    assert_eq!(listed(&env), ["7"]);
    assert_eq!(tree(&env, "7")["locked"]["reason"], "task gh-7");
}

#[test]
fn y9_the_losers_of_a_race_in_jkz_go_to_the_trash() {
    let env = repository();
    env.ok(&["init", "--profile", "jkz"]);
    env.ok(&["task", "add", "Issue", "--id", "gh-7"]);
    env.ok(&[
        "race",
        "gh-7",
        "-n",
        "2",
        "--",
        "sh",
        "-c",
        "echo $WEALD_ROLE > who",
    ]);
    env.ok(&["approve", "7-a", "--yes"]);
    let picked = env.ok(&["race", "pick", "gh-7", "a"]);
    assert_eq!(picked["landing"]["status"], "landed", "{picked}");
    assert_eq!(
        listed(&env),
        ["7-a"],
        "the loser went, the winner stays as in jkz"
    );
}

#[test]
fn y9_a_scratch_worktree_belongs_to_the_worktree_of_a_task() {
    let env = repository();
    env.ok(&["task", "add", "Fix it", "--id", "gh-12"]);
    let parent = env.ok(&["new", "lane", "--task", "gh-12"]);
    let scratch = env.ok(&["new", "part", "--scratch", "--for", "gh-12"]);
    assert_eq!(scratch["tree"]["scratch_for"], "lane", "{scratch}");
    assert_eq!(scratch["tree"]["target"], parent["tree"]["branch"]);
    env.refused(&["new", "--scratch", "--for", "gh-13"], 4, "tree_not_found");
}
