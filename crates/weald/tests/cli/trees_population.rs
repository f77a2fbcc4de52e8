//! However a tree is populated (checkout, donor, spare), it is what `git worktree add` makes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use weald_testkit::TestEnv;

use crate::env;
use crate::trees_create::{KINDS, git_in, path_of};

/// The ways, as an answer names them.
pub const CHECKOUT: &str = "checkout";
pub const CLONE: &str = "clone";
pub const SPARE: &str = "spare";

/// A pool, and no refill that nobody waits for.
const POOL: [&str; 4] = ["--set", "pool.size=1", "--set", "pool.background=false"];

/// What a path holds: mode, and bytes or a link's target.
type Files = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Everything below a directory but itself and its `.git`, and but what is inside of these.
fn files(directory: &Path, closed: &[&str]) -> Files {
    let mut found = Files::new();
    let mut open = vec![directory.to_owned()];
    while let Some(path) = open.pop() {
        let name = path.strip_prefix(directory).unwrap().to_owned();
        let entry = path.symlink_metadata().unwrap();
        let content = if entry.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            target.into_os_string().into_encoded_bytes()
        } else if entry.is_dir() {
            if !closed.iter().any(|closed| name == Path::new(closed)) {
                let entries = fs::read_dir(&path).unwrap();
                open.extend(entries.map(|entry| entry.unwrap().path()));
            }
            Vec::new()
        } else {
            fs::read(&path).unwrap()
        };
        found.insert(name, (entry.mode(), content));
    }
    // How it is tied to its repository differs, and a worktree's top folder is its owner's alone.
    found.remove(Path::new(".git"));
    found.remove(Path::new(""));
    found.retain(|path, _| !path.starts_with(".git"));
    found
}

/// Fails with the names that differ, not with megabytes of content.
#[track_caller]
fn assert_files(ours: &Files, theirs: &Files, what: &str) {
    let names = ours.keys().chain(theirs.keys());
    let differ: Vec<_> = names
        .filter(|name| ours.get(*name) != theirs.get(*name))
        .map(|name| {
            let shown = |files: &Files| {
                files.get(name).map(|(mode, content)| {
                    let start = &content[..content.len().min(40)];
                    format!("{mode:o} {:?}", start.escape_ascii().to_string())
                })
            };
            (name, shown(ours), shown(theirs))
        })
        .collect();
    assert!(differ.is_empty(), "{what}: ours, git's: {differ:#?}");
}

/// What git says in a directory, to the byte.
#[track_caller]
fn said(env: &TestEnv, directory: &Path, args: &[&str], what: &str) -> Vec<u8> {
    let mut command = env.command("git");
    let output = command.args(args).current_dir(directory).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: git {args:?}: {stderr}");
    output.stdout
}

/// A tree is what git made beside it, and its index knows its files.
#[track_caller]
pub fn assert_same(env: &TestEnv, tree: &Path, reference: &Path, closed: &[&str], what: &str) {
    // First of all, because a status would refresh the index: its stat data holds.
    let stale = said(env, tree, &["diff-files", "--name-only"], what);
    assert_eq!(String::from_utf8_lossy(&stale), "", "{what}: stale entries");
    assert_files(&files(tree, closed), &files(reference, closed), what);
    for args in [&["ls-files", "-s", "-z"][..], &["ls-files", "-v", "-z"]] {
        let (ours, theirs) = (
            said(env, tree, args, what),
            said(env, reference, args, what),
        );
        assert_eq!(
            ours.escape_ascii().to_string(),
            theirs.escape_ascii().to_string(),
            "{what}: {args:?}"
        );
    }
    for extra in [&[][..], &["--untracked-files=all", "--ignored"]] {
        let args = [&["status", "--porcelain"], extra].concat();
        let status = said(env, tree, &args, what);
        assert_eq!(String::from_utf8_lossy(&status), "", "{what}");
    }
    let head = git_in(env, reference, &["rev-parse", "HEAD"]);
    assert_eq!(git_in(env, tree, &["rev-parse", "HEAD"]), head, "{what}");
}

/// Files are older than the index by a second and more, so that no status has to read them again.
#[track_caller]
fn assert_old_files(env: &TestEnv, tree: &Path, what: &str) {
    let index = git_in(env, tree, &["rev-parse", "--git-path", "index"]);
    let written = tree.join(index).metadata().unwrap().mtime();
    let listed = said(env, tree, &["ls-files", "-z"], what);
    for name in listed.split(|byte| *byte == 0) {
        let path = tree.join(OsStr::from_bytes(name));
        let Ok(entry) = path.symlink_metadata() else {
            continue;
        };
        if !entry.is_dir() {
            let age = written - entry.mtime();
            assert!(age >= 1, "{what}: {} is {age}s old", path.display());
        }
    }
}

