//! Removal in every state a tree can be in: refused or trashed, and restored byte for byte; moves between states.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use serde_json::json;
use weald_app::SystemClock;
use weald_core::id::TreeId;
use weald_core::store::{Clock, Durability, Store};
use weald_core::tree::{Base, DirectoryIdentity, Tree};
use weald_core::tree_rules::{self, TreeInput};
use weald_store::SqliteStore;
use weald_testkit::TestEnv;

use crate::trees_remove::{KINDS, commit, git_in, grow, repository, try_git};
use crate::trees_trash::{manifest, status};

/// What a restored tree has to have again: its files, its repository's own part, and what git says.
fn everything(env: &TestEnv, path: &Path) -> impl PartialEq + std::fmt::Debug + use<> {
    let own = env.repo().join(".git/worktrees/a");
    let of_main = match path.join(".git").is_file() {
        true => manifest(&own),
        false => Default::default(),
    };
    let says = [
        status(env, path),
        git_in(env, path, &["stash", "list", "--format=%H %gs"]),
        git_in(env, path, &["rev-parse", "HEAD"]),
        try_git(env, path, &["symbolic-ref", "HEAD"]).1,
    ];
    (manifest(path), of_main, says)
}

/// Puts both kinds into a state and checks what removal and restore make of it. `code` is the refusal, if there is one.
fn removal_loses_nothing(code: [Option<&str>; 2], state: impl Fn(&TestEnv, &Path)) {
    for (kind, code) in KINDS.into_iter().zip(code) {
        let env = repository();
        let path = grow(&env, "a", kind);
        state(&env, &path);
        let before = everything(&env, &path);
        let files = manifest(&path);
        if let Some(code) = code {
            env.refused(&["rm", "a"], 1, code);
            assert_eq!(
                everything(&env, &path),
                before,
                "{kind}: a refusal changed it"
            );
        }
        let removed = match code {
            Some(_) => env.ok(&["rm", "a", "--discard"]),
            None => env.ok(&["rm", "a"]),
        };
        assert!(!path.exists(), "{kind}");
        let place = PathBuf::from(removed["tree"]["trash"]["path"].as_str().unwrap());
        assert_eq!(manifest(&place), files, "{kind}: in the trash");
        env.git(&["worktree", "prune", "--expire=now"]);
        env.git(&["gc", "-q", "--prune=now"]);
        env.ok(&["trash", "restore", "a"]);
        assert_eq!(manifest(&path), files, "{kind}: restored");
        assert_eq!(everything(&env, &path), before, "{kind}: restored");
        git_in(&env, &path, &["rev-list", "--objects", "--all", "HEAD"]);
    }
}

const DIRTY: [Option<&str>; 2] = [Some("tree_dirty"), Some("tree_dirty")];

