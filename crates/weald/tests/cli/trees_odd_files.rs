//! Hostile trees: pipes, links, devices, endless files and directories in every place where the host looks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use weald_testkit::full_scale;

use crate::trees_hostile::{COMMANDS, assert_no_process, host_command, main_files, target};
use crate::trees_sealed::{refs, shell, tree};

/// Where the host, or git on its behalf, looks.
const PLACES: [&str; 20] = [
    ".git/HEAD",
    ".git/index",
    ".git/config",
    ".git/packed-refs",
    ".git/refs/heads/x",
    ".git/objects/info/alternates",
    ".git/logs/HEAD",
    ".git/logs/refs/stash",
    ".git/info/exclude",
    ".git/info/attributes",
    ".git/MERGE_HEAD",
    ".git/shallow",
    ".git/commondir",
    ".git/objects/pack/pack-x.idx",
    ".git",
    ".gitattributes",
    ".gitignore",
    ".gitmodules",
    "one.txt",
    "new.txt",
];

/// The first of those that a linked tree has, too.
const IN_BOTH: usize = 14;

/// What main keeps of a linked tree, which an agent in it can write.
const REGISTRATION: [&str; 7] = [
    "../../app/.git/worktrees/a/HEAD",
    "../../app/.git/worktrees/a/index",
    "../../app/.git/worktrees/a/gitdir",
    "../../app/.git/worktrees/a/commondir",
    "../../app/.git/worktrees/a/locked",
    "../../app/.git/worktrees/a/weald",
    "../../app/.git/worktrees/a/logs/HEAD",
];

/// What is there; `$P` is the place.
const FORMS: [(&str, &str); 7] = [
    ("a FIFO", "mkfifo $P"),
    ("a link to a FIFO", "mkfifo pipe; ln -s $PWD/pipe $P"),
    ("a device", "mknod $P c 1 5 || ln -s /dev/zero $P"),
    ("an endless file", "truncate -s 20G $P"),
    (
        "a deep directory",
        "D=$(printf 'dddddddd/%.0s' $(seq 300)); mkdir -p d1/$D d2/$D; mv d2 d1/$D; mv d1 $P",
    ),
    ("a link outside", "ln -s /etc/passwd $P"),
    ("a link to itself", "ln -s $(basename $P) $P"),
];

/// Puts one form at one place and lets host commands look.
fn odd(place: &str, form: usize, turn: usize, kind: &str) {
    let (what, script) = FORMS[form];
    let vector = format!("{what} at {place} of a {kind} tree");
    let env = target(kind);
    let path = tree(&env, "a");
    let script = format!("P={place}; rm -rf $P; mkdir -p $(dirname $P); {script}");
    shell(&env, &path, &script);
    let main = env.repo().join(".git");
    let before = (main_files(&env), refs(&env, &main, ""));
    for (number, command) in COMMANDS.iter().enumerate() {
        if full_scale() || (number + turn).is_multiple_of(4) {
            host_command(&env, command, Duration::from_millis(400), &vector);
        }
    }
    assert_no_process(&env, &vector);
    let mut after = (main_files(&env), refs(&env, &main, ""));
    // A removed tree's branch may be gone if the target has all of it; nothing else changes.
    let (_, held) = &mut after;
    if let Some(tip) = before.1.get("refs/heads/wt/a") {
        held.entry("refs/heads/wt/a".to_owned())
            .or_insert_with(|| tip.clone());
    }
    assert_eq!(after, before, "{vector}");
}

/// All cases of one kind, a few at a time: most of them wait.
fn odd_everywhere(kind: &str, places: &[&str]) {
    let cases: Vec<_> = (0..places.len())
        .flat_map(|place| (0..FORMS.len()).map(move |form| (place, form)))
        // With small counts each place has one form, and each form a place.
        .filter(|(place, form)| full_scale() || (place + form).is_multiple_of(FORMS.len()))
        .collect();
    assert!(cases.len() >= places.len());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                while let Some((place, form)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    odd(places[*place], *form, *place, kind);
                }
            });
        }
    });
}

#[test]
fn x6_odd_files_in_a_sealed_tree_stop_nobody() {
    odd_everywhere("sealed", &PLACES);
}

#[test]
fn x6_odd_files_in_a_linked_tree_stop_nobody() {
    odd_everywhere("linked", &PLACES[IN_BOTH..]);
}

#[test]
fn x6_odd_files_in_a_linked_trees_registration_stop_nobody() {
    odd_everywhere("linked", &REGISTRATION);
}
