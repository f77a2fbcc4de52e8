//! Setting trees up: files of main, shared folders, the user's hook.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_remove::{KINDS, git_in, grow, repository, try_git};
use crate::trees_trash::manifest;

fn write(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

/// Commits everything in main.
pub fn commit_all(env: &TestEnv) {
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "more"]);
}

/// A repository whose rules ignore what the tests share.
pub fn sharing() -> TestEnv {
    let env = repository();
    let rules = "*.log\n.env*\nnode_modules/\n.venv/\ncache/\n";
    write(env.repo().join(".gitignore"), rules);
    commit_all(&env);
    env
}

fn new(env: &TestEnv, name: &str, options: &[&str]) -> (Value, String) {
    let answer = env.weald(&[&["new", name, "--json"], options].concat());
    assert_eq!(answer.code, 0, "{answer:#?}");
    (answer.json(), answer.stderr)
}

#[test]
fn k14_worktreeinclude_brings_what_git_ignores_and_nothing_else() {
    for kind in KINDS {
        let env = sharing();
        let main = env.repo();
        let patterns = ".env*\n!.env.prod\nconfig.py\nplain\ncache/keep/**\n*.log\n";
        write(main.join(".worktreeinclude"), patterns);
        commit_all(&env);
        write(main.join("config.py"), "changed, but tracked\n");
        write(main.join(".env"), "SECRET=1\n");
        fs::set_permissions(main.join(".env"), fs::Permissions::from_mode(0o600)).unwrap();
        write(main.join(".env.prod"), "not this one\n");
        write(main.join("plain"), "untracked, not ignored\n");
        write(main.join("deep/down/.env.local"), "D=1\n");
        write(main.join("cache/keep/a/b"), "kept\n");
        write(main.join("cache/drop"), "dropped\n");
        symlink("/etc/hostname", main.join("away.log")).unwrap();
        symlink(main.join("config.py"), main.join("back.log")).unwrap();
        // A repository inside, and a file as old as the hills.
        git_in(&env, &main, &["init", "-q", "cache/keep/inner"]);
        let old = fs::File::open(main.join(".env")).unwrap();
        let long_ago = std::time::UNIX_EPOCH + Duration::from_nanos(1_000_000_123_456_789);
        old.set_modified(long_ago).unwrap();
        let before = manifest(&main);
        let (answer, told) = new(&env, "a", &["--kind", kind]);
        let tree = env.root().join("app.weald/a");
        assert_eq!(answer["setup"]["outcome"], "done", "{answer}");
        assert_eq!(answer["setup"]["copied"], 5, "{answer}");
        assert_eq!(text(tree.join(".env")), "SECRET=1\n");
        let meta = fs::metadata(tree.join(".env")).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        assert_eq!((meta.mtime(), meta.mtime_nsec()), (1_000_000, 123_456_789));
        assert_eq!(text(tree.join("deep/down/.env.local")), "D=1\n");
        assert_eq!(text(tree.join("cache/keep/a/b")), "kept\n");
        assert_eq!(text(tree.join("config.py")), "base\n");
        for missing in ["plain", ".env.prod", "cache/drop", "cache/keep/inner"] {
            assert!(!tree.join(missing).exists(), "{missing}");
        }
        assert!(told.contains("nested repository"), "{told}");
        let link = |name: &str| fs::read_link(tree.join(name)).unwrap();
        assert_eq!(link("away.log"), Path::new("/etc/hostname"));
        assert_eq!(
            link("back.log"),
            Path::new("./config.py"),
            "not back into main"
        );
        assert_eq!(
            git_in(&env, &tree, &["status", "--porcelain"]),
            "",
            "{kind}"
        );
        let after = manifest(&main);
        let ours = |(path, _): &(&std::path::PathBuf, _)| !path.starts_with(".git");
        assert!(before.iter().filter(ours).eq(after.iter().filter(ours)));
    }
}