/// What plain git makes of main's tip.
pub fn by_git(env: &TestEnv, name: &str) -> PathBuf {
    let path = env.root().join(name);
    let target = path.to_str().unwrap();
    let add = ["worktree", "add", "-q", "--detach", target, "main"];
    git_in(env, &env.repo(), &add);
    path
}

/// Makes a tree; answers where it is and how it was populated.
#[track_caller]
pub fn populated(env: &TestEnv, name: &str, args: &[&str]) -> (PathBuf, String) {
    let made = env.ok(&[&["new", name][..], args, &POOL].concat());
    let population = made["population"].as_str().unwrap_or("unsaid").to_owned();
    (path_of(&made), population)
}

/// Puts spares (and the donor) there.
#[track_caller]
pub fn fill(env: &TestEnv, count: usize) {
    let count_text = count.to_string();
    let filled = env.ok(&[&["pool", "fill", "--count", &count_text][..], &POOL].concat());
    assert_eq!(filled["pool"]["donor"], true, "{filled}");
    assert_eq!(filled["pool"]["ready"], count, "{filled}");
}

/// Trees of main's tip in every way and of both kinds, each compared with git's.
#[track_caller]
fn check(env: &TestEnv, closed: &[&str]) {
    let reference = by_git(env, "by-git");
    for kind in KINDS {
        for way in [CHECKOUT, CLONE, SPARE] {
            let name = format!("{kind}-{way}");
            match way {
                CHECKOUT => {}
                CLONE => fill(env, 0),
                _ => fill(env, 1),
            }
            let pool = ["--no-pool"];
            let pool = &pool[..usize::from(way == CHECKOUT)];
            let args = [&["--kind", kind], pool].concat();
            let (tree, population) = populated(env, &name, &args);
            assert_eq!(population, way, "{name}");
            // Before a status can write the index again.
            assert_old_files(env, &tree, &name);
            assert_same(env, &tree, &reference, closed, &name);
        }
    }
}

/// Writes a file of the main checkout, with its folders.
pub fn write(env: &TestEnv, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let path = env.repo().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Commits everything in main.
pub fn commit_all(env: &TestEnv) {
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "more"]);
}

#[test]
fn k16_links_executables_and_odd_names_are_as_git_makes_them() {
    let env = env();
    write(&env, "bin/tool", "#!/bin/sh\n");
    let tool = env.repo().join("bin/tool");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    write(&env, "plain", "plain\n");
    write(&env, "empty", "");
    for (target, name) in [
        ("plain", "link"),
        ("nowhere/at/all", "dangling"),
        ("/etc/hostname", "absolute"),
        ("bin", "to-folder"),
        (".", "to-itself"),
        ("../../outside", "up"),
    ] {
        symlink(target, env.repo().join(name)).unwrap();
    }
    let long = "n".repeat(255);
    let deep = vec!["folder-with-a-long-name"; 40].join("/");
    for name in [
        "new\nline",
        "quote\"'`$x",
        "-dash",
        "--",
        " spaces ",
        "tab\t",
        "Größe",
        &long,
        &deep,
        "ReadMe",
        "README",
        "readme",
        "back\\slash",
        "*",
        "[a]",
        "#x",
        "!x",
        ":x",
    ] {
        write(&env, name, name);
    }
    write(&env, OsStr::from_bytes(b"no\xff\xfeutf8/\x01"), "bytes");
    // Directories without a file are not git's.
    fs::create_dir_all(env.repo().join("hollow/more")).unwrap();
    commit_all(&env);
    check(&env, &[]);
}

#[test]
fn k16_line_ends_encodings_and_ident_are_as_git_makes_them() {
    let env = env();
    write(
        &env,
        ".gitattributes",
        "* text=auto\n*.bat eol=crlf\n*.sh eol=lf\n*.u16 text working-tree-encoding=UTF-16LE\n*.id ident\n*.raw -text\n",
    );
    write(&env, "deep/.gitattributes", "*.txt eol=crlf\n*.sh -text\n");
    write(&env, "deep/er/.gitattributes", "a.txt eol=lf\n");
    for name in [
        "a.bat",
        "a.sh",
        "a.txt",
        "deep/a.txt",
        "deep/a.sh",
        "deep/er/a.txt",
        "deep/er/b.txt",
    ] {
        write(&env, name, "one\ntwo\n");
    }
    write(&env, "crlf.raw", "one\r\ntwo\r\n");
    write(&env, "a.u16", b"o\0n\0e\0\n\0");
    write(&env, "a.id", "$Id$\n");
    write(&env, "binary", b"\0\r\n\0");
    commit_all(&env);
    let lines = fs::read(env.repo().join("deep/a.txt")).unwrap();
    check(&env, &[]);
    let reference = fs::read(env.root().join("by-git/deep/a.txt")).unwrap();
    assert_ne!(lines, reference, "the attributes change nothing");
}

