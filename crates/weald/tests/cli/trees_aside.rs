//! What git ignores is in no snapshot: putting one back and bringing the target in keep it beside its place.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_remove::{KINDS, commit, git_in, grow, repository};

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path.as_ref()).unwrap_or_else(|error| format!("{error}"))
}

/// Commits a file that the rules ignore.
fn force(env: &TestEnv, tree: &Path, file: &str, text: &str) {
    let path = tree.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    git_in(env, tree, &["add", "-f", "--", file]);
    git_in(env, tree, &["commit", "-q", "-m", file]);
}

/// What stays aside, in order.
fn set_aside(answer: &Value) -> Vec<String> {
    let named = answer["set_aside"].as_array().unwrap().iter();
    let mut named: Vec<_> = named.map(|one| one.as_str().unwrap().to_owned()).collect();
    named.sort();
    named
}

#[test]
fn z4_a_restore_keeps_what_git_ignores_beside_its_place() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        force(&env, &path, "x.log", "v1\n");
        force(&env, &path, "same.log", "same\n");
        force(&env, &path, "d.log", "a file\n");
        force(&env, &path, "e.log/inner", "in a directory\n");
        fs::write(path.join("loose"), "l\n").unwrap();
        env.ok(&["snapshot", "create", "a"]);
        let known = ["x.log", "same.log", "d.log", "e.log"];
        git_in(
            &env,
            &path,
            &[&["rm", "-rq", "--cached"][..], &known].concat(),
        );
        git_in(&env, &path, &["commit", "-q", "-m", "not ours"]);
        fs::remove_file(path.join("d.log")).unwrap();
        fs::remove_dir_all(path.join("e.log")).unwrap();
        fs::remove_file(path.join("loose")).unwrap();
        fs::create_dir(path.join("d.log")).unwrap();
        fs::create_dir_all(path.join("loose")).unwrap();
        for file in ["x.log", "d.log/deep", "e.log", "other.log", "loose/y.log"] {
            fs::write(path.join(file), format!("precious {file}\n")).unwrap();
        }
        fs::write(path.join("loose/known"), "in the snapshot\n").unwrap();
        fs::write(path.join("x.log.before-restore"), "older\n").unwrap();
        let answer = env.weald(&["snapshot", "restore", "a", "1", "--json"]);
        assert_eq!(answer.code, 0, "{answer:#?}");
        let aside = [
            "d.log.before-restore",
            "e.log.before-restore",
            "loose.before-restore/y.log",
            "x.log.before-restore-2",
        ];
        assert_eq!(set_aside(&answer.json()), aside, "{kind}");
        assert!(
            answer.stderr.contains("x.log.before-restore-2"),
            "{answer:#?}"
        );
        for (file, now) in [
            ("x.log", "v1\n"),
            ("same.log", "same\n"),
            ("d.log", "a file\n"),
            ("e.log/inner", "in a directory\n"),
            ("loose", "l\n"),
            ("other.log", "precious other.log\n"),
            ("x.log.before-restore", "older\n"),
            ("x.log.before-restore-2", "precious x.log\n"),
            ("d.log.before-restore/deep", "precious d.log/deep\n"),
            ("e.log.before-restore", "precious e.log\n"),
            ("loose.before-restore/y.log", "precious loose/y.log\n"),
        ] {
            assert_eq!(text(path.join(file)), now, "{kind}: {file}");
        }
        assert!(!path.join("same.log.before-restore").exists());
    }
}

