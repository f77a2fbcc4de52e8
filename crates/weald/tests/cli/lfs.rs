//! Git LFS, with the real git-lfs: worktrees have real files, and what they make of them reaches main whole.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use weald_testkit::{TestEnv, skipped};

use crate::trees_levels::without_namespaces;
use crate::trees_remove::{KINDS, git_in, grow, repository};

/// What `old.bin` holds on main.
pub const OLD: usize = 20_000;

/// Bytes that look like nobody else's.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// A repository in which git-lfs keeps `*.bin`, and `old.bin` is committed. `None`, said aloud, where git-lfs is missing.
pub fn with_lfs() -> Option<TestEnv> {
    let found = Command::new("git")
        .args(["lfs", "version"])
        .output()
        .unwrap();
    if String::from_utf8_lossy(&found.stderr).contains("is not a git command") {
        skipped("git-lfs is not installed");
        return None;
    }
    assert!(found.status.success(), "{found:#?}");
    let env = repository();
    env.git(&["lfs", "install", "--local"]);
    env.git(&["lfs", "track", "*.bin"]);
    fs::write(env.repo().join("old.bin"), bytes(1, OLD)).unwrap();
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "large"]);
    Some(env)
}

/// Commits a large file in a worktree, as its agent would.
pub fn commit_large(env: &TestEnv, tree: &Path, file: &str, content: &[u8]) {
    fs::write(tree.join(file), content).unwrap();
    git_in(env, tree, &["add", "--", file]);
    git_in(env, tree, &["commit", "-q", "-m", file]);
}

/// The objects that git-lfs keeps in a repository.
pub fn objects(git_dir: &Path) -> Vec<PathBuf> {
    let below = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    };
    let folders = below(git_dir.join("lfs/objects")).flat_map(below);
    let mut found: Vec<_> = folders.flat_map(below).collect();
    found.sort();
    found
}

#[track_caller]
fn assert_holds(path: &Path, content: &[u8]) {
    let found = fs::read(path).unwrap();
    let start = String::from_utf8_lossy(&found[..found.len().min(60)]).into_owned();
    assert!(found == content, "{}: {start:?}", path.display());
}

