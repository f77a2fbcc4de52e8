//! Copied and restored repositories: a copy touches nothing of its original's, and what was restored comes back when a
//! person says so.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use weald_testkit::{Answer, TestEnv, skipped};

use crate::rebuild::world;
use crate::trees_create::{KINDS, git_in, weald_in};
use crate::trees_remove::{commit, grow, repository};
use crate::trees_trash::manifest;

/// Commands that would change something, each of which has something to change in [`world`].
const CHANGES: [&[&str]; 23] = [
    &["rm", "dirty", "--discard", "--force"],
    &["rm", "ahead", "--discard", "--force"],
    &["trash", "purge", "--older-than", "0s", "--apply"],
    &[
        "trash",
        "purge",
        "--older-than",
        "0s",
        "--apply",
        "--discard",
    ],
    &["trash", "restore", "gone"],
    &["clean", "--apply", "--min-age", "0s"],
    &["sweep"],
    &["undo"],
    &["new", "fresh"],
    &["ensure", "ahead"],
    &["run", "ahead", "--", "touch", "written"],
    &["land", "ahead"],
    &["sync", "ahead"],
    &["keep", "ahead"],
    &["lock", "ahead", "--reason", "mine"],
    &["snapshot", "create", "dirty"],
    &["setup", "dirty"],
    &["task", "add", "more"],
    &["vault", "maintain"],
    &["pool", "fill"],
    &["doctor", "--fix"],
    &["doctor", "--rebuild", "--fix"],
    &["usage", "--free", "1G", "--apply"],
];

/// `cp -a`.
fn copy(env: &TestEnv, from: &Path, to: &Path) {
    let mut cp = env.command("cp");
    let done = cp.arg("-a").args([from, to]).status().unwrap();
    assert!(done.success());
}

/// Everything that is the original's: its trees and trash, its records, and what the user's state folder says of it.
#[derive(Debug, PartialEq)]
struct Originals {
    files: Vec<(PathBuf, (u32, String))>,
    records: Value,
    state: Vec<PathBuf>,
}

fn originals(env: &TestEnv) -> Originals {
    let files = manifest(&env.root().join("app.weald"));
    let mut files: Vec<_> = files.into_iter().collect();
    files.retain(|(path, _)| !path.ends_with(".git/index"));
    Originals {
        files,
        records: crate::rebuild::told(env),
        state: manifest(&env.home().join(".local/state/weald"))
            .into_keys()
            .collect(),
    }
}

