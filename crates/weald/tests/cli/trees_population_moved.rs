//! A spare whose base moved on is brought forward: it equals a fresh checkout, or is not used.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use weald_testkit::{TestEnv, full_scale};

use crate::env;
use crate::trees_create::{KINDS, tip};
use crate::trees_population::{CLONE, SPARE, assert_same, by_git, fill, populated, write};

type Change = fn(&TestEnv);

fn remove(env: &TestEnv, name: &str) {
    let path = env.repo().join(name);
    fs::remove_dir_all(&path)
        .or_else(|_| fs::remove_file(&path))
        .unwrap();
}

fn link(env: &TestEnv, target: &str, name: &str) {
    symlink(target, env.repo().join(name)).unwrap();
}

/// A commit of a submodule that nobody has.
fn submodule(env: &TestEnv, name: &str, commit: &str) {
    fs::create_dir_all(env.repo().join(name)).unwrap();
    let entry = format!("160000,{},{name}", commit.repeat(40));
    env.git(&["update-index", "--add", "--cacheinfo", &entry]);
}

/// What a commit does, and whether a spare of the one before can still be used.
const CHANGES: [(&str, bool, Change); 20] = [
    ("nothing but a commit", true, |_| {}),
    ("content", true, |env| write(env, "file", "other\n")),
    ("same length", true, |env| write(env, "file", "FILE\n")),
    ("a new folder", true, |env| {
        write(env, "new/deep/file", "new\n")
    }),
    ("a deletion", true, |env| remove(env, "folder/deep/two")),
    ("a folder's deletion", true, |env| remove(env, "folder")),
    ("a rename", true, |env| {
        env.git(&["mv", "folder", "moved"]);
    }),
    ("another case", true, |env| {
        env.git(&["mv", "file", "FILE"]);
    }),
    ("executable", true, |env| {
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(env.repo().join("file"), mode).unwrap();
    }),
    ("not executable", true, |env| {
        let mode = fs::Permissions::from_mode(0o644);
        fs::set_permissions(env.repo().join("tool"), mode).unwrap();
    }),
    ("a file becomes a folder", true, |env| {
        remove(env, "file");
        write(env, "file/inside", "inside\n");
    }),
    ("a folder becomes a file", true, |env| {
        remove(env, "folder");
        write(env, "folder", "file\n");
    }),
    ("a folder becomes a link", true, |env| {
        remove(env, "folder");
        link(env, "/etc", "folder");
    }),
    ("a link becomes a folder", true, |env| {
        remove(env, "link");
        write(env, "link/passwd", "not that one\n");
    }),
    ("a link becomes a file, a file a link", true, |env| {
        remove(env, "link");
        write(env, "link", "file\n");
        remove(env, "file");
        link(env, "nowhere", "file");
    }),
    ("a submodule comes", true, |env| submodule(env, "sub", "1")),
    ("a submodule moves", true, |env| {
        submodule(env, "there", "2")
    }),
    ("other line ends", false, |env| {
        write(env, ".gitattributes", "*.txt eol=lf\n");
    }),
    ("other line ends below", false, |env| {
        write(env, "folder/.gitattributes", "* text eol=crlf\n");
    }),
    ("no attributes any more", false, |env| {
        remove(env, ".gitattributes")
    }),
];

/// Files of every kind, with attributes that matter.
fn repository() -> TestEnv {
    let env = env();
    write(&env, ".gitattributes", "*.txt text eol=crlf\n");
    for name in ["lines.txt", "folder/one.txt", "folder/deep/two", "file"] {
        write(&env, name, "file\n");
    }
    write(&env, "tool", "tool\n");
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(env.repo().join("tool"), mode).unwrap();
    link(&env, "/etc", "link");
    submodule(&env, "there", "1");
    commit(&env);
    env
}

fn commit(env: &TestEnv) {
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "--allow-empty", "-m", "change"]);
}

#[test]
fn k16_what_a_commit_changed_is_brought_into_a_spare_and_a_copy() {
    let ways = [
        (KINDS[0], 1, SPARE),
        (KINDS[1], 1, SPARE),
        (KINDS[0], 0, CLONE),
    ];
    for (index, (what, is_usable, change)) in CHANGES.iter().enumerate() {
        // Each change one way, the ways in turn; every change every way at full size.
        let (skipped, taken) = match full_scale() {
            true => (0, ways.len()),
            false => (index % ways.len(), 1),
        };
        for (kind, count, way) in ways.into_iter().skip(skipped).take(taken) {
            let env = repository();
            fill(&env, count);
            let before = tip(&env, "main");
            change(&env);
            commit(&env);
            assert_ne!(tip(&env, "main"), before);
            let reference = by_git(&env, "by-git");
            let (tree, population) = populated(&env, "a", &["--kind", kind]);
            let what = format!("{what}, {kind} by {population}");
            assert_same(&env, &tree, &reference, &[], &what);
            assert_eq!(population == way, *is_usable, "{what}");
        }
    }
}