#[test]
fn y1_a_landed_lfs_file_survives_the_purge_of_its_worktree() {
    let Some(env) = with_lfs() else { return };
    for (kind, checked_out) in [("sealed", false), ("sealed", true), ("linked", true)] {
        let seed = u64::from(checked_out) + 2 * kind.len() as u64 + u64::from(kind == "linked");
        let branch = if checked_out { "main" } else { "other" };
        env.git(&["checkout", "-q", "-B", "other", "main"]);
        env.git(&["checkout", "-q", branch]);
        grow(&env, "a", kind);
        let script = "cp $HOME/new new.bin && cp $HOME/changed old.bin && git add -A && git commit -q -m art";
        let (new, changed) = (bytes(seed + 100, 50_000), bytes(seed + 200, 30_000));
        fs::write(env.home().join("new"), &new).unwrap();
        fs::write(env.home().join("changed"), &changed).unwrap();
        let ran = env.weald(&["run", "a", "--", "sh", "-c", script]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        env.ok(&["land", "a"]);
        env.ok(&["trash", "purge", "--older-than", "1ms", "--apply"]);
        assert_eq!(env.git(&["status", "--porcelain"]), "", "{kind}");
        env.git(&["checkout", "-q", "main"]);
        assert_holds(&env.repo().join("new.bin"), &new);
        assert_holds(&env.repo().join("old.bin"), &changed);
        assert_eq!(env.git(&["status", "--porcelain"]), "", "{kind}");
        env.git(&["lfs", "fsck"]);
        // What a landing makes is what git makes.
        env.git(&["rm", "-q", "-r", "--cached", "."]);
        env.git(&["reset", "-q", "--hard"]);
        assert_holds(&env.repo().join("new.bin"), &new);
    }
}

#[test]
fn y1_work_lands_the_lfs_files_of_two_agents() {
    let Some(env) = with_lfs() else { return };
    // The gate sees the files themselves.
    let test = "for f in *.bin; do test $(wc -c < $f) -ge 20000 || exit 1; done";
    env.ok(&["config", "set", "gate.command", test]);
    for number in [1, 2_u64] {
        fs::write(env.home().join("art"), bytes(number, 50_000)).unwrap();
        let script = format!("cp $HOME/art art{number}.bin");
        let done = env.weald(&["work", &format!("art {number}"), "--", "sh", "-c", &script]);
        assert_eq!(done.code, 0, "{done:#?}");
    }
    for number in [1, 2_u64] {
        let file = env.repo().join(format!("art{number}.bin"));
        assert_holds(&file, &bytes(number, 50_000));
    }
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    env.ok(&["revert", "1"]);
    assert!(!env.repo().join("art1.bin").exists() && env.repo().join("art2.bin").exists());
    assert_eq!(env.git(&["status", "--porcelain"]), "");
}

#[test]
fn y1_a_new_worktree_has_real_files_without_network() {
    let Some(env) = with_lfs() else { return };
    // Nothing may depend on a remote, and a real one would be tried for a minute.
    env.git(&["remote", "add", "origin", "https://example.invalid/app.git"]);
    for kind in KINDS {
        let tree = grow(&env, kind, kind);
        assert_holds(&tree.join("old.bin"), &bytes(1, OLD));
        let status = env.ok(&["status", kind]);
        assert_eq!(status["tree"]["dirty"], false, "{status:#}");
        // An agent without network gets it back, too.
        let again =
            "rm old.bin && git checkout -q old.bin && git status --porcelain && wc -c < old.bin";
        let ran = env.weald(&[
            "run",
            kind,
            "--set",
            "sandbox.network=off",
            "--",
            "sh",
            "-c",
            again,
        ]);
        assert_eq!((ran.code, ran.stdout.trim()), (0, "20000"), "{ran:#?}");
    }
    env.ok(&["config", "set", "tree.lfs", "skip"]);
    let tree = grow(&env, "small", "sealed");
    let text = fs::read_to_string(tree.join("old.bin")).unwrap();
    assert!(text.starts_with("version https://git-lfs"), "{text}");
    assert_eq!(env.ok(&["status", "small"])["tree"]["dirty"], false);
}

#[test]
fn y1_a_file_that_main_lacks_stays_a_pointer() {
    let Some(env) = with_lfs() else { return };
    env.git(&["remote", "add", "origin", "https://example.invalid/app.git"]);
    fs::write(env.repo().join("here.bin"), bytes(7, 5000)).unwrap();
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "here"]);
    let missing = objects(&env.repo().join(".git"));
    let missing = missing
        .iter()
        .find(|path| path.metadata().unwrap().len() == OLD as u64);
    fs::remove_file(missing.unwrap()).unwrap();
    // Nor has the checkout what it could be made from again.
    fs::remove_file(env.repo().join("old.bin")).unwrap();
    let mut pointers = env.command("git");
    pointers.args(["checkout", "-q", "old.bin"]);
    pointers.env("GIT_LFS_SKIP_SMUDGE", "1").status().unwrap();
    for kind in KINDS {
        let began = Instant::now();
        let tree = grow(&env, kind, kind);
        let text = fs::read_to_string(tree.join("old.bin")).unwrap();
        assert!(text.starts_with("version https://git-lfs"), "{text}");
        assert_holds(&tree.join("here.bin"), &bytes(7, 5000));
        assert_eq!(env.ok(&["status", kind])["tree"]["dirty"], false);
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "nobody was asked"
        );
    }
    // What was always missing does not stop other work.
    commit_large(
        &env,
        &env.root().join("app.weald/sealed"),
        "new.bin",
        &bytes(8, 700),
    );
    git_in(
        &env,
        &env.root().join("app.weald/sealed"),
        &["mv", "old.bin", "moved.bin"],
    );
    git_in(
        &env,
        &env.root().join("app.weald/sealed"),
        &["commit", "-q", "-m", "move"],
    );
    env.git(&["checkout", "-q", "-b", "other"]);
    env.ok(&["land", "sealed"]);
}

#[test]
fn y1_changed_lfs_files_show_in_status_diff_conflicts_and_snapshots() {
    let Some(env) = with_lfs() else { return };
    for kind in KINDS {
        let tree = grow(&env, kind, kind);
        fs::write(tree.join("old.bin"), bytes(kind.len() as u64, 3000)).unwrap();
        fs::write(tree.join("new.bin"), bytes(50, 3000)).unwrap();
        let status = env.ok(&["status", kind]);
        assert_eq!(status["tree"]["unstaged"], 1, "{status:#}");
        assert_eq!(status["tree"]["untracked"], 1, "{status:#}");
        let patch = env.weald(&["diff", kind]);
        assert!(patch.stdout.contains("+size 3000"), "{patch:#?}");
        env.ok(&["snapshot", "create", kind]);
    }
    let same = KINDS.map(|kind| env.root().join("app.weald").join(kind));
    assert_eq!(
        objects(&same[0].join(".git")).len(),
        1,
        "a look writes nothing"
    );
    assert_eq!(
        objects(&env.repo().join(".git")).len(),
        1,
        "a look writes nothing"
    );
    fs::write(same[0].join("old.bin"), bytes(60, 3000)).unwrap();
    let radar = env.weald(&["conflicts", "--json"]);
    assert!(radar.stdout.contains("old.bin"), "{radar:#?}");
    // A snapshot holds the bytes themselves.
    fs::remove_file(same[0].join("new.bin")).unwrap();
    env.ok(&["snapshot", "restore", "sealed", "1"]);
    assert_holds(&same[0].join("new.bin"), &bytes(50, 3000));
    assert_holds(&same[0].join("old.bin"), &bytes(6, 3000));
}