#[test]
fn k14_a_sparse_file_takes_no_more_room_in_a_worktree_than_in_main() {
    let env = sharing();
    let main = env.repo();
    write(main.join(".worktreeinclude"), "*.log\n");
    commit_all(&env);
    let sparse = fs::File::create(main.join("sparse.log")).unwrap();
    sparse.write_all_at(b"in the middle", 1 << 30).unwrap();
    sparse.set_len(3 << 30).unwrap();
    new(&env, "a", &[]);
    let copy = fs::File::open(env.root().join("app.weald/a/sparse.log")).unwrap();
    let meta = copy.metadata().unwrap();
    assert_eq!(meta.len(), 3 << 30);
    assert!(meta.blocks() < 1024, "{} blocks", meta.blocks());
    let mut middle = [0; 13];
    copy.read_exact_at(&mut middle, 1 << 30).unwrap();
    assert_eq!(&middle, b"in the middle");
}

#[test]
fn x23_worktreeinclude_counts_on_the_target_and_copies_nothing_that_runs_must_not_see() {
    let env = sharing();
    let main = env.repo();
    write(main.join(".env"), "S=1\n");
    write(main.join("hidden.log"), "secret\n");
    let denied = main.join("hidden.log").display().to_string();
    env.ok(&["config", "set", "sandbox.read_deny", &denied]);
    // In the checkout alone: somebody may have put it there whom nobody approved.
    write(main.join(".worktreeinclude"), ".env\nhidden.log\n");
    let tree = grow(&env, "a", "sealed");
    assert!(!tree.join(".env").exists() && !tree.join("hidden.log").exists());
    commit_all(&env);
    let tree = grow(&env, "b", "sealed");
    assert_eq!(fs::read_to_string(tree.join(".env")).unwrap(), "S=1\n");
    assert!(!tree.join("hidden.log").exists());
}

#[test]
fn k14_what_is_in_the_tree_is_never_overwritten() {
    let env = sharing();
    write(env.repo().join(".worktreeinclude"), ".env\n");
    commit_all(&env);
    write(env.repo().join(".env"), "main's\n");
    let tree = grow(&env, "a", "sealed");
    fs::write(tree.join(".env"), "mine\n").unwrap();
    let again = env.ok(&["setup", "a"]);
    assert_eq!(again["setup"]["copied"], 0);
    assert_eq!(text(tree.join(".env")), "mine\n");
    fs::remove_file(tree.join(".env")).unwrap();
    assert_eq!(env.ok(&["setup", "a"])["setup"]["copied"], 1);
    assert_eq!(text(tree.join(".env")), "main's\n");
}