#[test]
fn z3_dirty() {
    removal_loses_nothing(DIRTY, |_, path| {
        fs::write(path.join("config.py"), "changed\n").unwrap();
        fs::write(path.join("bytes"), [0, 255, 10, 13]).unwrap();
        fs::write(path.join("script"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(path.join("script"), fs::Permissions::from_mode(0o751)).unwrap();
        fs::create_dir(path.join("empty")).unwrap();
    });
}

#[test]
fn z3_staged_only() {
    removal_loses_nothing(DIRTY, |env, path| {
        fs::write(path.join("config.py"), "staged\n").unwrap();
        git_in(env, path, &["add", "config.py"]);
        fs::write(path.join("config.py"), "base\n").unwrap();
        fs::write(path.join("gone"), "only in the index\n").unwrap();
        git_in(env, path, &["add", "gone"]);
        fs::remove_file(path.join("gone")).unwrap();
    });
}

#[test]
fn z3_ignored_only() {
    removal_loses_nothing([None, None], |_, path| {
        fs::create_dir(path.join("build.log")).unwrap();
        fs::write(path.join("build.log/deep"), "ignored\n").unwrap();
        fs::write(path.join("x.log"), "ignored\n").unwrap();
    });
}

#[test]
fn z3_stash() {
    // The stash of a linked tree is the main repository's, so nothing speaks against its removal.
    removal_loses_nothing([Some("tree_unlanded"), None], |env, path| {
        for text in ["one\n", "two\n"] {
            fs::write(path.join("config.py"), text).unwrap();
            fs::write(path.join("untracked"), text).unwrap();
            git_in(env, path, &["stash", "push", "-q", "-u"]);
        }
    });
}

#[test]
fn z3_detached_head() {
    let unlanded = [Some("tree_unlanded"); 2];
    removal_loses_nothing(unlanded, |env, path| {
        git_in(env, path, &["checkout", "-q", "--detach"]);
        commit(env, path, "work", "work\n");
    });
}

/// A commit here and one on another branch that don't go together.
fn conflicting(env: &TestEnv, path: &Path) {
    git_in(env, path, &["checkout", "-q", "-b", "theirs"]);
    commit(env, path, "config.py", "theirs\n");
    git_in(env, path, &["checkout", "-q", "wt/a"]);
    commit(env, path, "config.py", "ours\n");
}

#[test]
fn z3_mid_rebase() {
    removal_loses_nothing(DIRTY, |env, path| {
        conflicting(env, path);
        let (done, said) = try_git(env, path, &["rebase", "theirs"]);
        assert!(!done && said.contains("CONFLICT"), "{said}");
    });
}

#[test]
fn z3_mid_merge() {
    removal_loses_nothing(DIRTY, |env, path| {
        conflicting(env, path);
        let (done, said) = try_git(env, path, &["merge", "theirs"]);
        assert!(!done && said.contains("CONFLICT"), "{said}");
    });
}

#[test]
fn z3_mid_merge_with_nothing_left_to_do() {
    removal_loses_nothing(DIRTY, |env, path| {
        conflicting(env, path);
        git_in(
            env,
            path,
            &["merge", "-q", "-s", "ours", "--no-commit", "theirs"],
        );
    });
}

#[test]
fn z3_nested_repository() {
    removal_loses_nothing(DIRTY, |env, path| {
        let nested = path.join("nested");
        fs::create_dir(&nested).unwrap();
        git_in(env, &nested, &["init", "-q", "-b", "own"]);
        commit(env, &nested, "inner", "inner\n");
        fs::write(nested.join("inner"), "changed\n").unwrap();
        fs::write(nested.join("more"), "untracked\n").unwrap();
    });
}

#[test]
fn z3_submodule() {
    removal_loses_nothing(DIRTY, |env, path| {
        let library = env.root().join("library");
        fs::create_dir(&library).unwrap();
        git_in(env, &library, &["init", "-q", "-b", "main"]);
        commit(env, &library, "code", "code\n");
        let add = ["-c", "protocol.file.allow=always", "submodule", "-q", "add"];
        let from = [library.to_str().unwrap(), "sub"];
        git_in(env, path, &[&add[..], &from].concat());
        git_in(env, path, &["commit", "-q", "-m", "with a submodule"]);
        // A commit that only this submodule has, and changes on top of it.
        commit(env, &path.join("sub"), "own", "own\n");
        fs::write(path.join("sub/code"), "changed\n").unwrap();
        fs::write(path.join("sub/untracked"), "new\n").unwrap();
    });
}

#[test]
fn z3_symlink_to_outside() {
    removal_loses_nothing(DIRTY, |env, path| {
        let outside = env.root().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("precious"), "keep").unwrap();
        symlink(&outside, path.join("link")).unwrap();
        symlink(outside.join("precious"), path.join("file.log")).unwrap();
        symlink("/nowhere", path.join("dangling")).unwrap();
    });
}

#[test]
fn z3_link_targets_are_untouched_by_rm_restore_and_purge() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let outside = env.root().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("precious"), "keep").unwrap();
        fs::set_permissions(outside.join("precious"), fs::Permissions::from_mode(0o400)).unwrap();
        symlink(&outside, path.join("link.log")).unwrap();
        let before = manifest(&outside);
        env.ok(&["rm", "a"]);
        assert_eq!(manifest(&outside), before);
        env.ok(&["trash", "restore", "a"]);
        assert_eq!(manifest(&outside), before);
        env.ok(&["rm", "a"]);
        let purge = ["trash", "purge", "--older-than", "1ms", "--apply"];
        let purged = env.ok(&purge);
        assert_eq!(purged["trash"][0]["name"], "a", "{kind}");
        assert_eq!(manifest(&outside), before);
    }
}

#[test]
fn z3_open_files() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let mut holder = env
            .command("sh")
            .args(["-c", "exec 3>>held; echo up; read line; echo $line >&3"])
            .current_dir(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(holder.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        fs::write(path.join("held"), "before\n").unwrap();
        let before = everything(&env, &path);
        env.refused(&["rm", "a"], 1, "tree_dirty");
        env.ok(&["rm", "a", "--discard"]);
        env.ok(&["trash", "restore", "a"]);
        assert_eq!(everything(&env, &path), before, "{kind}");
        let mut input = holder.stdin.take().unwrap();
        input.write_all(b"after\n").unwrap();
        drop(input);
        assert!(holder.wait().unwrap().success());
        let text = fs::read_to_string(path.join("held")).unwrap();
        assert_eq!(text, "before\nafter\n", "{kind}");
    }
}