#[track_caller]
fn assert_untouched(env: &TestEnv, before: &Originals) {
    let after = originals(env);
    for (was, is) in before.files.iter().zip(&after.files) {
        assert_eq!(was, is);
    }
    assert_eq!(before.files.len(), after.files.len());
    assert_eq!(before.records, after.records);
    let is_lost = |path: &&PathBuf| !after.state.contains(path);
    let lost: Vec<_> = before.state.iter().filter(is_lost).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

fn error_code(answer: &Answer) -> String {
    let answer = answer.json();
    let findings = answer["findings"].as_array().cloned().unwrap_or_default();
    let mut codes = findings.iter().map(|finding| &finding["code"]);
    match codes.find(|code| *code == "repository_copy") {
        Some(code) => code.as_str().unwrap().to_owned(),
        None => answer["error"]["code"].as_str().unwrap_or("").to_owned(),
    }
}

#[track_caller]
fn assert_copy(env: &TestEnv, directory: &Path, args: &[&str]) {
    let answer = weald_in(env, directory, &[&["--json"], args].concat());
    assert!([1, 125].contains(&answer.code), "{args:?}: {answer:#?}");
    assert!(!answer.stdout.contains("registration_unknown"), "{args:?}");
    assert_eq!(
        error_code(&answer),
        "repository_copy",
        "{args:?}: {answer:#?}"
    );
}

#[track_caller]
fn ok_in(env: &TestEnv, directory: &Path, args: &[&str]) -> Value {
    let answer = weald_in(env, directory, &[&["--json"], args].concat());
    assert_eq!(answer.code, 0, "{args:?}: {answer:#?}");
    answer.json()
}

/// Where a worktree lies in the trash.
fn trashed(env: &TestEnv, name: &str) -> PathBuf {
    let trash = env.ok(&["trash", "list"])["trash"].clone();
    let mut trash = trash.as_array().unwrap().iter();
    let found = trash.find(|entry| entry["name"] == name).unwrap();
    PathBuf::from(found["path"].as_str().unwrap())
}

/// As a person, in another directory.
#[track_caller]
fn adopt(env: &TestEnv, directory: &Path, paths: &[&Path]) -> Value {
    let mut args = vec![
        "-C",
        directory.to_str().unwrap(),
        "--json",
        "doctor",
        "--adopt",
    ];
    args.extend(paths.iter().map(|path| path.to_str().unwrap()));
    let answer = env.weald_alone(&args);
    assert_eq!(answer.code, 0, "{answer:#?}");
    answer.json()
}

fn names(listed: &Value) -> Vec<&str> {
    let trees = listed["trees"].as_array().unwrap().iter();
    trees.map(|tree| tree["name"].as_str().unwrap()).collect()
}

#[test]
fn x19_a_copy_of_a_repository_touches_nothing_of_the_originals() {
    for kind in KINDS {
        let env = repository();
        world(&env, kind);
        let twin = env.root().join("twin");
        copy(&env, &env.repo(), &twin);
        let before = originals(&env);
        for args in CHANGES {
            assert_copy(&env, &twin, args);
        }
        assert_untouched(&env, &before);
        for args in [
            &["list"][..],
            &["status", "--all"],
            &["task", "list"],
            &["trash", "list"],
        ] {
            let answer = weald_in(&env, &twin, args);
            assert_eq!(answer.code, 0, "{args:?}: {answer:#?}");
            assert!(
                answer.stderr.contains("is a copy of"),
                "{args:?}: {answer:#?}"
            );
        }
        let shown = weald_in(&env, &twin, &["status", "ahead"]);
        assert!(shown.stderr.contains("is a copy of"), "{shown:#?}");
        assert_untouched(&env, &before);
        // The original is what it was.
        env.ok(&["rm", "dirty", "--discard", "--force"]);
        env.ok(&["trash", "purge", "--older-than", "0s", "--apply"]);
        assert_eq!(env.weald(&["run", "ahead", "--", "true"]).code, 0);
    }
}

#[test]
fn x19_adopt_gives_a_copy_its_own_id_and_takes_over_what_was_copied_along() {
    for kind in KINDS {
        let env = repository();
        let (yard, twin) = (env.root().join("yard"), env.root().join("yard/app"));
        world(&env, kind);
        // One tree inside the repository, the others beside it; all but one of these are copied, too.
        let inside = env.repo().join(".trees/inner");
        let template = ["--set", "tree.path={repo}/.trees/{name}"];
        env.ok(&[&["new", "inner", "--kind", kind], &template[..]].concat());
        commit(&env, &inside, "inner.txt", "inner\n");
        fs::create_dir(&yard).unwrap();
        copy(&env, &env.repo(), &twin);
        copy(&env, &env.root().join("app.weald"), &yard.join("app.weald"));
        fs::remove_dir_all(yard.join("app.weald/ahead")).unwrap();
        let before = originals(&env);

        let mut agent = env.weald_command(&["--json", "doctor", "--adopt"]);
        let agent = agent.current_dir(&twin).env("CLAUDECODE", "1");
        let refused = Answer::of(agent.output().unwrap());
        assert_eq!(refused.error_code(), "agent_session", "{refused:#?}");
        assert_copy(&env, &twin, &["task", "add", "still a copy"]);

        let adopted = adopt(&env, &twin, &[])["adopted"].clone();
        let forgotten = env.root().join("app.weald/ahead");
        assert_eq!(
            adopted["forgotten"],
            serde_json::json!([forgotten]),
            "{adopted:#}"
        );
        assert_untouched(&env, &before);

        let listed = ok_in(&env, &twin, &["list"]);
        assert_eq!(names(&listed), ["dirty", "inner"], "{listed:#}");
        for tree in listed["trees"].as_array().unwrap() {
            assert!(Path::new(tree["path"].as_str().unwrap()).starts_with(&yard));
            assert_eq!(tree["exists"], true, "{tree:#}");
        }
        let draft = fs::read_to_string(yard.join("app.weald/dirty/draft")).unwrap();
        assert_eq!(draft, "mine");
        let run = weald_in(&env, &twin, &["run", "inner", "--", "git", "log", "-1"]);
        assert_eq!(run.code, 0, "{run:#?}");
        ok_in(&env, &twin, &["land", "inner"]);
        assert_eq!(git_in(&env, &twin, &["show", "main:inner.txt"]), "inner");
        ok_in(&env, &twin, &["trash", "restore", "gone"]);
        assert!(yard.join("app.weald/gone/draft").exists());
        ok_in(&env, &twin, &["rm", "gone", "--discard"]);
        ok_in(&env, &twin, &["rm", "dirty", "--discard", "--force"]);
        ok_in(
            &env,
            &twin,
            &[
                "trash",
                "purge",
                "--older-than",
                "0s",
                "--apply",
                "--discard",
            ],
        );
        let fixed = weald_in(&env, &twin, &["doctor", "--fix"]);
        assert_eq!(fixed.code, 0, "{fixed:#?}");
        assert_untouched(&env, &before);
        env.ok(&["land", "inner"]);
    }
}

#[test]
fn x19_a_copy_stays_one_when_its_original_is_moved() {
    let env = repository();
    grow(&env, "a", "sealed");
    let (twin, moved) = (env.root().join("twin"), env.root().join("moved"));
    copy(&env, &env.repo(), &twin);
    fs::rename(env.repo(), &moved).unwrap();
    ok_in(&env, &moved, &["task", "add", "the original works on"]);
    assert_copy(&env, &twin, &["rm", "a"]);
    // A link to the repository, and the way through it, lead to the same directory.
    let link = env.root().join("link");
    symlink(&moved, &link).unwrap();
    ok_in(&env, &link, &["task", "add", "the same"]);
    assert_copy(&env, &twin, &["rm", "a"]);
    // With the original gone the copy is all there is.
    fs::remove_dir_all(&moved).unwrap();
    ok_in(&env, &twin, &["task", "add", "it was moved"]);
}

#[test]
fn x19_of_two_copies_of_a_repository_that_is_gone_one_is_the_original() {
    let env = repository();
    grow(&env, "a", "sealed");
    let twins = ["one", "two", "three"].map(|name| env.root().join(name));
    twins.iter().for_each(|twin| copy(&env, &env.repo(), twin));
    fs::remove_dir_all(env.repo()).unwrap();
    let started = twins.each_ref().map(|twin| {
        let mut command = env.weald_command(&["task", "add", "mine"]);
        command.current_dir(twin).spawn().unwrap()
    });
    let ended = started.map(|mut child| child.wait().unwrap().code().unwrap());
    let works = |code: &&i32| **code == 0;
    assert_eq!(ended.iter().filter(works).count(), 1, "{ended:?}");
}

#[test]
fn x19_a_register_that_is_gone_broken_or_closed_makes_no_copy_an_original() {
    let env = repository();
    grow(&env, "a", "sealed");
    let (twin, moved) = (env.root().join("twin"), env.root().join("moved"));
    copy(&env, &env.repo(), &twin);
    let register = env.home().join(".local/state/weald/repositories");
    let private = |root: &Path| root.join(".git/weald/private/repository");
    // Gone: the copy's own file says where it came from.
    fs::remove_dir_all(&register).unwrap();
    assert_copy(&env, &twin, &["rm", "a"]);
    env.ok(&["task", "add", "registered again"]);
    // No home that could hold one.
    let mut homeless = env.weald_command(&["--json", "rm", "a"]);
    homeless.env("HOME", "/proc/nowhere").current_dir(&twin);
    let told = Answer::of(homeless.output().unwrap());
    assert_eq!(told.error_code(), "repository_copy", "{told:#?}");
    // Broken entries: whoever is where it was goes on, whoever is elsewhere is refused until a person decides.
    let id = fs::read_to_string(private(&env.repo())).unwrap();
    let entry = register.join(id.lines().next().unwrap());
    fs::write(&entry, "nonsense").unwrap();
    env.ok(&["task", "add", "at home"]);
    fs::rename(env.repo(), &moved).unwrap();
    assert_copy(&env, &moved, &["rm", "a"]);
    let adopted = adopt(&env, &moved, &[])["adopted"].clone();
    assert_eq!(
        adopted["forgotten"].as_array().unwrap().len(),
        0,
        "{adopted:#}"
    );
    // An id that can't be read.
    fs::write(private(&moved), "nonsense").unwrap();
    assert_copy(&env, &moved, &["rm", "a"]);
}

#[test]
fn x19_copies_of_repositories_from_before_ids_are_seen_by_their_log() {
    let env = repository();
    grow(&env, "a", "sealed");
    let twin = env.root().join("twin");
    fs::remove_file(env.private().join("repository")).unwrap();
    copy(&env, &env.repo(), &twin);
    // In either order.
    assert_copy(&env, &twin, &["rm", "a"]);
    env.ok(&["task", "add", "first use by this version"]);
    assert_copy(&env, &twin, &["rm", "a"]);
    assert!(!twin.join(".git/weald/private/repository").exists());
    adopt(&env, &twin, &[]);
    assert_eq!(names(&ok_in(&env, &twin, &["list"])), [""; 0]);
    assert_eq!(names(&env.ok(&["list"])), ["a"]);
}

#[test]
fn x19_adopting_a_copy_ends_no_agent_and_no_landing_of_the_original() {
    let env = repository();
    let slow = env.agent(&["write started text", "hang"]);
    let mut work = vec!["work", "slow work", "--detach", "--"];
    work.extend(slow.iter().map(String::as_str));
    assert_eq!(env.weald(&work).code, 0);
    let started = env.root().join("app.weald/slow-work/started");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !started.exists() {
        assert!(Instant::now() < deadline, "the agent did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    let ahead = grow(&env, "ahead", "sealed");
    commit(&env, &ahead, "ahead.txt", "ahead\n");
    env.ok(&["queue", "pause"]);
    env.ok(&["land", "ahead", "--no-wait"]);
    let twin = env.root().join("twin");
    copy(&env, &env.repo(), &twin);
    assert_copy(&env, &twin, &["agent", "stop", "a1"]);
    adopt(&env, &twin, &[]);
    // The task is free in the copy, and whoever takes it there meets nobody.
    let queue = ok_in(&env, &twin, &["queue", "status"])["queue"].clone();
    assert_eq!(queue, serde_json::json!([]));
    ok_in(&env, &twin, &["queue", "resume"]);
    let again = weald_in(
        &env,
        &twin,
        &["work", "1", "--", "sh", "-c", "echo mine > mine"],
    );
    assert_eq!(again.code, 0, "{again:#?}");
    let agent = env.ok(&["agent", "list"])["agents"][0].clone();
    assert_eq!(agent["status"], "running", "{agent:#}");
    assert_eq!(env.ok(&["queue", "status"])["queue"][0]["status"], "queued");
    env.ok(&["agent", "stop", "a1"]);
}

#[test]
fn x20_a_restored_backup_is_read_only_until_a_person_adopts_it() {
    for kind in KINDS {
        let env = repository();
        world(&env, kind);
        let (trees, backup) = (env.root().join("app.weald"), env.root().join("backup"));
        fs::create_dir(&backup).unwrap();
        copy(&env, &env.repo(), &backup.join("app"));
        copy(&env, &trees, &backup.join("app.weald"));
        fs::remove_dir_all(env.repo()).unwrap();
        fs::remove_dir_all(&trees).unwrap();
        copy(&env, &backup.join("app"), &env.repo());
        copy(&env, &backup.join("app.weald"), &trees);
        let before = manifest(&trees);

        env.refused(&["rm", "dirty", "--discard", "--force"], 1, "tree_replaced");
        let refused = env.refused(&["land", "ahead"], 1, "tree_replaced");
        let path = trees.join("ahead");
        let hint = refused["error"]["hint"].as_str().unwrap();
        assert!(
            hint.contains(&format!("weald doctor --adopt {}", path.display())),
            "{hint}"
        );
        let found = env.weald(&["doctor", "--fix", "--json"]);
        for path in [&path, &trashed(&env, "gone")] {
            let adopt = format!("weald doctor --adopt {}", path.display());
            assert!(found.stdout.contains(&adopt), "{adopt}: {found:#?}");
        }
        assert!(
            !found.stdout.contains("no longer in the trash"),
            "{found:#?}"
        );
        let rebuilt = env.weald(&["doctor", "--rebuild", "--json"]).json();
        assert_eq!(
            rebuilt["rebuild"]["recovered"],
            serde_json::json!([]),
            "{rebuilt:#}"
        );
        assert_eq!(manifest(&trees), before);

        let mut agent = env.weald_command(&["--json", "doctor", "--adopt"]);
        let refused = Answer::of(agent.arg(&path).env("CLAUDECODE", "1").output().unwrap());
        assert_eq!(refused.error_code(), "agent_session", "{refused:#?}");

        env.refused(&["trash", "restore", "gone"], 1, "tree_replaced");
        let gone = trashed(&env, "gone");
        adopt(&env, &env.repo(), &[&path, &trees.join("dirty"), &gone]);
        let run = env.weald(&["run", "ahead", "--", "git", "log", "-1"]);
        assert_eq!(run.code, 0, "{run:#?}");
        assert_eq!(env.ok(&["status", "ahead"])["tree"]["ahead"], 1);
        env.ok(&["land", "ahead"]);
        env.ok(&["trash", "restore", "gone"]);
        assert_eq!(
            fs::read_to_string(trees.join("gone/draft")).unwrap(),
            "in the trash"
        );
        env.ok(&["rm", "dirty", "--discard", "--force"]);
        assert_eq!(env.weald(&["doctor", "--fix"]).code, 0);
    }
}

#[test]
fn x20_what_only_claims_to_be_a_worktree_is_not_adopted() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let kept = env.root().join("kept");
        fs::rename(&path, &kept).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("mine"), "not the tree").unwrap();
        let args = ["doctor", "--adopt", path.to_str().unwrap()];
        let refused = env.weald_alone(&[&["--json"], &args[..]].concat());
        assert_eq!(refused.error_code(), "tree_replaced", "{refused:#?}");
        // One at another place is taken for a tree only if that one's directory is missing.
        let twin = env.root().join("far/a");
        fs::create_dir(env.root().join("far")).unwrap();
        copy(&env, &kept, &twin);
        let args = ["--json", "doctor", "--adopt", twin.to_str().unwrap()];
        assert_eq!(env.weald_alone(&args).code, 4);
        fs::remove_dir_all(&path).unwrap();
        fs::remove_dir_all(&kept).unwrap();
        adopt(&env, &env.repo(), &[&twin]);
        assert_eq!(
            env.ok(&["list"])["trees"][0]["path"],
            twin.to_str().unwrap()
        );
        assert_eq!(env.weald(&["run", "a", "--", "git", "status"]).code, 0);
    }
}

