//! Moving the target's checkout: the same as `git merge --ff-only` would make of it, and nothing of the user's touched.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::landing::{land, landed, rev};
use crate::trees_remove::{git_in, grow, repository, try_git};

/// Every file of a checkout: path, kind, mode and content.
pub fn files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap().flatten() {
            let path = entry.path();
            if directory == *root && entry.file_name() == ".git" {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            let mut content = meta.permissions().mode().to_string().into_bytes();
            if meta.is_dir() {
                open.push(path.clone());
            } else if meta.is_symlink() {
                content.extend(fs::read_link(&path).unwrap().as_os_str().as_bytes());
            } else {
                content.extend(fs::read(&path).unwrap());
            }
            found.push((path.strip_prefix(root).unwrap().to_owned(), content));
        }
    }
    found.sort();
    found
}

/// Everything about a checkout that a user can see: files, index, HEAD, branch, and whether they are the same files.
pub fn state(env: &TestEnv, checkout: &Path) -> Value {
    let files: Vec<_> = files(checkout)
        .into_iter()
        .map(|(path, content)| {
            let inode = checkout.join(&path).symlink_metadata().unwrap().ino();
            (format!("{path:?}"), content, inode)
        })
        .collect();
    json!({
        "files": files,
        "index": git_in(env, checkout, &["ls-files", "-s", "-t", "-v", "-z"]),
        "status": git_in(env, checkout, &["status", "--porcelain", "-z", "--ignored"]),
        "head": git_in(env, checkout, &["rev-parse", "HEAD", "--symbolic-full-name", "HEAD"]),
        "stash": git_in(env, checkout, &["stash", "list"]),
    })
}

/// Runs a script.
#[track_caller]
pub fn sh(env: &TestEnv, directory: &Path, script: &str) {
    let mut command = env.command("sh");
    let script = format!("set -e\n{script}");
    let output = command
        .args(["-c", &script])
        .current_dir(directory)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{script}: {said}");
}

/// No file of weald's or of a killed git is left.
#[track_caller]
pub fn nothing_left(env: &TestEnv) {
    let mut open = vec![env.repo().join(".git")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let ours = directory.ends_with(".git/weald");
            if entry.path().is_dir() && !ours {
                open.push(entry.path());
            }
            let is_left = name.ends_with(".lock") || name.contains("weald-landing");
            assert!(ours || !is_left, "{} is left", entry.path().display());
        }
    }
}

struct Case {
    name: &'static str,
    /// In the repository, before its commit.
    base: &'static str,
    /// After the commit and in the twin, too: how the checkout is set up.
    setup: &'static str,
    /// In the tree.
    change: &'static str,
}

