//! The vault: fed from main, kept up, never short of an object.

#![expect(clippy::disallowed_methods, reason = "tests start real processes")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use weald_git::{Vault, list_refs, transfer};

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
