//! Neither database nor log: trees come back from registrations, the vault, branches and their own folders.

use std::fs;

use serde_json::Value;
use weald_testkit::TestEnv;

use crate::rebuild::{assert_whole, lose_database, world};
use crate::trees_remove::{commit, grow, repository};

fn lose_log(env: &TestEnv) {
    for entry in fs::read_dir(env.private()).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with("events.jsonl") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

fn tree<'v>(listed: &'v Value, name: &str) -> &'v Value {
    let trees = listed["trees"].as_array().unwrap();
    let found = trees.iter().find(|tree| tree["name"] == name);
    found.unwrap_or_else(|| panic!("{name} in {listed}"))
}

#[test]
fn p9_without_a_log_trees_come_back_from_git_and_the_disk() {
    for kind in ["sealed", "linked"] {
        let env = repository();
        world(&env, kind);
        let before = env.ok(&["list"]);
        lose_database(&env);
        lose_log(&env);
        let vault = env.repo().join(".git/weald/vault");
        assert!(vault.is_dir());
        env.refused(&["list"], 1, "registry_lost");
        let done = env.ok(&["doctor", "--rebuild", "--fix"]);
        assert_eq!(done["rebuild"]["events"], 0, "{done}");
        env.weald(&["doctor", "--fix"]);
        let after = env.ok(&["list"]);
        for name in ["dirty", "ahead"] {
            let (old, new) = (tree(&before, name), tree(&after, name));
            for key in ["id", "path", "branch", "kind", "dirty", "ahead"] {
                assert_eq!(old[key], new[key], "{kind} {name} {key}");
            }
            assert_eq!(old["base"]["commit"], new["base"]["commit"], "{name}");
            assert_eq!(new["status"], "active");
        }
        let trash = env.ok(&["trash", "list"]);
        assert!(trash.to_string().contains("gone"), "{kind}: {trash}");
        env.ok(&["trash", "restore", "gone"]);
        let back = env.root().join("app.weald/gone/draft");
        assert_eq!(fs::read_to_string(back).unwrap(), "in the trash");
        assert_whole(&env);
        // Numbers of before may be in somebody's hands.
        let next = env.ok(&["task", "add", "x"])["task"]["id"]
            .as_u64()
            .unwrap();
        assert!(next > 1000, "{next}");
        grow(&env, "fresh", kind);
        let id = tree(&env.ok(&["list"]), "fresh")["id"].as_u64().unwrap();
        assert!(id > 1000, "{id}");
        env.ok(&["land", "ahead"]);
    }
}

#[test]
fn p9_without_registrations_a_folder_that_borrows_from_the_vault_is_a_tree() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    commit(&env, &path, "new.txt", "work\n");
    fs::write(path.join("draft"), "mine").unwrap();
    env.ok(&["sync", "a"]);
    let id = env.ok(&["show", "a"])["tree"]["id"].clone();
    let stranger = env.root().join("app.weald/stranger");
    fs::create_dir_all(stranger.join(".git/objects/info")).unwrap();
    lose_database(&env);
    lose_log(&env);
    fs::remove_dir_all(env.repo().join(".git/worktrees")).unwrap();
    let done = env.ok(&["doctor", "--rebuild", "--fix"]);
    let recovered = done["rebuild"]["recovered"].as_array().unwrap();
    assert_eq!(recovered.len(), 1, "{done}");
    assert_eq!(recovered[0]["found_by"], "folder");
    assert_eq!(recovered[0]["id"], id, "by what the vault holds of it");
    env.weald(&["doctor", "--fix"]);
    assert_eq!(env.ok(&["show", "a"])["tree"]["branch"], "wt/a");
    assert_eq!(fs::read_to_string(path.join("draft")).unwrap(), "mine");
    fs::remove_dir_all(stranger).unwrap();
    assert_whole(&env);
}

#[test]
fn p9_a_log_that_ends_too_early_gets_what_git_has_beyond_it() {
    let env = repository();
    grow(&env, "a", "sealed");
    let journal = env.private().join("events.jsonl");
    let short = fs::read(&journal).unwrap();
    let path = grow(&env, "b", "sealed");
    commit(&env, &path, "new.txt", "work\n");
    env.ok(&["sync", "b"]);
    env.ok(&["rm", "a"]);
    fs::write(&journal, short).unwrap();
    lose_database(&env);
    let done = env.ok(&["doctor", "--rebuild", "--fix"]);
    let recovered = done["rebuild"]["recovered"].as_array().unwrap();
    assert_eq!(recovered.len(), 1, "{done}");
    assert_eq!(recovered[0]["name"], "b");
    assert_eq!(recovered[0]["id"], 2);
    // What went to the trash after the end of the log is finished like any removal that was cut short.
    env.ok(&["doctor", "--fix"]);
    let trash = env.ok(&["trash", "list"]);
    assert_eq!(trash["trash"][0]["name"], "a", "{trash}");
    assert_whole(&env);
    grow(&env, "c", "sealed");
    assert_eq!(env.ok(&["show", "c"])["tree"]["id"], 3);
    env.ok(&["land", "b"]);
}
