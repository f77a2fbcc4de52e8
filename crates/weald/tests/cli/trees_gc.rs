//! What trees borrow stays there: no gc and no repack in main takes an object away, and the vault stays small.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use weald_testkit::{TestEnv, full_scale};

use crate::trees_sealed::{refs, repository, shell, vault};

/// Ends the user's loop also when a test fails.
struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A user at work in main, without mercy for loose objects.
fn user_loop(env: &TestEnv, ended: &AtomicBool) -> usize {
    let mut rounds = 0;
    while !ended.load(Ordering::Relaxed) {
        rounds += 1;
        let script = format!(
            "echo {rounds} > user.txt; git add user.txt; git commit -qm 'user {rounds}'
             git branch gone-{rounds} $(git commit-tree -p HEAD -m gone 'HEAD^{{tree}}')
             git branch -q -D gone-{rounds}; git reflog expire --expire=now --all
             git reset -q --hard; git gc --prune=now -q; git repack -adq"
        );
        shell(env, &env.repo(), &script);
    }
    rounds
}

/// Everything that any ref of a repository reaches is there.
#[track_caller]
fn assert_complete(env: &TestEnv, git_dir: &Path) {
    let listed = shell(
        env,
        git_dir,
        "git --git-dir=. rev-list --objects --all | wc -l",
    );
    assert!(
        listed.parse::<usize>().unwrap() > 2,
        "{}",
        git_dir.display()
    );
    shell(
        env,
        git_dir,
        "git --git-dir=. rev-list --objects --all > /dev/null",
    );
}

#[test]
fn x4_no_gc_in_main_takes_an_object_away() {
    let env = repository();
    let ended = AtomicBool::new(false);
    let lifecycles = if full_scale() { 100 } else { 4 };
    let rounds = thread::scope(|scope| {
        let user = scope.spawn(|| user_loop(&env, &ended));
        let at_end = AtEnd(&ended);
        for number in 0..lifecycles {
            let name = format!("t{number}");
            env.ok(&["new", &name]);
            let script =
                "echo $WEALD_TREE >> one.txt; git commit -qam one; git commit -q --amend -m two
                echo stash > one.txt; git stash -q; echo untracked > new.txt; git add new.txt";
            let run = env.weald(&["run", &name, "--", "sh", "-ec", script]);
            assert_eq!(run.code, 0, "{run:#?}");
            env.ok(&["snapshot", "create", &name]);
            assert_eq!(env.ok(&["status", &name])["tree"]["staged"], 1);
            let id = env.ok(&["rm", &name, "--discard"])["tree"]["id"].to_string();
            if number % 2 == 0 {
                env.ok(&["trash", "restore", &id]);
                assert_eq!(env.ok(&["status", &name])["tree"]["staged"], 1);
            }
            if user.is_finished() {
                break;
            }
        }
        drop(at_end);
        user.join().unwrap()
    });
    assert!(rounds > 2, "the user did only {rounds} rounds");
    let vault = vault(&env);
    assert_complete(&env, &env.repo().join(".git"));
    assert_complete(&env, &vault);
    let trees = env.ok(&["list"])["trees"].as_array().unwrap().clone();
    assert_eq!(trees.len(), lifecycles / 2);
    for known in &trees {
        let path = PathBuf::from(known["path"].as_str().unwrap());
        assert_complete(&env, &path.join(".git"));
        shell(
            &env,
            &path,
            "git fsck --no-dangling; git rev-list --objects -g HEAD > /dev/null",
        );
        let id = &known["id"];
        let held = refs(&env, &vault, &format!("refs/tree/{id}/ refs/snap/{id}/"));
        for name in ["stash/0", "staged", "old/1"] {
            assert!(
                held.contains_key(&format!("refs/tree/{id}/{name}")),
                "{held:?}"
            );
        }
        assert!(held.contains_key(&format!("refs/snap/{id}/1")), "{held:?}");
    }
}

/// Bytes of all packs of a repository.
fn pack_bytes(git_dir: &Path) -> u64 {
    let packs = fs::read_dir(git_dir.join("objects/pack"))
        .unwrap()
        .flatten();
    packs
        .filter(|entry| entry.path().extension().is_some_and(|kind| kind == "pack"))
        .map(|entry| entry.metadata().unwrap().len())
        .sum()
}

#[test]
fn x4_the_vault_stays_small_while_main_is_repacked() {
    let env = repository();
    for number in 0..20 {
        let script = format!(
            "head -c 20000 /dev/urandom > blob-{number}; git add .; git commit -qm {number}; git repack -adq"
        );
        shell(&env, &env.repo(), &script);
        env.ok(&["new", &format!("t{number}")]);
    }
    // By itself only above some megabytes, and never within the grace: people and timers can ask for it.
    let upkeep = env.ok(&["vault", "maintain", "--now"]);
    let (main, vault) = (
        pack_bytes(&env.repo().join(".git")),
        pack_bytes(&vault(&env)),
    );
    assert!(main > 300_000, "{main}");
    assert!(
        vault <= 2 * main + 100_000,
        "vault {vault}, main {main}: {upkeep}"
    );
    assert!(upkeep["vault"]["dropped"].as_u64() > Some(0), "{upkeep}");
    let trees: Vec<_> = env.ok(&["list", "--fresh"])["trees"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(trees.len(), 20);
    for known in trees {
        assert_eq!(known["dirty"], false, "{known}");
        assert_complete(
            &env,
            &Path::new(known["path"].as_str().unwrap()).join(".git"),
        );
    }
}