#[test]
fn k14_a_tracked_link_leads_no_copy_out_of_the_tree() {
    let env = sharing();
    let main = env.repo();
    let outside = env.root().join("outside");
    fs::create_dir(&outside).unwrap();
    // On the branch `odd`, `conf` and `node_modules` are links out of the tree.
    env.git(&["checkout", "-q", "-b", "odd"]);
    symlink(&outside, main.join("conf")).unwrap();
    symlink(&outside, main.join("lib")).unwrap();
    env.git(&["add", "-f", "conf", "lib"]);
    env.git(&["commit", "-q", "-m", "odd"]);
    env.git(&["checkout", "-q", "main"]);
    write(main.join(".worktreeinclude"), ".env\n");
    commit_all(&env);
    write(main.join("conf/.env"), "SECRET\n");
    write(main.join("lib/node_modules/x"), "x\n");
    let options = [
        "--base",
        "odd",
        "--set",
        "tree.share_paths=lib/node_modules",
    ];
    let (answer, told) = new(&env, "a", &options);
    assert_eq!(answer["setup"]["copied"], 0);
    assert!(told.contains("conf/.env is not copied"), "{told}");
    assert!(told.contains("lib/node_modules is not copied"), "{told}");
    let linked = [&options[..], &["--set", "tree.share=symlink"]].concat();
    let (_, told) = new(&env, "b", &linked);
    assert!(told.contains("lib/node_modules is not copied"), "{told}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn k14_trees_inside_the_repository_are_not_copied_into_each_other() {
    let env = sharing();
    write(env.repo().join(".worktreeinclude"), "*.log\n.worktrees/\n");
    commit_all(&env);
    let inside = ["--set", "tree.path={repo}/.worktrees/{name}"];
    new(&env, "a", &inside);
    fs::write(env.repo().join(".worktrees/a/own.log"), "a's").unwrap();
    // Even one that has lost its repository.
    fs::remove_dir_all(env.repo().join(".worktrees/a/.git")).unwrap();
    let (answer, _) = new(&env, "b", &inside);
    assert_eq!(answer["setup"]["copied"], 0, "{answer}");
    assert!(!env.repo().join(".worktrees/b/.worktrees").exists());
}

/// A `node_modules` as package managers make it.
fn modules(main: &Path) {
    let modules = main.join("node_modules");
    write(modules.join("left/index.js"), "module.exports = 1\n");
    write(modules.join("tool/cli.js"), "#!/usr/bin/env node\n");
    fs::create_dir_all(modules.join(".bin")).unwrap();
    symlink("../tool/cli.js", modules.join(".bin/tool")).unwrap();
    symlink(main.join("packages/own"), modules.join("own")).unwrap();
    symlink("../packages/own", modules.join("kin")).unwrap();
    let shim = format!(
        "#!/bin/sh\nNODE_PATH={}/node_modules exec true\n",
        main.display()
    );
    write(modules.join(".bin/shim"), &shim);
    write(
        main.join("packages/own/index.js"),
        "module.exports = 'own'\n",
    );
    write(modules.join("sealed/x"), "x");
    fs::set_permissions(modules.join("sealed"), fs::Permissions::from_mode(0o555)).unwrap();
    for number in 0..200 {
        write(modules.join(format!("many/{number}.js")), "1\n");
    }
}

#[test]
fn k14_node_modules_are_copied_without_a_way_back() {
    for kind in KINDS {
        let env = sharing();
        modules(&env.repo());
        commit_all(&env);
        let (answer, _) = new(
            &env,
            "a",
            &[
                "--kind",
                kind,
                "--set",
                "tree.share_paths=node_modules,missing",
            ],
        );
        assert_eq!(answer["setup"]["shared"], json!(["node_modules"]));
        let (main, tree) = (env.repo(), env.root().join("app.weald/a"));
        let modules = tree.join("node_modules");
        let link = |name: &str| fs::read_link(modules.join(name)).unwrap();
        assert_eq!(link(".bin/tool"), Path::new("../tool/cli.js"));
        assert_eq!(link("own"), Path::new("../packages/own"));
        assert_eq!(link("kin"), Path::new("../packages/own"));
        let shim = text(modules.join(".bin/shim"));
        assert!(shim.contains("/app.weald/a/node_modules"), "{shim}");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&modules.join("sealed")), 0o555);
        assert_eq!(fs::read_dir(modules.join("many")).unwrap().count(), 200);
        for path in ["many/7.js", "many", "."] {
            let time = |root: &Path| {
                let found = fs::metadata(root.join("node_modules").join(path)).unwrap();
                (found.mtime(), found.mtime_nsec())
            };
            assert_eq!(time(&main), time(&tree), "{path}");
        }
        // Writing through every link of the tree leaves main alone.
        let script = "echo changed > node_modules/own/index.js; echo changed > node_modules/.bin/tool; \
            echo changed > node_modules/left/index.js";
        assert_eq!(env.weald(&["run", "a", "--", "sh", "-c", script]).code, 0);
        assert_eq!(
            text(main.join("packages/own/index.js")),
            "module.exports = 'own'\n"
        );
        assert_eq!(
            text(main.join("node_modules/left/index.js")),
            "module.exports = 1\n"
        );
        assert_eq!(text(tree.join("packages/own/index.js")), "changed\n");
    }
}

