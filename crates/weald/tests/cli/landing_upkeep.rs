//! Landings alone keep the vault in good order: few packs, however many landings, and many loose objects become a pack.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use weald_testkit::TestEnv;

use crate::trees_remove::{commit, git_in, grow, repository};

fn packs(vault: &Path) -> usize {
    let entries = fs::read_dir(vault.join("objects/pack")).unwrap();
    let names = entries.map(|entry| entry.unwrap().path());
    names
        .filter(|path| path.extension().is_some_and(|kind| kind == "pack"))
        .count()
}

/// Whatever refs of the vault, of main and of the tree lead to is there.
fn require_whole(env: &TestEnv, vault: &Path, tree: &Path) {
    for place in [vault, &env.repo(), tree] {
        git_in(env, place, &["rev-list", "--objects", "--all", "--quiet"]);
    }
}

#[test]
fn z6_landings_make_no_packs_in_the_vault() {
    let env = repository();
    let tree = grow(&env, "w0", "sealed");
    let vault = env.repo().join(".git/weald/vault");
    let before = packs(&vault);
    for round in 0..8 {
        commit(&env, &tree, &format!("file-{round}"), "text\n");
        fs::write(env.repo().join("diary"), format!("day {round}\n")).unwrap();
        env.git(&["add", "diary"]);
        env.git(&["commit", "-q", "-m", "day"]);
        env.ok(&["land", "w0", "--keep"]);
    }
    // What a repack of main brings, at most.
    assert!(packs(&vault) <= before + 2, "{}", packs(&vault));
    require_whole(&env, &vault, &tree);
}

#[test]
fn z6_a_landing_starts_the_upkeep_that_the_vault_wants() {
    let env = repository();
    let tree = grow(&env, "w0", "sealed");
    let vault = env.repo().join(".git/weald/vault");
    let texts = env.root().join("texts");
    fs::create_dir(&texts).unwrap();
    let mut names = Vec::new();
    for number in 0..6000 {
        let name = texts.join(number.to_string());
        fs::write(&name, format!("text {number}")).unwrap();
        names.push(name.display().to_string());
    }
    for some in names.chunks(1000) {
        let mut args = vec!["hash-object", "-w", "--"];
        args.extend(some.iter().map(String::as_str));
        git_in(&env, &vault, &args);
    }
    let before = packs(&vault);
    commit(&env, &tree, "file", "text\n");
    env.ok(&["land", "w0", "--keep"]);
    let waited = Instant::now();
    // Its last step.
    while !vault.join("redundant").exists() {
        assert!(waited.elapsed() < Duration::from_secs(180), "no upkeep");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(packs(&vault) > before);
    require_whole(&env, &vault, &tree);
    git_in(&env, &vault, &["fsck", "--no-dangling"]);
}
