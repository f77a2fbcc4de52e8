//! Submodule commits that a landing names: nothing lands that nobody could check out.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weald_testkit::TestEnv;

use crate::landing_moving::sh;
use crate::trees_remove::{git_in, try_git};
use crate::trees_submodules::with_submodule;

/// A commit in the submodule of tree `a`, recorded by the tree.
fn bumped(env: &TestEnv) -> (PathBuf, String) {
    let tree = env.root().join("app.weald/a");
    let module = tree.join("libs/one");
    fs::write(module.join("l"), "two\n").unwrap();
    git_in(env, &module, &["commit", "-q", "-a", "-m", "two"]);
    let commit = git_in(env, &module, &["rev-parse", "HEAD"]);
    git_in(env, &tree, &["commit", "-q", "-a", "-m", "bump"]);
    (tree, commit.trim().to_owned())
}

fn land(env: &TestEnv, more: &[&str]) -> (i32, Value) {
    let answer = env.weald(&[&["land", "a", "--keep", "--json"], more].concat());
    (answer.code, answer.json()["landings"][0].clone())
}

fn module_of_main(env: &TestEnv) -> PathBuf {
    env.repo().join(".git/modules/libs/one")
}

fn has(env: &TestEnv, repository: &Path, commit: &str) -> bool {
    try_git(env, repository, &["cat-file", "-e", commit]).0
}

#[track_caller]
fn assert_refused(env: &TestEnv, (code, landing): (i32, Value), before: &str) {
    assert_eq!(code, 1, "{landing}");
    assert_eq!(landing["reason"]["code"], "submodule_missing", "{landing}");
    assert!(landing["reason"]["hint"].is_string(), "{landing}");
    assert_eq!(env.git(&["rev-parse", "main"]), before);
}

#[test]
fn m26_a_commit_that_only_the_tree_has_is_brought_into_main() {
    let env = with_submodule();
    let (_, commit) = bumped(&env);
    let module = module_of_main(&env);
    assert!(!has(&env, &module, &commit));
    let (code, landing) = land(&env, &[]);
    assert_eq!(
        (code, &landing["outcome"]),
        (0, &"landed".into()),
        "{landing}"
    );
    let holder = format!("refs/weald/landed/{commit}");
    let held = git_in(&env, &module, &["rev-parse", &holder]);
    assert_eq!(held.trim(), commit);
    git_in(&env, &module, &["gc", "-q", "--prune=now"]);
    git_in(&env, &module, &["fsck", "--connectivity-only"]);
    let keeps = fs::read_dir(module.join("objects/pack")).unwrap();
    let mut keeps = keeps.map(|entry| entry.unwrap().file_name());
    assert!(!keeps.any(|name| name.to_string_lossy().ends_with(".keep")));
    // The library is not needed for it.
    fs::rename(env.root().join("library"), env.root().join("away")).unwrap();
    env.git(&["reset", "-q", "--hard", "main"]);
    env.git(&["submodule", "--quiet", "update", "--no-fetch"]);
    let there = fs::read_to_string(env.repo().join("libs/one/l")).unwrap();
    assert_eq!(there, "two\n");
}

#[test]
fn m26_a_commit_that_landed_in_a_submodule_keeps_no_tree() {
    for removal in ["land", "rm", "clean"] {
        let env = with_submodule();
        let (tree, _) = bumped(&env);
        if removal == "land" {
            let landed = env.weald(&["land", "a", "--json"]);
            let done = landed.json()["landings"][0].clone();
            assert_eq!(done["cleanup"]["directory"], "trashed", "{done}");
            // The checkout of the submodule is where it was, and how to move it is said.
            let hint = "git submodule update -- libs/one";
            assert!(landed.stderr.contains(hint), "{landed:#?}");
        } else {
            assert_eq!(land(&env, &[]).0, 0);
        }
        match removal {
            "rm" => drop(env.ok(&["rm", "a"])),
            "clean" => drop(env.ok(&["clean", "--min-age", "0", "--apply"])),
            _ => {}
        }
        assert!(!tree.exists(), "{removal}");
    }
}