/// A disk of its own, mounted again as another device.
const REMOUNT: &str = r#"
set -e
truncate -s 40M "$ROOT/disk"; truncate -s 1M "$ROOT/other"; mkfs.ext4 -q -N 16000 "$ROOT/disk" || exit 77
first=$(losetup -f --show "$ROOT/disk") || exit 77
trap 'cd /; umount "$ROOT/m" 2>/dev/null; for loop in $first $second $held; do losetup -d $loop; done 2>/dev/null || :' EXIT
mkdir "$ROOT/m"; mount $first "$ROOT/m" || exit 77
cd "$ROOT/m"; mkdir home; export HOME="$ROOT/m/home" WEALD_POOL_SIZE=0 WEALD_DOCTOR_MIN_FREE=1M GIT_CONFIG_NOSYSTEM=1
git init -q -b main app; cd app; git config user.name T; git config user.email t@e
echo text > file; git add .; git commit -qm one
for kind in sealed linked; do "$WEALD" new $kind --kind $kind; echo mine > ../app.weald/$kind/mine; done
"$WEALD" new gone; "$WEALD" rm gone
before=$(stat -c %d .)
cd /; umount "$ROOT/m"; losetup -d $first; first=; held=$(losetup -f --show "$ROOT/other")
second=$(losetup -f --show "$ROOT/disk"); mount $second "$ROOT/m"; cd "$ROOT/m/app"
[ $(stat -c %d .) != $before ] || { echo "the device is the same"; exit 1; }
for kind in sealed linked; do
  "$WEALD" run $kind -- cat mine; (cd ../app.weald/$kind && "$WEALD" status --json | grep -q '"exists":true')
done
"$WEALD" doctor
"$WEALD" doctor --rebuild
"$WEALD" trash restore gone
"$WEALD" rm sealed --discard; "$WEALD" rm linked --discard; "$WEALD" trash purge --older-than 0s --apply --discard
"#;

#[test]
fn x20_a_new_device_number_changes_nothing() {
    let root = tempfile::TempDir::with_prefix("weald-remount-").unwrap();
    let mut unshare = Command::new("unshare");
    let output = unshare
        .args(["--mount", "bash", "-c", REMOUNT])
        .env("ROOT", root.path())
        .env("WEALD", env!("CARGO_BIN_EXE_weald"))
        .output()
        .unwrap();
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (told(&output.stdout), told(&output.stderr));
    let unable = ["unshare:", "losetup:"]
        .iter()
        .any(|word| err.contains(word));
    if output.status.code() == Some(77) || (unable && !rustix::process::geteuid().is_root()) {
        return skipped("no loop device can be mounted here");
    }
    assert!(output.status.success(), "{out}\n{err}");
}
