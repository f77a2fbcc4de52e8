//! The vault: fed from main, kept up, never short of an object.

#![expect(clippy::disallowed_methods, reason = "tests start real processes")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use weald_git::{Git, Vault, list_refs, receive_checked, transfer};

fn git(directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=t", "-c", "user.email=t@e"])
        .args(args)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {args:?}: {told}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

fn packs(vault: &Vault) -> usize {
    vault.status().packs
}

#[test]
fn x4_many_small_packs_become_one_and_no_object_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let main = directory.path().join("main");
    let other = directory.path().join("other");
    for path in [&main, &other] {
        std::fs::create_dir(path).unwrap();
        git(path, &["init", "-q", "-b", "main"]);
        git(path, &["commit", "-q", "--allow-empty", "-m", "first"]);
    }
    let common_dir = main.join(".git");
    let vault = Vault::of(&common_dir);
    let refs = list_refs(&common_dir, &["refs/heads/"]).unwrap();
    vault.require(&refs, &[&refs[0].commit]).unwrap();
    // As imports do: a pack a commit.
    let mut tips = Vec::new();
    for number in 0..60 {
        std::fs::write(other.join("file"), number.to_string()).unwrap();
        git(&other, &["add", "file"]);
        git(&other, &["commit", "-q", "-m", &number.to_string()]);
        let tip = git(&other, &["rev-parse", "HEAD"]);
        let have = tips.last().cloned();
        let haves: Vec<&str> = have.iter().map(String::as_str).collect();
        drop(transfer(&other.join(".git"), vault.path(), &[&tip], &haves).unwrap());
        tips.push(tip);
    }
    assert!(packs(&vault) > 50, "{}", packs(&vault));
    let now = SystemTime::now();
    let ten = Duration::from_secs(600);
    // Together first, then redundant, then, after the grace, dropped.
    vault.maintain(now, ten).unwrap();
    assert!(packs(&vault) > 50, "nothing is dropped at once");
    let second = vault.maintain(now, ten).unwrap();
    assert_eq!(second.dropped, 0, "{second:?}");
    let third = vault.maintain(now + ten, ten).unwrap();
    assert!(third.dropped >= 50, "{third:?}");
    assert!(packs(&vault) < 10, "{}", packs(&vault));
    let last = tips.last().unwrap();
    git(
        vault.path(),
        &["rev-list", "--objects", "--quiet", last, &refs[0].commit],
    );
}

fn loose(vault: &Vault) -> usize {
    let told = git(vault.path(), &["count-objects"]);
    told.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn x4_many_loose_objects_become_a_pack_and_go_after_the_grace() {
    let directory = tempfile::tempdir().unwrap();
    let main = directory.path().join("main");
    std::fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q", "-b", "main"]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let common_dir = main.join(".git");
    let vault = Vault::of(&common_dir);
    let refs = list_refs(&common_dir, &["refs/heads/"]).unwrap();
    vault.require(&refs, &[&refs[0].commit]).unwrap();
    let texts = directory.path().join("texts");
    std::fs::create_dir(&texts).unwrap();
    let mut names = Vec::new();
    for number in 0..4500 {
        let name = texts.join(number.to_string());
        std::fs::write(&name, number.to_string()).unwrap();
        names.push(name.display().to_string());
    }
    let mut made = Vec::new();
    for some in names.chunks(1500) {
        let mut args = vec!["hash-object", "-w", "--"];
        args.extend(some.iter().map(String::as_str));
        made.extend(git(vault.path(), &args).lines().map(str::to_owned));
    }
    assert!(vault.wants_upkeep(), "{} loose", loose(&vault));
    let now = SystemTime::now();
    let ten = Duration::from_secs(600);
    let before = (loose(&vault), packs(&vault));
    vault.maintain_if_wanted(now).unwrap();
    assert_eq!((loose(&vault), packs(&vault)), (before.0, before.1 + 1));
    assert!(!vault.wants_upkeep(), "not again within the grace");
    // Nothing is packed twice, and nothing goes before the grace is over.
    vault.maintain(now, ten).unwrap();
    assert_eq!((loose(&vault), packs(&vault)), (before.0, before.1 + 1));
    // The pack is a moment younger than `now`.
    vault
        .maintain(now + ten + Duration::from_secs(60), ten)
        .unwrap();
    assert_eq!((loose(&vault), packs(&vault)), (0, before.1 + 1));
    for id in made.iter().step_by(500) {
        assert!(vault.has_object(id).unwrap(), "{id} is lost");
    }
    git(vault.path(), &["fsck", "--no-dangling"]);
}

#[test]
fn a_small_pack_that_is_refused_leaves_nothing_for_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let [main, other] = ["main", "other"].map(|name| directory.path().join(name));
    for path in [&main, &other] {
        std::fs::create_dir(path).unwrap();
        git(path, &["init", "-q", "-b", "main"]);
    }
    // fsck refuses it at the very end, when every object was seen.
    std::fs::write(
        other.join("evil"),
        "[submodule \"-x\"]\n\turl = -u./x\n\tpath = a\n",
    )
    .unwrap();
    let blob = git(&other, &["hash-object", "-w", "evil"]);
    git(
        &other,
        &[
            "update-index",
            "--add",
            "--cacheinfo",
            "100644",
            &blob,
            ".gitmodules",
        ],
    );
    git(&other, &["commit", "-q", "-m", "evil"]);
    let tip = git(&other, &["rev-parse", "HEAD"]);
    let packed = git(
        &other,
        &["rev-list", "--objects", "--no-object-names", "HEAD"],
    );
    let list = directory.path().join("list");
    std::fs::write(&list, packed + "\n").unwrap();
    let pack = directory.path().join("p");
    let made = Command::new("git")
        .current_dir(&other)
        .args(["pack-objects", "-q", "--stdout"])
        .stdin(std::fs::File::open(&list).unwrap())
        .stdout(std::fs::File::create(&pack).unwrap())
        .status()
        .unwrap();
    assert!(made.success());
    let vault = main.join(".git");
    let file = std::fs::File::open(&pack).unwrap();
    receive_checked(&vault, file, 1 << 20).unwrap_err();
    for id in [tip.as_str(), blob.as_str()] {
        let asked = Git::new(&vault, "cat-file").args(["-e", id]).output();
        assert!(!asked.unwrap().status.success(), "{id} came in");
    }
    let left: Vec<_> = std::fs::read_dir(vault.join("objects"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name != "info" && name != "pack")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_small_pack_comes_in_as_loose_objects() {
    let directory = tempfile::tempdir().unwrap();
    let [main, other] = ["main", "other"].map(|name| directory.path().join(name));
    for path in [&main, &other] {
        std::fs::create_dir(path).unwrap();
        git(path, &["init", "-q", "-b", "main"]);
    }
    std::fs::write(other.join("file"), "text").unwrap();
    git(&other, &["add", "file"]);
    git(&other, &["commit", "-q", "-m", "one"]);
    git(&other, &["repack", "-adq"]);
    let packs = other.join(".git/objects/pack");
    let is_pack = |path: &std::path::PathBuf| path.extension().is_some_and(|kind| kind == "pack");
    let mut files = std::fs::read_dir(packs)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let pack = std::fs::File::open(files.find(is_pack).unwrap()).unwrap();
    let tip = git(&other, &["rev-parse", "HEAD"]);
    receive_checked(&main.join(".git"), pack, 1 << 20).unwrap();
    git(&main, &["rev-list", "--objects", &tip]);
    assert!(git(&main, &["count-objects", "-v"]).contains("packs: 0"));
}