#[test]
fn m26_a_commit_that_only_the_remote_has_is_fetched_from_where_main_knows_it() {
    let env = with_submodule();
    let (tree, commit) = bumped(&env);
    git_in(
        &env,
        &tree.join("libs/one"),
        &["push", "-q", "origin", "HEAD:refs/heads/new"],
    );
    // Neither the tree nor a vault has it any more.
    fs::remove_dir_all(tree.join(".git/modules")).unwrap();
    fs::remove_dir_all(tree.join("libs/one")).unwrap();
    fs::create_dir(tree.join("libs/one")).unwrap();
    let before = env.git(&["rev-parse", "main"]);
    let never = land(&env, &["--set", "landing.fetch=never"]);
    assert_refused(&env, never, &before);
    assert!(!has(&env, &module_of_main(&env), &commit));
    let (code, landing) = land(&env, &[]);
    assert_eq!(
        (code, &landing["outcome"]),
        (0, &"landed".into()),
        "{landing}"
    );
    assert!(has(&env, &module_of_main(&env), &commit));
    assert!(!module_of_main(&env).join("FETCH_HEAD").exists());
}

#[test]
fn m26_what_nobody_could_check_out_does_not_land() {
    let env = with_submodule();
    let tree = env.root().join("app.weald/a");
    let before = env.git(&["rev-parse", "main"]);
    let nobodys = "1234567890123456789012345678901234567890";
    let point = |path: &str| {
        let entry = format!("160000,{nobodys},{path}");
        git_in(
            &env,
            &tree,
            &["update-index", "--add", "--cacheinfo", &entry],
        );
        git_in(&env, &tree, &["commit", "-q", "-m", "points nowhere"]);
    };
    point("libs/one");
    git_in(
        &env,
        &tree,
        &["submodule", "--quiet", "deinit", "-f", "libs/one"],
    );
    let refused = land(&env, &[]);
    let message = refused.1["reason"]["message"].to_string();
    assert!(message.contains(nobodys) && message.contains("libs/one"));
    assert_refused(&env, refused, &before);
    git_in(&env, &tree, &["reset", "-q", "--hard", "HEAD~1"]);
    // A repository inside that no .gitmodules names.
    point("nested");
    fs::create_dir_all(tree.join("nested")).unwrap();
    let refused = land(&env, &[]);
    assert!(
        refused.1.to_string().contains("no .gitmodules"),
        "{}",
        refused.1
    );
    assert_eq!(refused.1["reason"]["paths"][0], "nested");
    assert_refused(&env, refused, &before);
}

#[test]
fn m26_an_address_that_only_the_candidate_names_is_never_asked() {
    let env = with_submodule();
    let tree = env.root().join("app.weald/a");
    let asked = env.root().join("asked");
    let url = format!("ext::sh -c 'touch {} && exit 1'", asked.display());
    let text = format!("[submodule \"two\"]\n\tpath = two\n\turl = {url}\n");
    let known = fs::read_to_string(tree.join(".gitmodules")).unwrap();
    fs::write(tree.join(".gitmodules"), known + &text).unwrap();
    let entry = "160000,1234567890123456789012345678901234567890,two";
    git_in(
        &env,
        &tree,
        &["update-index", "--add", "--cacheinfo", entry],
    );
    git_in(&env, &tree, &["add", ".gitmodules"]);
    git_in(&env, &tree, &["commit", "-q", "-m", "another"]);
    fs::create_dir_all(tree.join("two")).unwrap();
    let before = env.git(&["rev-parse", "main"]);
    env.git(&["config", "--global", "protocol.ext.allow", "always"]);
    // Without an approval it would not come that far.
    env.ok(&["config", "set", "policy.protected", "!.gitmodules"]);
    assert_refused(&env, land(&env, &[]), &before);
    assert!(!asked.exists());
}