#[test]
fn k14_node_modules_by_link_can_be_read_and_not_written() {
    let env = sharing();
    modules(&env.repo());
    commit_all(&env);
    for (name, options) in [
        (
            "a",
            &[
                "--set",
                "tree.share=symlink",
                "--set",
                "tree.share_paths=node_modules",
            ][..],
        ),
        (
            "7",
            &[
                "--set",
                "profile=jkz",
                "--set",
                "tree.path={repo_parent}/app.weald/{name}",
                "--set",
                "tree.branch=jkz/{name}",
            ],
        ),
    ] {
        let (answer, told) = new(&env, name, options);
        assert_eq!(answer["setup"]["shared"], json!(["node_modules"]), "{told}");
        assert!(told.contains("is a link to main's own"), "{told}");
        let tree = env.root().join("app.weald").join(name);
        let to = fs::read_link(tree.join("node_modules")).unwrap();
        assert_eq!(to, env.repo().join("node_modules"));
        assert_eq!(git_in(&env, &tree, &["status", "--porcelain"]), "");
        let run = |script: &str| env.weald(&["run", name, "--", "sh", "-c", script]).code;
        assert_eq!(run("test -f node_modules/left/index.js"), 0);
        assert_ne!(run("echo x > node_modules/left/index.js"), 0);
    }
}

#[test]
fn k14_claude_codes_own_setting_links_folders_in_its_profile() {
    let env = sharing();
    let settings = r#"{"worktree": {"symlinkDirectories": ["node_modules", "cache"]}}"#;
    write(env.repo().join(".claude/settings.json"), settings);
    commit_all(&env);
    write(env.repo().join("node_modules/x"), "x");
    let (answer, _) = new(&env, "a", &["--set", "profile=claude-code"]);
    assert_eq!(
        answer["setup"]["shared"],
        json!(["node_modules"]),
        "{answer}"
    );
    assert!(
        env.repo()
            .join(".claude/worktrees/a/node_modules")
            .is_symlink()
    );
    let (answer, _) = new(&env, "b", &[]);
    assert_eq!(answer["setup"], json!(null));
}

#[test]
fn k14_only_what_git_ignores_below_the_repository_is_shared() {
    let env = sharing();
    write(env.repo().join("src/x"), "x");
    commit_all(&env);
    let paths = "tree.share_paths=src,../home,/etc,.git/hooks,a/../../x";
    let (answer, told) = new(&env, "a", &["--set", paths, "--set", "tree.share=symlink"]);
    assert_eq!(answer["setup"]["shared"], json!([]), "{answer}");
    assert!(told.contains("src is not ignored by git"), "{told}");
    for path in ["../home", "/etc", ".git/hooks", "a/../../x"] {
        assert!(
            told.contains(&format!("`{path}` can't be shared")),
            "{told}"
        );
    }
}

#[test]
fn k14_the_post_checkout_hook_runs_inside() {
    for (kind, hooks) in [
        ("sealed", ".git/hooks"),
        ("linked", ".git/hooks"),
        ("sealed", "hooks"),
    ] {
        let env = repository();
        let hook = env.repo().join(hooks).join("post-checkout");
        let script = format!(
            "#!/bin/sh\necho \"$@\" > hooked.log\npwd >> hooked.log\necho x > {}/escaped\nexit 3\n",
            env.repo().display()
        );
        write(&hook, &script);
        if hooks == "hooks" {
            env.git(&["config", "core.hooksPath", hooks]);
            commit_all(&env);
        }
        let (answer, _) = new(&env, "before", &["--kind", kind]);
        assert_eq!(answer["setup"], json!(null));
        assert!(
            !env.root().join("app.weald/before/hooked.log").exists(),
            "not executable"
        );
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        if hooks == "hooks" {
            commit_all(&env);
        }
        let (_, told) = new(&env, "a", &["--kind", kind]);
        let tree = env.root().join("app.weald/a");
        let head = git_in(&env, &tree, &["rev-parse", "HEAD"]);
        let nothing = "0".repeat(40);
        let expected = format!("{nothing} {} 1\n{}\n", head.trim(), tree.display());
        assert_eq!(text(tree.join("hooked.log")), expected, "{kind} {hooks}");
        assert!(!env.repo().join("escaped").exists());
        assert!(told.contains("hook failed: exit code 3"), "{told}");
        assert!(try_git(&env, &tree, &["status"]).0);
    }
}