const CASES: [Case; 8] = [
    Case {
        name: "links, executables, folders and files that change places, odd names",
        base: "echo a>a; echo t>turned; ln -s a link; mkdir -p d deep/er both; echo x>d/x; echo y>d/y; echo f>file
               echo 1>deep/er/one; echo 1>'odd name'; echo 1>both/old; echo 1 >exec; chmod +x exec",
        setup: "",
        change: "echo b>a; chmod +x turned; chmod -x exec; rm link; ln -s d link; git rm -rq d deep both; echo now>d
                 rm file; mkdir file both; echo in>file/in; echo 2>both/new; ln -s nowhere new
                 printf y >\"$(printf 'odd\\tna\\nme\\377')\"; rm 'odd name'; ln -s a 'odd name'",
    },
    Case {
        name: "line ends that the landing itself changes",
        base: "printf 'one\\ntwo\\n' >t.txt; printf 'x\\n' >u.txt",
        setup: "",
        change: "echo '*.txt text eol=crlf' >.gitattributes; printf 'one\\nthree\\n' >t.txt; printf 'n\\n' >n.txt",
    },
    Case {
        name: "ident",
        base: "echo '*.c ident' >.gitattributes; echo '$Id$ 1' >i.c; echo '$Id$' >j.c",
        setup: "",
        change: "echo '$Id$ 2' >i.c",
    },
    Case {
        name: "filters of the user's own",
        base: "echo '*.f filter=mark' >.gitattributes; echo 'marked one' >a.f; echo 'marked two' >b.f",
        setup: "git checkout -q -f HEAD -- .",
        change: "echo 'marked three' >a.f; echo 'marked new' >c.f; git rm -qf b.f",
    },
    Case {
        name: "a sparse checkout",
        base: "mkdir in out; echo 1>in/a; echo 1>out/a; echo 1>out/b; echo 1>top",
        setup: "git sparse-checkout set in",
        change: "git sparse-checkout disable; echo 2>in/a; echo 2>out/a; git rm -q out/b; echo 2>out/c; echo 2>in/c; echo 2>top",
    },
    Case {
        name: "a split index",
        base: "for n in 1 2 3 4 5 6 7 8 9; do echo 1 >f$n; done",
        setup: "git update-index --split-index; echo staged >s; git add s; git commit -q -m s",
        change: "echo 2 >f1; git rm -q f2; echo 2 >n",
    },
    Case {
        name: "a submodule that comes and one that goes",
        base: "git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,old-sub; mkdir old-sub
               printf '[submodule \"old-sub\"]\\npath=old-sub\\nurl=./x\\n' >.gitmodules",
        setup: "mkdir -p old-sub",
        change: "git rm -q --cached old-sub; rm -rf old-sub; echo file >old-sub; echo 2 >a",
    },
    Case {
        name: "an index of version 4",
        base: "echo 1 >aaa; echo 1 >aab",
        setup: "git update-index --index-version 4",
        change: "echo 2 >aaa; git rm -q aab; echo 2 >aac",
    },
];

fn filters(env: &TestEnv) {
    for (key, value) in [
        ("filter.mark.clean", "sed s/^marked/clean/"),
        ("filter.mark.smudge", "sed s/^clean/marked/"),
        ("filter.mark.required", "true"),
    ] {
        env.git(&["config", "--global", key, value]);
    }
}

/// Lands a change, and lets git itself bring the same commit into a twin of the checkout.
fn compare(env: &TestEnv, case: &Case) {
    filters(env);
    // What is compared here is how files come into the checkout, whatever they are called.
    env.ok(&[
        "config",
        "set",
        "policy.protected",
        "!.gitattributes,!.gitmodules",
    ]);
    sh(env, &env.repo(), case.base);
    sh(env, &env.repo(), "git add -A; git commit -q -m base");
    sh(env, &env.repo(), case.setup);
    let twin = env.root().join("twin");
    sh(env, env.root(), "cp -a app twin");
    let tree = grow(env, "t", "sealed");
    sh(env, &tree, case.change);
    sh(env, &tree, "git add -A; git commit -q -m change");
    landed(env, &["t"]);
    git_in(env, &twin, &["fetch", "-q", "../app", "main"]);
    git_in(env, &twin, &["merge", "-q", "--ff-only", "FETCH_HEAD"]);
    let name = case.name;
    assert_eq!(files(&env.repo()), files(&twin), "{name}");
    let index = |checkout: &Path| git_in(env, checkout, &["ls-files", "-s", "-t", "-v", "-z"]);
    assert_eq!(index(&env.repo()), index(&twin), "{name}");
    // Before anybody looks into files again: what the index says of them is up to date, and so is its cached tree.
    let unrefreshed = |checkout: &Path| git_in(env, checkout, &["diff-files"]);
    assert_eq!(unrefreshed(&env.repo()), unrefreshed(&twin), "{name}");
    let written = git_in(env, &env.repo(), &["write-tree", "--missing-ok"]);
    assert_eq!(written.trim(), rev(env, "HEAD^{tree}"), "{name}");
    let status = |checkout: &Path| git_in(env, checkout, &["status", "--porcelain", "--ignored"]);
    assert_eq!(status(&env.repo()), "", "{name}");
    assert_eq!(status(&twin), "", "{name}");
    let last = env.git(&["reflog", "-1", "--format=%H %gs"]);
    assert_eq!(last.trim(), format!("{} weald: land 1", rev(env, "HEAD")));
    assert_eq!(rev(env, "ORIG_HEAD"), rev(env, "HEAD~1"));
    nothing_left(env);
}