#[test]
fn y1_spares_copies_and_a_sync_have_real_files() {
    let Some(env) = with_lfs() else { return };
    let weald = |args: &[&str]| {
        let mut command = env.weald_command(args);
        let command = command
            .env("WEALD_POOL_SIZE", "1")
            .env("WEALD_POOL_BACKGROUND", "false");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:#?}");
        String::from_utf8(output.stdout).unwrap()
    };
    weald(&["pool", "fill"]);
    let check = |name: &str, way: &str| {
        let made: serde_json::Value =
            serde_json::from_str(&weald(&["new", name, "--json"])).unwrap();
        assert_eq!(made["population"], way, "{made:#}");
        let tree = env.root().join("app.weald").join(name);
        assert_eq!(git_in(&env, &tree, &["status", "--porcelain"]), "");
        // The object is there, too: git can write the file again.
        fs::remove_file(tree.join("old.bin")).unwrap();
        git_in(&env, &tree, &["checkout", "-q", "old.bin"]);
        tree
    };
    let spare = check("spare", "spare");
    assert_holds(&spare.join("old.bin"), &bytes(1, OLD));
    check("clone", "clone");
    // A spare was made while main lacked the file; by now it has it.
    let object = objects(&env.repo().join(".git")).remove(0);
    weald(&["pool", "drain"]);
    fs::rename(&object, env.root().join("object")).unwrap();
    fs::remove_file(env.repo().join("old.bin")).unwrap();
    weald(&["pool", "fill"]);
    fs::rename(env.root().join("object"), &object).unwrap();
    let filled = check("filled", "spare");
    assert_holds(&filled.join("old.bin"), &bytes(1, OLD));
    env.git(&["checkout", "-q", "old.bin"]);
    // Main goes on: a spare of before is brought forward, and a worktree by `sync`.
    weald(&["pool", "fill"]);
    fs::write(env.repo().join("old.bin"), bytes(2, OLD)).unwrap();
    env.git(&["commit", "-q", "-a", "-m", "next"]);
    let later = check("later", "spare");
    assert_holds(&later.join("old.bin"), &bytes(2, OLD));
    env.ok(&["sync", "spare"]);
    assert_holds(&spare.join("old.bin"), &bytes(2, OLD));
    for tree in [spare, later] {
        for object in objects(&tree.join(".git")) {
            assert_eq!(
                object.metadata().unwrap().nlink(),
                1,
                "{}",
                object.display()
            );
        }
    }
}

#[test]
fn y1_work_that_never_landed_keeps_its_lfs_files_through_a_purge() {
    let Some(env) = with_lfs() else { return };
    let tree = grow(&env, "a", "sealed");
    commit_large(&env, &tree, "new.bin", &bytes(3, 40_000));
    // Only the index knows this one, and a file of other content lies over it.
    fs::write(tree.join("staged.bin"), bytes(4, 6000)).unwrap();
    git_in(&env, &tree, &["add", "staged.bin"]);
    fs::write(tree.join("staged.bin"), bytes(5, 100)).unwrap();
    env.ok(&["rm", "a", "--discard"]);
    env.ok(&["trash", "restore", "a"]);
    assert_holds(&tree.join("new.bin"), &bytes(3, 40_000));
    assert_eq!(env.ok(&["status", "a"])["tree"]["staged"], 1);
    env.ok(&["rm", "a", "--discard"]);
    env.ok(&["trash", "purge", "--older-than", "1ms", "--apply"]);
    let sizes = objects(&env.repo().join(".git"));
    let sizes: Vec<_> = sizes
        .iter()
        .map(|path| path.metadata().unwrap().len())
        .collect();
    assert!(
        sizes.contains(&40_000) && sizes.contains(&6000),
        "{sizes:?}"
    );
    env.ok(&["vault", "restore", "a"]);
    env.git(&["checkout", "-q", "wt/a"]);
    assert_holds(&env.repo().join("new.bin"), &bytes(3, 40_000));
    // Without a branch `git lfs prune` takes it, and that is said.
    env.git(&["checkout", "-q", "main"]);
    env.git(&["branch", "-q", "-D", "wt/a"]);
    let mut stored = objects(&env.repo().join(".git")).into_iter();
    let taken = stored.find(|path| path.metadata().unwrap().len() == 40_000);
    fs::remove_file(taken.unwrap()).unwrap();
    let told = env.weald(&["vault", "restore", "a"]);
    assert_eq!(told.code, 0, "{told:#?}");
    assert!(told.stderr.contains("git lfs fetch origin"), "{told:#?}");
}

