//! Machines that offer less than weald wants: an old git, a read-only file system, no free inode, a git that hangs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use weald_testkit::{Answer, TestEnv, full_scale, skipped};

use crate::trees_create::{commit_main, env_with_identity, git_in};
use crate::trees_remove::grow;

/// Puts a git first in the search path that does `script`, with the real one as `$GIT`.
fn with_git(env: &TestEnv, script: &str) -> String {
    let folder = env.root().join("bin");
    fs::create_dir_all(&folder).unwrap();
    let real = env.command("sh").args(["-c", "command -v git"]).output();
    let real = String::from_utf8(real.unwrap().stdout).unwrap();
    let text = format!(
        "#!/bin/sh\nGIT={}\n{script}\nexec $GIT \"$@\"\n",
        real.trim()
    );
    // Renamed into place, so that each is another file.
    fs::write(folder.join("new"), text).unwrap();
    fs::set_permissions(folder.join("new"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(folder.join("new"), folder.join("git")).unwrap();
    format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display())
}

fn run(env: &TestEnv, path: &str, args: &[&str]) -> Answer {
    let mut command = env.weald_command(args);
    Answer::of(command.env("PATH", path).output().unwrap())
}

#[test]
fn x32_a_git_that_is_too_old_is_refused_by_name_and_asked_once() {
    let env = env_with_identity();
    grow(&env, "a", "sealed");
    let path = with_git(
        &env,
        "[ \"$1\" != --version ] || { echo git version 2.20.1; exit; }",
    );
    for args in [
        &["list"][..],
        &["status", "a"],
        &["new", "b"],
        &["land", "a"],
        &["rm", "a"],
        &["diff", "a"],
        &["clean"],
    ] {
        let refused = run(&env, &path, &[&["--json"], args].concat());
        assert_eq!(refused.error_code(), "git_old", "{args:?}: {refused:#?}");
        let message = refused.json()["error"]["message"].clone();
        let message = message.as_str().unwrap();
        assert!(
            message.contains("2.20.1") && message.contains("2.40"),
            "{message}"
        );
    }
    let found = run(&env, &path, &["doctor", "--json"]);
    assert!(found.stdout.contains("git_old"), "{found:#?}");
    // A new enough one is asked for its version once, however many commands there are.
    let log = env.root().join("asked");
    let script = format!("[ \"$1\" != --version ] || echo asked >> {}", log.display());
    let path = with_git(&env, &script);
    for _ in 0..3 {
        assert_eq!(run(&env, &path, &["list"]).code, 0);
    }
    assert_eq!(fs::read_to_string(&log).unwrap(), "asked\n");
}

#[test]
fn x32_a_count_that_git_does_not_give_is_no_number() {
    let env = env_with_identity();
    let path = grow(&env, "a", "sealed");
    fs::write(path.join("new"), "text").unwrap();
    git_in(&env, &path, &["add", "."]);
    git_in(&env, &path, &["commit", "-q", "-m", "new"]);
    let script = "for word in \"$@\"; do [ \"$word\" != --count ] || { echo -1; exit; }; done";
    let search = with_git(&env, script);
    for args in [&["status", "a"][..], &["list"], &["rm", "a"], &["clean"]] {
        let answer = run(&env, &search, args);
        let told = [answer.stdout, answer.stderr].concat();
        assert!(!told.contains("1844674407370955"), "{args:?}: {told}");
    }
    assert!(path.join("new").exists(), "nothing proves that it can go");
}

#[test]
fn x32_a_tree_that_git_hangs_in_is_waited_for_once() {
    let env = env_with_identity();
    commit_main(&env, "file", "text");
    let path = grow(&env, "a", "sealed");
    git_in(&env, &path, &["config", "filter.hang.clean", "sleep 1000"]);
    fs::write(path.join(".gitattributes"), "* filter=hang\n").unwrap();
    fs::write(path.join("file"), "else").unwrap();
    let status = |limit: &str| {
        let begun = Instant::now();
        let limit = format!("tree.look_limit={limit}");
        let answer = env.weald(&["status", "a", "--json", "--set", &limit]);
        (begun.elapsed(), answer)
    };
    let (first, told) = status("3s");
    assert!(first >= Duration::from_secs(3), "{first:?}: {told:#?}");
    assert!(told.stdout.contains("took longer than 3 s"), "{told:#?}");
    let (second, told) = status("3s");
    assert!(second < first, "{second:?}: {told:#?}");
    assert!(told.stdout.contains("took longer than 2 s"), "{told:#?}");
    // Whoever gives it more time is obeyed.
    let (_, told) = status("4s");
    assert!(told.stdout.contains("took longer than 4 s"), "{told:#?}");
}

/// Puts a folder with a million long paths, made of fifty objects, into the index as one sparse entry.
const BOMB: &str = r#"
set -e
git sparse-checkout set --cone --sparse-index
blob=$(echo x | git hash-object -w --stdin)
tree=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '100644 blob %s\tf%s\n' $blob $i; done | git mktree)
for level in 1 2 3 4 5; do
  tree=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '040000 tree %s\td%s\n' $tree $i; done | git mktree)