#[test]
fn k16_a_filter_of_the_users_is_applied() {
    for (scope, required) in [
        ("--global", "false"),
        ("--global", "true"),
        ("--local", "true"),
    ] {
        let env = env();
        for (key, value) in [
            ("filter.loud.clean", "tr A-Z a-z"),
            ("filter.loud.smudge", "tr a-z A-Z"),
            ("filter.loud.required", required),
        ] {
            env.git(&["config", scope, key, value]);
        }
        write(&env, ".gitattributes", "*.loud filter=loud\n");
        write(&env, "a.loud", "SHOUT\n");
        write(&env, "b/c.loud", "SHOUT, TOO\n");
        write(&env, "quiet", "quiet\n");
        commit_all(&env);
        assert_eq!(env.git(&["show", "HEAD:a.loud"]), "shout\n");
        check(&env, &[]);
        let made = env.root().join("by-git/a.loud");
        assert_eq!(fs::read_to_string(made).unwrap(), "SHOUT\n");
    }
}

#[test]
fn k16_a_file_of_fifty_megabytes_is_whole() {
    let env = env();
    let mut content = vec![0u8; 50 << 20];
    let mut state = 7u32;
    for chunk in content.chunks_mut(4096) {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        chunk[..4].copy_from_slice(&state.to_le_bytes());
    }
    write(&env, "large", content);
    write(&env, "small", "small\n");
    commit_all(&env);
    check(&env, &[]);
}

#[test]
fn k16_a_submodule_is_at_the_same_commit() {
    let env = env();
    let library = env.root().join("library");
    git_in(&env, env.root(), &["init", "-q", "-b", "main", "library"]);
    fs::write(library.join("lib.txt"), "lib\n").unwrap();
    git_in(&env, &library, &["add", "-A"]);
    git_in(&env, &library, &["commit", "-q", "-m", "lib"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "-q", "add"];
    env.git(&[&add[..], &["../library", "sub"]].concat());
    write(&env, "file", "file\n");
    commit_all(&env);
    check(&env, &["sub"]);
    let commit = |tree: &Path| {
        let said = git_in(&env, tree, &["submodule", "status"]);
        said.trim_start_matches([' ', '-', '+'])[..40].to_owned()
    };
    let reference = commit(&env.root().join("by-git"));
    for name in ["sealed-checkout", "sealed-spare", "linked-clone"] {
        let tree = env.root().join("app.weald").join(name);
        assert_eq!(commit(&tree), reference, "{name}");
    }
}

#[test]
fn k16_a_sparse_cone_is_inherited() {
    let env = env();
    for name in ["top", "in/a", "in/deep/b", "out/c", "out/deep/d"] {
        write(&env, name, name);
    }
    commit_all(&env);
    env.git(&["sparse-checkout", "set", "in"]);
    assert!(!env.repo().join("out").exists());
    check(&env, &[]);
    assert!(!env.root().join("by-git/out").exists());
}

#[test]
fn k16_flags_of_mains_index_do_not_come_along() {
    let env = env();
    for name in ["hidden", "assumed", "plain"] {
        write(&env, name, "committed\n");
    }
    commit_all(&env);
    env.git(&["update-index", "--skip-worktree", "hidden"]);
    env.git(&["update-index", "--assume-unchanged", "assumed"]);
    for name in ["hidden", "assumed"] {
        write(&env, name, "only in main\n");
    }
    check(&env, &[]);
}

#[test]
fn k16_other_indexes_and_sha256_are_the_same() {
    for (key, value) in [
        ("index.version", "4"),
        ("core.splitIndex", "true"),
        ("core.untrackedCache", "true"),
        ("feature.manyFiles", "true"),
        ("core.autocrlf", "true"),
        ("core.eol", "crlf"),
        ("core.symlinks", "false"),
        ("core.fileMode", "false"),
    ] {
        let env = env();
        write(&env, "a/file", "text\n");
        write(&env, "b", "text\n");
        symlink("b", env.repo().join("link")).unwrap();
        commit_all(&env);
        env.git(&["config", key, value]);
        check(&env, &[]);
    }
    let env = TestEnv::without_repository(env!("CARGO_BIN_EXE_weald"));
    let init = ["init", "-q", "-b", "main", "--object-format=sha256", "app"];
    git_in(&env, env.root(), &init);
    write(&env, "a/file", "text\n");
    commit_all(&env);
    check(&env, &[]);
}

#[test]
fn k16_what_decides_about_files_may_change_after_the_pool_was_filled() {
    type Change = fn(&TestEnv);
    let changes: [(&str, Change); 5] = [
        ("the user's line ends", |env| {
            env.git(&["config", "--global", "core.autocrlf", "true"]);
        }),
        ("the repository's line ends", |env| {
            env.git(&["config", "core.autocrlf", "true"]);
        }),
        ("the user's attributes", |env| {
            let folder = env.home().join(".config/git");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("attributes"), "* text eol=crlf\n").unwrap();
        }),
        ("the repository's own attributes", |env| {
            let folder = env.repo().join(".git/info");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("attributes"), "* text eol=crlf\n").unwrap();
        }),
        ("what a filter does", |env| {
            let smudge = "tr a-z X";
            env.git(&["config", "--global", "filter.loud.smudge", smudge]);
            env.git(&["config", "--global", "filter.loud.clean", "echo shout"]);
        }),
    ];
    for (what, change) in changes {
        for kind in KINDS {
            for count in [0, 1] {
                let env = env();
                for (key, program) in [("clean", "tr A-Z a-z"), ("smudge", "tr a-z A-Z")] {
                    let key = format!("filter.loud.{key}");
                    env.git(&["config", "--global", &key, program]);
                }
                write(&env, ".gitattributes", "*.loud filter=loud\n");
                write(&env, "a.loud", "SHOUT\n");
                write(&env, "lines", "one\ntwo\n");
                commit_all(&env);
                fill(&env, count);
                change(&env);
                let reference = by_git(&env, "by-git");
                let (tree, population) = populated(&env, "a", &["--kind", kind]);
                let what = format!("{what}, {kind}, {count} spares, {population}");
                assert_same(&env, &tree, &reference, &[], &what);
            }
        }
    }
}

