//! Looking at trees: what changed in one, and the list of all.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_remove::{KINDS, commit, git_in, grow, repository};

/// A tree with one change of each kind, a binary file and a link to a secret.
fn changed(env: &TestEnv, kind: &str) -> PathBuf {
    let path = grow(env, "a", kind);
    commit(env, &path, "committed", "1\n2\n");
    fs::write(path.join("staged"), "s\n").unwrap();
    git_in(env, &path, &["add", "staged"]);
    fs::write(path.join("config.py"), "unstaged\n").unwrap();
    fs::write(path.join("untracked"), "u\nu\nu\n").unwrap();
    fs::write(path.join("binary"), [0, 1, 2, 10]).unwrap();
    fs::write(env.root().join("secret"), "hush-hush\n").unwrap();
    symlink(env.root().join("secret"), path.join("link")).unwrap();
    fs::write(path.join("x.log"), "ignored\n").unwrap();
    path
}

#[test]
fn w10_diff_tells_all_four_kinds_of_change() {
    for kind in KINDS {
        let env = repository();
        changed(&env, kind);
        let diff = env.ok(&["diff", "a"]);
        let row = |file: &Value| {
            let of = |field: &str| file[field].as_str().unwrap().to_owned();
            let counts = (file["added"].as_u64(), file["deleted"].as_u64());
            (of("path"), of("state"), of("status"), counts)
        };
        let mut rows: Vec<_> = diff["files"].as_array().unwrap().iter().map(row).collect();
        rows.sort();
        let expected = [
            ("binary", "untracked", "added", (None, None)),
            ("committed", "committed", "added", (Some(2), Some(0))),
            ("config.py", "unstaged", "modified", (Some(1), Some(1))),
            ("link", "untracked", "added", (Some(1), Some(0))),
            ("staged", "staged", "added", (Some(1), Some(0))),
            ("untracked", "untracked", "added", (Some(3), Some(0))),
        ];
        let expected = expected.map(|(path, state, status, counts)| {
            (path.to_owned(), state.to_owned(), status.to_owned(), counts)
        });
        assert_eq!(rows, expected, "{kind}");
        assert_eq!(diff["truncated"], false);
        let patch = env.weald(&["diff", "a"]).stdout;
        for line in ["+2", "+s", "-base", "+unstaged", "+u"] {
            assert!(patch.lines().any(|found| found == line), "{line}: {patch}");
        }
        assert!(
            patch.contains("Binary files /dev/null and b/binary differ"),
            "{patch}"
        );
        assert!(!patch.contains("hush-hush"), "a link was followed: {patch}");
        let names = env.weald(&["diff", "a", "--name-only"]).stdout;
        let mut names: Vec<_> = names.lines().collect();
        names.sort_unstable();
        let all = [
            "binary",
            "committed",
            "config.py",
            "link",
            "staged",
            "untracked",
        ];
        assert_eq!(names, all);
        let stat = env.weald(&["diff", "a", "--stat"]).stdout;
        for name in all {
            assert!(stat.contains(name), "{name}: {stat}");
        }
    }
}

#[test]
fn w10_a_long_diff_is_cut_and_that_is_said() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    fs::write(path.join("long"), "0123456789abcde\n".repeat(11 << 16)).unwrap();
    let answer = env.weald(&["diff", "a"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stdout.len() < 11 << 20, "{}", answer.stdout.len());
    assert!(answer.stdout.ends_with("[… truncated]\n"));
}

#[test]
fn p10_list_shows_every_tree_in_a_table_and_as_json() {
    let env = repository();
    let empty = env.weald(&["list"]);
    assert!(empty.stdout.contains("No active worktrees"), "{empty:#?}");
    assert_eq!(env.ok(&["list"])["trees"], json!([]));
    env.ok(&["task", "add", "work"]);
    for kind in KINDS {
        grow(&env, kind, kind);
    }
    env.ok(&["task", "bind", "1", "sealed"]);
    fs::write(env.root().join("app.weald/linked/new"), "").unwrap();
    let fresh = env.ok(&["list", "--fresh"]);
    let trees = fresh["trees"].as_array().unwrap();
    for (index, (tree, kind)) in trees.iter().zip(KINDS).enumerate() {
        let path = env.root().join("app.weald").join(kind);
        for (field, value) in [
            ("id", json!(index + 1)),
            ("name", json!(kind)),
            ("kind", json!(kind)),
            ("branch", json!(format!("wt/{kind}"))),
            ("path", json!(path)),
            ("status", json!("active")),
            ("exists", json!(true)),
            ("dirty", json!(kind == "linked")),
            ("task", [json!(1), json!(null)][index].clone()),
        ] {
            assert_eq!(tree[field], value, "{kind} {field}");
        }
        assert!(tree["created_at"].is_string() && tree["status_at"].is_string());
    }
    assert_eq!(trees.len(), 2);
    let table = env.weald(&["list"]).stdout;
    let row = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap();
    let sealed: Vec<_> = row("sealed").split_whitespace().collect();
    assert_eq!(sealed[..4], ["sealed", "active", "clean", "#1"]);
    assert_eq!(sealed[5], "wt/sealed");
    assert!(row("linked").contains("dirty"), "{table}");
    for name in ["NAME", "STATUS", "DIRTY", "TASK", "AGE", "BRANCH", "PATH"] {
        assert!(table.lines().next().unwrap().contains(name), "{table}");
    }
}

#[test]
fn a_list_after_work_knows_what_weald_itself_committed() {
    let env = repository();
    env.ok(&["config", "set", "policy.gate", "human"]);
    let script = "echo u > u";
    env.weald(&["work", "left over", "--", "sh", "-c", script]);
    let listed = env.ok(&["list"]);
    let tree = &listed["trees"][0];
    assert_eq!(tree["name"], "left-over", "{listed:#}");
    assert_eq!(tree["dirty"], false, "{listed:#}");
}