#[test]
fn m7_the_checkout_is_what_git_itself_would_make_of_it() {
    for case in CASES.iter().filter(|case| !case.name.contains("filter")) {
        compare(&repository(), case);
    }
}

#[test]
fn m25_filters_of_the_user_run_as_in_their_own_git() {
    for case in CASES.iter().filter(|case| case.name.contains("filter")) {
        compare(&repository(), case);
    }
}

#[test]
fn m7_a_repository_with_long_ids() {
    let env = TestEnv::without_repository(env!("CARGO_BIN_EXE_weald"));
    fs::create_dir(env.repo()).unwrap();
    env.git(&["init", "-q", "-b", "main", "--object-format=sha256"]);
    env.git(&["config", "user.name", "Test"]);
    env.git(&["config", "user.email", "test@example.com"]);
    compare(&env, &CASES[0]);
}

#[test]
fn m25_a_failing_required_filter_changes_nothing() {
    let env = repository();
    filters(&env);
    sh(
        &env,
        &env.repo(),
        "echo '*.f filter=mark' >.gitattributes; git add -A; git commit -q -m base",
    );
    let tree = grow(&env, "t", "sealed");
    sh(
        &env,
        &tree,
        "echo 'marked' >a.f; echo 2 >config.py; git add -A; git commit -q -m change",
    );
    for smudge in ["false", "kill -9 $PPID; cat"] {
        env.git(&["config", "--global", "filter.mark.smudge", smudge]);
        let before = state(&env, &env.repo());
        let (code, ended) = land(&env, &["t"]);
        assert_eq!(
            (code, &ended[0]["outcome"]),
            (1, &json!("refused")),
            "{ended:#?}"
        );
        assert_eq!(state(&env, &env.repo()), before);
        nothing_left(&env);
    }
    env.git(&[
        "config",
        "--global",
        "filter.mark.smudge",
        "sed s/^clean/marked/",
    ]);
    landed(&env, &["t"]);
    assert_eq!(
        fs::read_to_string(env.repo().join("a.f")).unwrap(),
        "marked\n"
    );
}