done
name=$(printf '%0250d' 0)
for level in $(seq 40); do tree=$(printf '040000 tree %s\t%s\n' $tree $name | git mktree); done
echo $tree
"#;

/// Runs a command; prints how much memory the largest process took, in KiB, and what it said.
const MEASURED: &str = "
import resource, subprocess, sys
said = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
print(said.stdout, said.stderr)
";

#[test]
fn x32_an_index_that_stands_for_a_million_files_costs_a_look_little_memory() {
    let env = env_with_identity();
    fs::create_dir(env.repo().join("d")).unwrap();
    commit_main(&env, "d/file", "text");
    let path = grow(&env, "a", "sealed");
    let mut shell = env.command("sh");
    let made = shell
        .args(["-c", BOMB])
        .current_dir(&path)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:#?}");
    let id = |text: &str| hex::decode(text.trim()).unwrap();
    let old = id(&git_in(&env, &path, &["rev-parse", "HEAD:d"]));
    let bomb = id(&String::from_utf8(made.stdout).unwrap());
    let mut index = fs::read(path.join(".git/index")).unwrap();
    let at = index.windows(20).position(|part| part == old).unwrap();
    index[at..at + 20].copy_from_slice(&bomb);
    // git takes zeros for a checksum that nobody made.
    let end = index.len() - 20;
    index[end..].fill(0);
    fs::write(path.join(".git/index"), index).unwrap();
    let mut python = env.command("python3");
    let asked = python.args(["-c", MEASURED, env!("CARGO_BIN_EXE_weald")]);
    let begun = Instant::now();
    let told = asked.args(["status", "a", "--json"]).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30), "{told}");
    assert!(told.to_lowercase().contains("out of memory"), "{told}");
    let most: u64 = told.lines().next().unwrap().parse().unwrap();
    assert!(most < 3 << 20, "{most} KiB: {told}");
}

/// A repository, mounted so that it can only be read.
const READ_ONLY: &str = r#"
set -e
cd "$ROOT"; mkdir home; export HOME="$ROOT/home" WEALD_POOL_SIZE=0 GIT_CONFIG_NOSYSTEM=1
git init -q -b main app; cd app; git config user.name T; git config user.email t@e
echo text > file; git add .; git commit -qm one
"$WEALD" new a; echo mine > ../app.weald/a/file; "$WEALD" new l --kind linked; "$WEALD" new gone; "$WEALD" rm gone
"$WEALD" status --all > /dev/null; "$WEALD" task add before
cd /; mount --bind "$ROOT" "$ROOT" && mount -o remount,ro,bind "$ROOT" || exit 77
! touch "$ROOT/app/x" 2>/dev/null || exit 77
cd "$ROOT/app"
for words in "" list "status --all" "status a" "status l" "show a" "path a" "diff a" "diff l" "task list" "task show 1" "task ready" events "trash list" "queue status" "session list" "agent list" "vault list" "snapshot list a" "pool status" ports "config show" usage "usage a" "usage --free 1K" clean "clean --min-age 0" "clean --orphans" "clean --usage" "clean --trash --older-than 0" "clean --vault" verify; do
  "$WEALD" $words > "$OUT/out" 2>&1 || { echo "weald $words: $(cat "$OUT/out")"; exit 1; }
done
"$WEALD" task list | grep -q before
"$WEALD" list | grep -q '^a '
"$WEALD" diff a | grep -q '^+mine'
"$WEALD" clean --min-age 0 > "$OUT/out"; grep -q 'uncommitted' "$OUT/out" || { cat "$OUT/out"; exit 1; }
"$WEALD" usage | grep -q '^a .*KiB'
for words in "new b" "rm a" "task add x" "land a" "trash purge --older-than 0s --apply" "keep a" sweep "clean --apply" "clean --fetch" "usage --free 1K --apply"; do
  ! "$WEALD" --json $words > "$OUT/out" 2>&1 || { echo "weald $words worked"; exit 1; }
  grep -q '"read_only"' "$OUT/out" || { echo "weald $words: $(cat "$OUT/out")"; exit 1; }