#[test]
fn y7_protected_files_behind_a_gitlink_need_an_approval() {
    let env = with_submodule();
    let tree = env.root().join("app.weald/a");
    let module = tree.join("libs/one");
    fs::write(module.join(".envrc"), "evil\n").unwrap();
    git_in(&env, &module, &["add", "-A"]);
    git_in(&env, &module, &["commit", "-q", "-m", "settings"]);
    git_in(&env, &tree, &["commit", "-q", "-a", "-m", "bump"]);
    let (code, landing) = land(&env, &[]);
    assert_eq!(
        (code, &landing["reason"]["code"]),
        (1, &"needs_approval".into()),
        "{landing}"
    );
    assert_eq!(
        landing["reason"]["paths"][0], "libs/one/.envrc",
        "{landing}"
    );
}

/// Lands worktree `t` of the repository at `place`, which must want an approval for `path`.
#[track_caller]
fn assert_wants_approval(env: &TestEnv, place: &Path, path: &str) {
    let mut command = env.weald_command(&["land", "t", "--json"]);
    let output = command.current_dir(place).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let reason = &answer["landings"][0]["reason"];
    assert_eq!(reason["code"], "needs_approval", "{path}: {answer:#}");
    assert_eq!(reason["paths"][0], path, "{answer:#}");
}

/// A repository at `place` with the library as a submodule at `path`, and worktree `t` of it.
fn repository_at(env: &TestEnv, place: &Path, library: &Path, path: &str) {
    fs::create_dir_all(place).unwrap();
    let script = format!(
        "git init -q -b main; git config user.name T; git config user.email t@example.com
         git config protocol.file.allow always; export GIT_ALLOW_PROTOCOL=file
         git submodule --quiet add {} {path}; git submodule --quiet update --init --recursive; git commit -qm one",
        library.display()
    );
    sh(env, place, &script);
    let mut command = env.weald_command(&["new", "t"]);
    let output = command.current_dir(place).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn y7_no_name_or_place_of_a_submodule_hides_its_protected_files() {
    let env = with_submodule();
    let library = env.root().join("library");
    for (place, path) in [("deep", "a/b/c/d/e"), ("col:on", "sub")] {
        let place = env.root().join(place);
        repository_at(&env, &place, &library, path);
        let name = place.file_name().unwrap().to_str().unwrap();
        let tree = env.root().join(format!("{name}.weald/t"));
        let script = format!(
            "(cd {path}; echo evil >.envrc; git add -A; git commit -qm evil); git commit -qam bump"
        );
        sh(&env, &tree, &script);
        assert_wants_approval(&env, &place, &format!("{path}/.envrc"));
    }
}

#[test]
fn y7_a_submodule_of_a_submodule_hides_no_protected_file() {
    let env = with_submodule();
    let (inner, outer) = (env.root().join("library"), env.root().join("outer"));
    let script = format!(
        "git -C {0} checkout -q -b evil; echo evil >{0}/.envrc; git -C {0} add -A; git -C {0} commit -qm evil
         git -C {0} rev-parse HEAD >known; git -C {0} checkout -q main
         git init -q -b main outer; cd outer; export GIT_ALLOW_PROTOCOL=file
         git submodule --quiet add {0} inner; git commit -qm one",
        inner.display()
    );
    sh(&env, env.root(), &script);
    let place = env.root().join("super");
    repository_at(&env, &place, &outer, "sub");
    let bump = |commit: &str| {
        let script = format!(
            "(cd sub; git update-index --cacheinfo 160000,{commit},inner; git commit -qm bump); git commit -qam bump"
        );
        sh(&env, &env.root().join("super.weald/t"), &script);
    };
    let known = fs::read_to_string(env.root().join("known")).unwrap();
    bump(known.trim());
    assert_wants_approval(&env, &place, "sub/inner/.envrc");
    // One whose files nobody can list is not taken for harmless.
    bump("1234567890123456789012345678901234567890");
    assert_wants_approval(&env, &place, "sub/inner");
}