#[test]
fn m25_no_hook_runs_unless_it_is_wanted() {
    let env = repository();
    let hooks = env.repo().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let names = [
        "reference-transaction",
        "post-merge",
        "post-checkout",
        "post-index-change",
    ];
    for name in names {
        let hook = hooks.join(name);
        fs::write(
            &hook,
            format!("#!/bin/sh\necho {name} >>{}/ran\n", env.root().display()),
        )
        .unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let tree = grow(&env, "t", "sealed");
    sh(&env, &tree, "echo 2 >config.py; git commit -q -a -m change");
    let ran = env.root().join("ran");
    let _ = fs::remove_file(&ran);
    landed(&env, &["t", "--keep"]);
    assert!(!ran.exists(), "{:?}", fs::read_to_string(&ran));
    sh(&env, &tree, "echo 3 >config.py; git commit -q -a -m again");
    env.ok(&["config", "set", "landing.hooks", "run"]);
    let _ = fs::remove_file(&ran);
    landed(&env, &["t", "--keep"]);
    let told = fs::read_to_string(&ran).unwrap();
    assert!(
        told.lines().all(|line| line == "reference-transaction"),
        "{told}"
    );
}

#[test]
fn m12_a_target_that_is_checked_out_nowhere_moves_alone() {
    let env = repository();
    for other in [
        &["switch", "-q", "-c", "dev"][..],
        &["switch", "-q", "--detach"],
    ] {
        git_in(&env, &env.repo(), other);
        let name = other[2].trim_start_matches('-');
        let tree = grow(&env, name, "sealed");
        sh(
            &env,
            &tree,
            &format!("echo {name} >config.py; git commit -q -a -m change"),
        );
        let before = state(&env, &env.repo());
        landed(&env, &[name]);
        assert_eq!(state(&env, &env.repo()), before);
        assert_eq!(env.git(&["show", "main:config.py"]).trim(), name);
        nothing_left(&env);
    }
}

#[test]
fn m12_a_linked_worktree_that_holds_the_target_moves_with_it() {
    let env = repository();
    env.git(&["switch", "-q", "-c", "dev"]);
    let other = env.root().join("other place");
    env.git(&["worktree", "add", "-q", other.to_str().unwrap(), "main"]);
    let tree = grow(&env, "t", "sealed");
    sh(
        &env,
        &tree,
        "echo 2 >config.py; echo 2 >new; git add -A; git commit -q -m change",
    );
    sh(&env, &other, "echo mine >untracked");
    let before = state(&env, &env.repo());
    landed(&env, &["t"]);
    assert_eq!(state(&env, &env.repo()), before);
    assert_eq!(fs::read_to_string(other.join("new")).unwrap(), "2\n");
    assert_eq!(
        git_in(&env, &other, &["status", "--porcelain"]),
        "?? untracked\n"
    );
    let last = git_in(&env, &other, &["reflog", "-1", "--format=%gs"]);
    assert_eq!(last, "weald: land 1\n");
    assert_eq!(
        git_in(&env, &other, &["rev-parse", "ORIG_HEAD"]).trim(),
        rev(&env, "dev")
    );
    nothing_left(&env);
    // Its folder is gone: nobody knows what is in it.
    let tree = grow(&env, "u", "sealed");
    sh(&env, &tree, "echo 3 >config.py; git commit -q -a -m change");
    let tip = rev(&env, "main");
    fs::rename(&other, env.root().join("moved")).unwrap();
    let (_, ended) = land(&env, &["u"]);
    assert_eq!(
        ended[0]["reason"]["code"], "target_checkout_gone",
        "{ended:#?}"
    );
    assert_eq!(rev(&env, "main"), tip);
}

#[test]
fn m9_nothing_lands_while_something_goes_on_in_the_checkout() {
    let begin = [
        ("git merge -q side || true", "git merge --abort"),
        ("git rebase -q side || true", "git rebase --abort"),
        ("git cherry-pick side || true", "git cherry-pick --abort"),
        ("git revert --no-edit HEAD~1 || true", "git revert --abort"),
        ("git bisect start; git bisect bad", "git bisect reset"),
    ];
    let env = repository();
    sh(
        &env,
        &env.repo(),
        "echo 1 >f; git add f; git commit -q -m 1; echo 2 >f; git commit -q -a -m 2
        git switch -q -c side HEAD~1; echo side >f; git commit -q -a -m side; git switch -q main",
    );
    let tree = grow(&env, "t", "sealed");
    sh(&env, &tree, "echo 2 >config.py; git commit -q -a -m change");
    for (begin, end) in begin {
        sh(&env, &env.repo(), &format!("({begin}) >/dev/null 2>&1"));
        let before = state(&env, &env.repo());
        let (code, ended) = land(&env, &["t"]);
        assert_eq!(code, 1, "{begin}: {ended:#?}");
        assert_eq!(ended[0]["reason"]["code"], "target_in_operation", "{begin}");
        assert_eq!(state(&env, &env.repo()), before, "{begin}");
        sh(&env, &env.repo(), &format!("({end}) >/dev/null 2>&1"));
    }
    let locked = env.repo().join(".git/index.lock");
    fs::write(&locked, "").unwrap();
    env.ok(&["config", "set", "landing.lock_wait", "100ms"]);
    let (code, ended) = land(&env, &["t"]);
    assert_eq!(
        ended[0]["reason"]["code"], "target_busy",
        "{code}: {ended:#?}"
    );
    assert!(locked.exists());
    fs::remove_file(locked).unwrap();
    landed(&env, &["t"]);
    assert!(try_git(&env, &env.repo(), &["diff", "--quiet", "HEAD"]).0);
}