/// A filter of the user's may run what the repository holds. What it leaves in the repository inside is not followed.
#[test]
fn x6_links_that_a_filter_plants_lead_the_host_nowhere() {
    let places = [
        "packed-refs",
        "HEAD",
        "config",
        "objects/info/alternates",
        "objects/info",
        "refs",
        "index",
    ];
    for place in places {
        for pool in ["0", "1"] {
            let env = crate::trees_remove::repository();
            let victim = env.root().join("victim");
            fs::create_dir(&victim).unwrap();
            fs::write(victim.join("notes"), "mine\n").unwrap();
            let target = match place {
                "objects/info" | "refs" => victim.display().to_string(),
                _ => victim.join("notes").display().to_string(),
            };
            let smudge = format!("sh -c 'rm -rf .git/{place}; ln -s {target} .git/{place}; cat'");
            let config = format!("[filter \"f\"]\n\tsmudge = {smudge}\n\tclean = cat\n");
            fs::write(env.home().join(".gitconfig"), config).unwrap();
            fs::write(env.repo().join(".gitattributes"), "*.f filter=f\n").unwrap();
            fs::write(env.repo().join("a.f"), "text\n").unwrap();
            git_in(&env, &env.repo(), &["add", "."]);
            git_in(&env, &env.repo(), &["commit", "-q", "-m", "filtered"]);
            git_in(&env, &env.repo(), &["tag", "t"]);
            let what = format!("{place} with a pool of {pool}");
            for kind in ["sealed", "linked"] {
                let mut command = env.weald_command(&["new", kind, "--kind", kind]);
                command.env("WEALD_POOL_SIZE", pool);
                // Made or refused: what it leads to stays.
                command.output().unwrap();
                let mut fill = env.weald_command(&["pool", "fill"]);
                fill.env("WEALD_POOL_SIZE", pool).output().unwrap();
                let entries: Vec<_> = fs::read_dir(&victim).unwrap().collect();
                assert_eq!(entries.len(), 1, "{what}: {entries:?}");
                let notes = fs::read_to_string(victim.join("notes")).unwrap();
                assert_eq!(notes, "mine\n", "{what}");
            }
        }
    }
}
