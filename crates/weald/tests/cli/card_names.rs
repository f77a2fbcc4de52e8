//! What worktrees and branches of cards, issues and beads are called, and what happens to a branch that is there.

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_create::{branches, git_in, listed, path_of};
use crate::trees_remove::{commit, repository};

fn with(profile: &str) -> TestEnv {
    let env = repository();
    env.ok(&["init", "--profile", profile]);
    env
}

fn entries(env: &TestEnv, task: &str) -> Vec<(String, String)> {
    let raced = env.ok(&[
        "race",
        task,
        "-n",
        "2",
        "--",
        "sh",
        "-c",
        "echo $WEALD_ROLE > who",
    ]);
    let entries = raced["race"]["entries"].as_array().unwrap().clone();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    entries
        .iter()
        .map(|entry| (word(&entry["tree"]), word(&entry["branch"])))
        .collect()
}

#[test]
fn y18_races_follow_the_pattern_of_the_profile() {
    let env = with("refact");
    env.ok(&["task", "add", "Card", "--plan", "b2"]);
    for (index, (tree, branch)) in entries(&env, "1").into_iter().enumerate() {
        assert_eq!(tree, ["T-1-a", "T-1-b"][index]);
        let hash = branch
            .strip_prefix("refact/task/b2/card/T-1/")
            .expect(&branch);
        assert_eq!(hash.len(), 8, "{branch}");
    }
    for (profile, id, names) in [
        (
            "jean-claude",
            "beads-7",
            [("beads-7-a", "beads/7-a"), ("beads-7-b", "beads/7-b")],
        ),
        (
            "jkz",
            "gh-7",
            [("7-a", "jkz/issue-7-a"), ("7-b", "jkz/issue-7-b")],
        ),
    ] {
        let env = with(profile);
        env.ok(&["task", "add", "Issue", "--id", id]);
        let made = entries(&env, id);
        let made: Vec<_> = made
            .iter()
            .map(|(tree, branch)| (&tree[..], &branch[..]))
            .collect();
        assert_eq!(made, names, "{profile}");
    }
}

#[test]
fn y18_a_prefix_that_the_pattern_has_is_not_said_twice() {
    let env = with("refact");
    env.ok(&["task", "add", "Card", "--id", "T-9", "--plan", "b2"]);
    let made = env.ok(&["new", "--task", "T-9"])["tree"].clone();
    assert_eq!(made["name"], "T-9");
    let branch = made["branch"].as_str().unwrap();
    assert!(branch.starts_with("refact/task/b2/card/T-9/"), "{branch}");
    let env = with("jean-claude");
    for (id, name, branch) in [
        ("beads-x1", "beads-x1", "beads/x1"),
        ("x3", "beads-x3", "beads/x3"),
    ] {
        env.ok(&["task", "add", "Bead", "--id", id]);
        let made = env.ok(&["new", "--task", id])["tree"].clone();
        assert_eq!(
            (&made["name"], &made["branch"]),
            (&json!(name), &json!(branch))
        );
    }
    // Without a task, too.
    let made = env.ok(&["new", "beads-x4"])["tree"].clone();
    assert_eq!(made["branch"], "beads/x4");
}

#[test]
fn y18_an_issue_and_a_task_of_the_same_number_get_different_worktrees() {
    for order in [["gh-1", "1"], ["1", "gh-1"]] {
        let env = with("jkz");
        env.ok(&["task", "add", "Of weald"]);
        env.ok(&["task", "add", "Of GitHub", "--id", "gh-1"]);
        let made = order.map(|id| env.ok(&["new", "--task", id])["tree"].clone());
        let second = if order[0] == "1" { "gh-1" } else { "1-2" };
        assert_eq!(made[0]["name"], "1");
        assert_eq!(made[0]["branch"], "jkz/issue-1");
        assert_eq!(made[1]["name"], second);
        assert_eq!(made[1]["branch"], json!(format!("jkz/issue-{second}")));
        let path = env.root().join(format!("jkz-worktree-{second}"));
        assert_eq!(made[1]["path"], json!(path));
        // Whose worktree is meant by a bare number is not guessed.
        commit(&env, &path, "work", "1\n");
        let refused = env.weald(&["land", "1", "--json"]);
        if order[0] == "gh-1" {
            assert_eq!(refused.code, 1, "{refused:#?}");
            let error = &refused.json()["error"];
            assert_eq!(error["code"], "ambiguous_name", "{error}");
            env.ok(&["approve", "#1", "--yes"]);
            let landed = env.ok(&["land", "#1"])["landings"][0].clone();
            assert_eq!(landed["tree"], json!(second), "{landed}");
        } else {
            assert_eq!(refused.json()["landings"][0]["tree"], "1", "{refused:#?}");
        }
    }
}

#[test]
fn y18_a_branch_that_is_left_over_is_offered_with_its_commits() {
    let env = with("jean-claude");
    let left = env.root().join("left");
    env.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "beads/x2",
        left.to_str().unwrap(),
    ]);
    commit(&env, &left, "begun", "1\n");
    env.git(&["worktree", "remove", left.to_str().unwrap()]);
    env.ok(&["task", "add", "Bead", "--id", "x2"]);
    let refused = env.weald(&["work", "x2", "--json", "--", "true"]);
    let error = refused.json()["error"].clone();
    assert_eq!(error["code"], "branch_exists", "{error}");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("1 unlanded commit"),
        "{error}"
    );
    let hint = error["hint"].as_str().unwrap();
    let (_, command) = hint.split_once(": weald ").expect(hint);
    let (command, _) = command.split_once(';').expect(hint);
    let words: Vec<_> = command.split(' ').collect();
    let made = env.ok(&words);
    assert_eq!(made["tree"]["branch"], "beads/x2", "{made}");
    assert_eq!(branches(&env), ["beads/x2", "main"]);
    assert_eq!(
        git_in(&env, &path_of(&made), &["log", "-1", "--format=%s"]),
        "begun"
    );
    let worked = env.weald(&["work", "x2", "--json", "--", "sh", "-c", "echo 2 >> begun"]);
    assert_eq!(worked.code, 0, "{worked:#?}");
    assert_eq!(env.git(&["show", "main:begun"]), "1\n2\n");
    assert!(listed(&env).is_empty());
}