/// Writes a tree's record without the tree, as a crash leaves it.
fn record(env: &TestEnv, name: &str, broken: bool) {
    let store = SqliteStore::open(&env.private(), Arc::new(SystemClock)).unwrap();
    let now = SystemClock.now();
    let path = env.root().join("app.weald").join(name);
    let base = Base {
        reference: "main".to_owned(),
        commit: env.git(&["rev-parse", "main"]).trim().to_owned(),
    };
    let tree = Tree::new(TreeId(90), name.parse().unwrap(), path, base, now);
    let (tree, change) = tree_rules::announce(tree);
    let mut changes = vec![change];
    if broken {
        let made = TreeInput::Created {
            identity: DirectoryIdentity {
                device: 1,
                inode: 1,
                born: None,
            },
            registration: name.to_owned(),
        };
        let (tree, change) = tree_rules::decide(&tree, made, now).unwrap();
        changes.push(change);
        let broke = TreeInput::Broke {
            error: "torn".to_owned(),
        };
        changes.push(tree_rules::decide(&tree, broke, now).unwrap().1);
    }
    for change in changes {
        let mut tx = store.write(Durability::Power).unwrap();
        tx.record(None, change).unwrap();
        tx.commit().unwrap();
    }
}

#[test]
fn d18_a_tree_that_is_not_there_yet_or_is_broken_takes_no_work() {
    for (name, broken) in [("half", false), ("torn", true)] {
        let env = repository();
        env.ok(&["task", "add", "work"]);
        record(&env, name, broken);
        for args in [
            &["keep", name][..],
            &["enter", name],
            &["run", name, "--", "true"],
        ] {
            let answer = env.weald(&[&["--json"], args].concat());
            assert_ne!(answer.code, 0, "{args:?}: {answer:#?}");
            let code = answer.error_code();
            let told = ["illegal_move", "tree_missing", "tree_replaced"];
            assert!(told.contains(&code.as_str()), "{args:?}: {answer:#?}");
        }
        env.refused(&["keep", name], 1, "illegal_move");
        if !broken {
            env.refused(&["rm", name], 1, "illegal_move");
            env.refused(&["lock", name], 1, "illegal_move");
            env.refused(&["task", "bind", "1", name], 1, "illegal_move");
        }
        let status = ["creating", "broken"][usize::from(broken)];
        assert_eq!(env.ok(&["list"])["trees"][0]["status"], status);
    }
}

#[test]
fn d18_trashed_and_removed_trees_only_come_back_by_restore() {
    for kind in KINDS {
        let env = repository();
        env.ok(&["task", "add", "work"]);
        let path = grow(&env, "a", kind);
        env.refused(&["trash", "restore", "a"], 4, "not_in_trash");
        env.ok(&["rm", "a"]);
        let moves = |state: &str| {
            for args in [
                &["keep", "a"][..],
                &["lock", "a"],
                &["unlock", "a"],
                &["rm", "a"],
                &["enter", "a"],
                &["status", "a"],
                &["task", "bind", "1", "a"],
            ] {
                let refused = env.refused(args, 4, "tree_not_found");
                assert_eq!(refused["error"]["details"]["tree"], "a", "{state}");
            }
            let run = env.weald(&["--json", "run", "a", "--", "true"]);
            assert_eq!(
                (run.code, run.error_code().as_str()),
                (125, "tree_not_found")
            );
        };
        moves("trashed");
        assert_eq!(env.ok(&["trash", "list"])["trash"][0]["exists"], true);
        env.ok(&["trash", "restore", "a"]);
        env.refused(&["trash", "restore", "a"], 4, "not_in_trash");
        fs::remove_dir_all(&path).unwrap();
        env.ok(&["rm", "a"]);
        moves("removed");
        env.refused(&["trash", "restore", "a"], 4, "not_in_trash");
    }
}

#[test]
fn d19_removal_frees_the_task_and_restore_binds_it_again() {
    for kind in KINDS {
        let env = repository();
        env.ok(&["task", "add", "work"]);
        grow(&env, "a", kind);
        env.ok(&["task", "bind", "1", "a", "--start"]);
        env.ok(&["rm", "a"]);
        let task = &env.ok(&["task", "show", "1"])["task"];
        assert_eq!(task["worktree"], json!(null));
        assert_eq!(task["last_worktree"], "a");
        assert_eq!(task["status"], "in_progress");
        let restored = env.ok(&["trash", "restore", "a"]);
        assert_eq!(restored["tree"]["task"], 1, "{kind}");
        let task = &env.ok(&["task", "show", "1"])["task"];
        assert_eq!(
            (&task["worktree"], &task["status"]),
            (&json!("a"), &json!("in_progress"))
        );
        env.ok(&["rm", "a"]);
        grow(&env, "b", kind);
        env.ok(&["task", "bind", "1", "b"]);
        let restored = env.ok(&["trash", "restore", "a"]);
        assert_eq!(restored["tree"]["task"], json!(null));
        assert_eq!(env.ok(&["task", "show", "1"])["task"]["worktree"], "b");
    }
}