#[test]
fn z4_a_restore_keeps_changes_that_git_was_told_not_to_see() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    commit(&env, &path, "same", "s\n");
    env.ok(&["snapshot", "create", "a"]);
    git_in(
        &env,
        &path,
        &["update-index", "--assume-unchanged", "config.py", "same"],
    );
    fs::write(path.join("config.py"), "precious and unseen\n").unwrap();
    let back = env.ok(&["snapshot", "restore", "a", "1"]);
    // The snapshot before the restore has them; only what is too large for it goes aside.
    assert!(set_aside(&back).is_empty(), "{back}");
    assert_eq!(text(path.join("config.py")), "base\n");
    let small = ["--set", "snapshot.file_limit=8"];
    let restore = |number: &str| {
        let args = [&["snapshot", "restore", "a", number][..], &small].concat();
        env.ok(&args)
    };
    restore("2");
    assert_eq!(text(path.join("config.py")), "precious and unseen\n");
    let back = restore("1");
    assert_eq!(set_aside(&back), ["config.py.before-restore"]);
    assert_eq!(text(path.join("config.py")), "base\n");
    let aside = path.join("config.py.before-restore");
    assert_eq!(text(aside), "precious and unseen\n");
}

#[test]
fn z4_a_sync_keeps_what_git_ignores_beside_its_place() {
    for (kind, option) in KINDS
        .iter()
        .flat_map(|kind| [(kind, None), (kind, Some("--rebase"))])
    {
        let env = repository();
        let path = grow(&env, "a", kind);
        commit(&env, &path, "mine", "m\n");
        for file in ["y.log", "f.log", "away.log"] {
            fs::write(path.join(file), format!("precious {file}\n")).unwrap();
        }
        fs::create_dir(path.join("g.log")).unwrap();
        fs::write(path.join("g.log/deep"), "precious deep\n").unwrap();
        force(&env, &env.repo(), "y.log", "main's\n");
        force(&env, &env.repo(), "f.log/inner", "main's\n");
        force(&env, &env.repo(), "g.log", "main's\n");
        let args: Vec<_> = ["sync", "a"].into_iter().chain(option).collect();
        let done = env.ok(&args);
        assert_eq!(done["outcome"], "merged", "{done}");
        let aside = [
            "f.log.before-sync",
            "g.log.before-sync",
            "y.log.before-sync",
        ];
        assert_eq!(set_aside(&done), aside, "{kind} {option:?}");
        for (file, now) in [
            ("y.log", "main's\n"),
            ("f.log/inner", "main's\n"),
            ("g.log", "main's\n"),
            ("away.log", "precious away.log\n"),
            ("y.log.before-sync", "precious y.log\n"),
            ("f.log.before-sync", "precious f.log\n"),
            ("g.log.before-sync/deep", "precious deep\n"),
        ] {
            assert_eq!(text(path.join(file)), now, "{kind} {option:?}: {file}");
        }
    }
}

#[test]
fn z4_a_sync_that_git_refuses_moves_nothing() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    fs::write(path.join("y.log"), "precious\n").unwrap();
    fs::write(path.join("loose"), "mine\n").unwrap();
    force(&env, &env.repo(), "y.log", "main's\n");
    force(&env, &env.repo(), "loose", "main's\n");
    let refused = env.weald(&["sync", "a", "--json"]);
    assert_ne!(refused.code, 0, "{refused:#?}");
    assert_eq!(text(path.join("y.log")), "precious\n");
    assert_eq!(text(path.join("loose")), "mine\n");
    assert!(!path.join("y.log.before-sync").exists());
}

#[test]
fn z4_a_renamed_directory_leads_a_sync_to_a_place_that_neither_side_has() {
    let env = repository();
    for file in ["old/one", "old/two"] {
        force(&env, &env.repo(), file, &format!("{file} is long enough\n"));
    }
    let path = grow(&env, "a", "sealed");
    git_in(&env, &path, &["config", "merge.directoryRenames", "true"]);
    git_in(&env, &path, &["mv", "old", "new"]);
    git_in(&env, &path, &["commit", "-q", "-m", "moved"]);
    fs::write(path.join("new/z.log"), "precious\n").unwrap();
    force(&env, &env.repo(), "old/z.log", "main's\n");
    let done = env.ok(&["sync", "a"]);
    assert_eq!(
        done["set_aside"],
        json!(["new/z.log.before-sync"]),
        "{done}"
    );
    assert_eq!(text(path.join("new/z.log")), "main's\n");
    assert_eq!(text(path.join("new/z.log.before-sync")), "precious\n");
}