#[test]
fn k14_a_recreated_tree_is_set_up_again() {
    let env = sharing();
    write(env.repo().join(".worktreeinclude"), ".env\n");
    commit_all(&env);
    write(env.repo().join(".env"), "S=1\n");
    let tree = grow(&env, "a", "sealed");
    fs::remove_dir_all(&tree).unwrap();
    let again = env.ok(&["ensure", "a"]);
    assert_eq!(
        (&again["outcome"], &again["setup"]["copied"]),
        (&json!("recreated"), &json!(1))
    );
    assert_eq!(text(tree.join(".env")), "S=1\n");
}

#[test]
fn k14_a_fifo_in_place_of_the_trees_rules_keeps_nobody_waiting() {
    let env = sharing();
    modules(&env.repo());
    commit_all(&env);
    let tree = grow(&env, "a", "sealed");
    let rules = tree.join(".git/info/exclude");
    let _ = fs::remove_file(&rules);
    fs::create_dir_all(rules.parent().unwrap()).unwrap();
    let made = env.command("mkfifo").arg(&rules).status().unwrap();
    assert!(made.success());
    let share = [
        "--set",
        "tree.share=symlink",
        "--set",
        "tree.share_paths=node_modules",
    ];
    let mut command = env.weald_command(&[&["setup", "a"], &share[..]].concat());
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it waits for the FIFO");
        }
    };
    assert!(ended.success());
    assert!(tree.join("node_modules").is_symlink());
    // Nor does a second name of some other file lead anywhere.
    fs::remove_file(&rules).unwrap();
    fs::remove_file(tree.join("node_modules")).unwrap();
    write(tree.join("other"), "as it was\n");
    fs::hard_link(tree.join("other"), &rules).unwrap();
    env.ok(&[&["setup", "a"], &share[..]].concat());
    assert!(tree.join("node_modules").is_symlink());
    assert_eq!(text(tree.join("other")), "as it was\n");
}

#[test]
fn k14_a_kill_leaves_no_half_of_a_file() {
    const SIZE: u64 = 256 << 20;
    let env = sharing();
    write(env.repo().join(".worktreeinclude"), ".env\n");
    commit_all(&env);
    for kind in KINDS {
        let tree = grow(&env, kind, kind);
        let large = fs::File::create(env.repo().join(".env")).unwrap();
        large.set_len(SIZE).unwrap();
        let mut command = env.weald_command(&["setup", kind]);
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let news = || {
            let names = fs::read_dir(&tree).unwrap().flatten();
            let names = names.map(|entry| entry.file_name().into_string().unwrap());
            let names = names.filter(|name| name == ".env" || name.starts_with(".weald-new"));
            names.collect::<Vec<_>>()
        };
        // Killed as soon as anything is there.
        while child.try_wait().unwrap().is_none() && news().is_empty() {}
        child.kill().unwrap();
        child.wait().unwrap();
        let size = || {
            fs::metadata(tree.join(".env"))
                .map(|found| found.len())
                .ok()
        };
        assert!(matches!(size(), None | Some(SIZE)), "{kind}: {:?}", news());
        // What an earlier kill left.
        write(tree.join(".weald-new-file-7"), "half");
        env.ok(&["setup", kind]);
        assert_eq!(
            (size(), news()),
            (Some(SIZE), vec![".env".to_owned()]),
            "{kind}"
        );
        fs::remove_file(env.repo().join(".env")).unwrap();
    }
}