done
"$WEALD" doctor --json > "$OUT/out" || :
grep -q '"read_only"' "$OUT/out" || { cat "$OUT/out"; exit 1; }
"#;

/// Runs a script in a mount namespace of its own, as root or in a user namespace.
fn in_a_namespace(script: &str) {
    let root = tempfile::TempDir::with_prefix("weald-poor-").unwrap();
    let beside = tempfile::TempDir::with_prefix("weald-poor-").unwrap();
    let mut unshare = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    let output = unshare
        .args(["--mount", "bash", "-c", script])
        .env("ROOT", root.path())
        .env("OUT", beside.path())
        .env("STEPS", if full_scale() { "0 1 2 4 8" } else { "0 8" })
        .env("WEALD", env!("CARGO_BIN_EXE_weald"))
        .output()
        .unwrap();
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (told(&output.stdout), told(&output.stderr));
    if output.status.code() == Some(77) || err.contains("unshare:") {
        return skipped("nothing can be mounted here");
    }
    assert!(output.status.success(), "{out}\n{err}");
}

#[test]
fn x32_reading_commands_work_on_a_read_only_file_system() {
    in_a_namespace(READ_ONLY);
}

/// One directory at two paths.
const BOUND: &str = r#"
set -e
cd "$ROOT"; mkdir home other; export HOME="$ROOT/home" WEALD_POOL_SIZE=0 GIT_CONFIG_NOSYSTEM=1
git init -q -b main app; cd app; git config user.name T; git config user.email t@e
echo text > file; git add .; git commit -qm one
"$WEALD" new a; "$WEALD" new b
mount --bind "$ROOT/app" "$ROOT/other" || exit 77
cd "$ROOT/other"; "$WEALD" task add there; "$WEALD" keep a; "$WEALD" list | grep -q "^a "
cd "$ROOT/app"; "$WEALD" task add here; "$WEALD" rm b
"$WEALD" task list | grep -q there
"#;

#[test]
fn x19_a_bind_mount_of_a_repository_is_no_copy() {
    in_a_namespace(BOUND);
}

/// A small disk with few inodes; `inodes N` leaves so many.
const NO_INODES: &str = r#"
set -e
mount -t tmpfs -o size=64m,nr_inodes=2000 tmpfs "$ROOT" || exit 77
cd "$ROOT"; mkdir home fill; export HOME="$ROOT/home" WEALD_POOL_SIZE=0 GIT_CONFIG_NOSYSTEM=1
git init -q -b main app; cd app; git config user.name T; git config user.email t@e
for i in 1 2 3 4; do echo $i > f$i; done; git add .; git commit -qm one
left() { df --output=iavail "$ROOT" | tail -1; }
inodes() { rm -f "$ROOT"/fill/*; local n=$(( $(left) - $1 )); (cd "$ROOT/fill" && seq $n | xargs touch); }
for kind in sealed linked; do
  for room in $STEPS; do
    t=$kind-$room; "$WEALD" new $t --kind $kind > /dev/null; echo mine > ../app.weald/$t/mine
    (cd ../app.weald/$t && git add mine && git commit -qm work && echo more > more)
    inodes $room
    "$WEALD" rm $t --discard > "$OUT/out" 2>&1 || { echo "$kind with $room inodes: $(cat "$OUT/out")"; exit 1; }
    [ ! -e ../app.weald/$t ] || { echo "$t is left"; exit 1; }
    "$WEALD" list > "$OUT/out" 2>&1 || { echo "list with $room inodes: $(cat "$OUT/out")"; exit 1; }
    rm -f "$ROOT"/fill/*
    "$WEALD" trash restore $t > "$OUT/out" 2>&1 || { echo "restore: $(cat "$OUT/out")"; exit 1; }
    [ "$(cat ../app.weald/$t/more)" = more ]
    "$WEALD" rm $t --discard > /dev/null
    inodes $room
    "$WEALD" trash purge --older-than 0s --apply > "$OUT/out" 2>&1 || { echo "purge with $room inodes: $(cat "$OUT/out")"; exit 1; }
    rm -f "$ROOT"/fill/*
  done
done
"$WEALD" doctor --fix --json > "$OUT/out" || :
! grep -q '"error"' "$OUT/out" || { cat "$OUT/out"; exit 1; }
"#;

#[test]
fn x32_removal_works_without_a_free_inode() {
    in_a_namespace(NO_INODES);
}