#[test]
fn y1_another_folder_of_lfs_objects_is_respected() {
    let Some(env) = with_lfs() else { return };
    let folder = env.home().join("large files");
    fs::rename(env.repo().join(".git/lfs"), &folder).unwrap();
    env.git(&["config", "lfs.storage", folder.to_str().unwrap()]);
    for kind in KINDS {
        let tree = grow(&env, kind, kind);
        assert_holds(&tree.join("old.bin"), &bytes(1, OLD));
        let file = format!("{kind}.bin");
        let script = format!(
            "head -c 5000 /dev/zero | tr '\\0' {} > {file} && git add -A && git commit -q -m x",
            &kind[..1]
        );
        // A linked worktree's objects go there directly, which its sandbox has to be told.
        let write = match kind {
            "linked" => format!("sandbox.write={}", folder.display()),
            _ => "sandbox.write=".to_owned(),
        };
        let ran = env.weald(&["run", kind, "--set", &write, "--", "sh", "-c", &script]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        env.ok(&["land", kind]);
        assert_eq!(fs::metadata(env.repo().join(&file)).unwrap().len(), 5000);
        assert_eq!(env.git(&["status", "--porcelain"]), "");
    }
    assert!(!env.repo().join(".git/lfs/objects").exists());
}

#[test]
fn y1_lfs_files_of_a_submodule_are_kept() {
    let Some(env) = with_lfs() else { return };
    let library = env.root().join("library");
    fs::create_dir(&library).unwrap();
    git_in(&env, &library, &["init", "-q", "-b", "main"]);
    git_in(&env, &library, &["lfs", "install", "--local"]);
    git_in(&env, &library, &["lfs", "track", "*.bin"]);
    git_in(&env, &library, &["add", "-A"]);
    commit_large(&env, &library, "l.bin", &bytes(11, 9000));
    let allow = [
        "-c",
        "protocol.file.allow=always",
        "-c",
        "filter.lfs.required=true",
    ];
    let filters = [
        "-c",
        "filter.lfs.process=git-lfs filter-process",
        "submodule",
        "--quiet",
        "add",
        "../library",
        "lib",
    ];
    env.git(&[&allow[..], &filters[..]].concat());
    env.git(&["commit", "-q", "-m", "submodule"]);
    git_in(
        &env,
        &env.repo().join("lib"),
        &["lfs", "install", "--local"],
    );
    env.git(&[
        "config",
        "--global",
        "filter.lfs.process",
        "git-lfs filter-process",
    ]);
    env.git(&["config", "--global", "filter.lfs.required", "true"]);
    assert_holds(&env.repo().join("lib/l.bin"), &bytes(11, 9000));
    let tree = grow(&env, "a", "sealed");
    assert_holds(&tree.join("lib/l.bin"), &bytes(11, 9000));
    let module = tree.join("lib");
    git_in(&env, &module, &["switch", "-q", "-c", "feature"]);
    commit_large(&env, &module, "l.bin", &bytes(12, 9001));
    git_in(&env, &tree, &["commit", "-q", "-a", "-m", "lib"]);
    env.ok(&["rm", "a", "--discard"]);
    env.ok(&["trash", "purge", "--older-than", "1ms", "--apply"]);
    let kept = objects(&env.repo().join(".git/modules/lib"));
    assert_eq!(kept.len(), 2, "{kept:?}");
}

#[test]
fn y1_without_namespaces_lfs_files_work_too() {
    let Some(env) = with_lfs() else { return };
    let script = r#"
"$WEALD" new a; [ "$(wc -c < ../app.weald/a/old.bin)" = 20000 ]
head -c 3000 /dev/urandom > ../app.weald/a/old.bin
"$WEALD" status a | grep -q '1 unstaged'
"$WEALD" diff a | grep -q '+size 3000'
(cd ../app.weald/a && git commit -q -a -m changed)
"$WEALD" land a
[ "$(wc -c < old.bin)" = 3000 ]; [ -z "$(git status --porcelain)" ]
"#;
    without_namespaces(&env, script);
}
