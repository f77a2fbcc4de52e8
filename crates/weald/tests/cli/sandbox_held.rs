//! Locks, logins and links: what a run might hold, plant or follow to get at what is not its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::sandbox_home::{SECRET, write};
use crate::trees_remove::{grow, repository};

/// Files below a folder that weald locks, by their names.
fn locks_below(folder: &Path) -> Vec<PathBuf> {
    let (mut open, mut locks) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "lock") {
                locks.push(path);
            }
        }
    }
    locks
}

#[test]
fn x18_no_lock_of_weald_can_be_held_from_inside() {
    let env = repository();
    grow(&env, "a", "sealed");
    env.ok(&["pool", "fill", "--count", "1", "--set", "pool.size=1"]);
    env.ok(&["config", "set", "gate.command", "true"]);
    let state = env.home().join(".local/state/weald");
    let mut locks = locks_below(&env.repo().join(".git/weald"));
    locks.extend(locks_below(&state));
    let is_there = |name: &str| locks.iter().any(|path| path.ends_with(name));
    for name in ["donor.lock", "fill.lock", "write.lock", "register.lock"] {
        assert!(is_there(name), "{name} in {locks:?}");
    }
    let tried = locks.iter().map(|path| {
        let path = path.display();
        format!("(flock -n 9 && echo held {path}) 9<{path}")
    });
    let script = tried.collect::<Vec<_>>().join("; ");
    let free = env.command("sh").args(["-c", &script]).output().unwrap();
    let free = String::from_utf8_lossy(&free.stdout).into_owned();
    assert_eq!(
        free.lines().count(),
        locks.len(),
        "the test of the test: {free}"
    );
    let answer = env.weald(&["run", "a", "--", "sh", "-c", &script]);
    // A lock in the home is one of the layer's; the host's is free at the same time.
    let held: Vec<_> = answer.stdout.lines().collect();
    assert!(held.is_empty(), "{held:?}");
}

#[test]
fn x18_a_lock_that_a_run_at_level_landlock_holds_delays_nobody_for_long() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    env.ok(&["pool", "fill", "--count", "1", "--set", "pool.size=1"]);
    env.ok(&["pool", "drain", "--set", "pool.size=1"]);
    let lock = env.repo().join(".git/weald/pool/donor.lock");
    let script = format!(
        "(flock 9; touch held.log; until [ -e over.log ]; do sleep 0.02; done) 9<{}",
        lock.display()
    );
    let args = [
        "run",
        "a",
        "--sandbox",
        "landlock",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let mut child = env
        .weald_command(&args)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !tree.join("held.log").exists() {
        assert!(Instant::now() < deadline, "the run did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    let began = Instant::now();
    env.ok(&["new", "b", "--set", "pool.size=1"]);
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    fs::write(tree.join("over.log"), "").unwrap();
    child.wait().unwrap();
}

#[test]
fn x30_a_login_is_not_given_to_what_an_earlier_run_planted() {
    let env = repository();
    grow(&env, "a", "sealed");
    let bin = env.home().join("bin");
    write(&bin.join("claude"), "#!/bin/sh\necho real\n");
    fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
    write(&env.home().join(".claude/.credentials.json"), SECRET);
    let run = |command: &[&str]| {
        let args = [&["run", "a", "--"], command].concat();
        let path = format!("{}:{}", bin.display(), env.plain_path());
        let mut command = env.weald_command(&args);
        let output = command
            .env("PATH", path)
            .env("ANTHROPIC_API_KEY", SECRET)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let steal = "echo $ANTHROPIC_API_KEY; cat ~/.claude/.credentials.json";
    let plant = format!("printf '#!/bin/sh\\n%s\\n' '{steal}' > ~/bin/claude; ~/bin/claude");
    assert!(!run(&["sh", "-c", &plant]).contains(SECRET));
    assert_eq!(
        run(&["claude"]),
        "real\n",
        "the user's own program, in a home of its own"
    );
}

#[test]
fn x16_a_link_beside_a_hidden_path_gives_nothing_back_at_level_landlock() {
    let env = repository();
    grow(&env, "a", "sealed");
    let home = env.home();
    write(&home.join(".ssh/id"), SECRET);
    write(&home.join(".config/gh/hosts.yml"), SECRET);
    std::os::unix::fs::symlink(&home, home.join("self")).unwrap();
    std::os::unix::fs::symlink(home.join(".config"), home.join("cfg")).unwrap();
    // What a hidden folder links to, also from a folder in it.
    write(&home.join("dotfiles/ssh/deep"), SECRET);
    write(&home.join(".ssh/conf.d/more/plain"), "");
    let deep = home.join(".ssh/conf.d/more/deep");
    std::os::unix::fs::symlink(home.join("dotfiles/ssh/deep"), deep).unwrap();
    let script = "cat ~/dotfiles/ssh/deep ~/.ssh/id ~/self/.ssh/id ~/cfg/gh/hosts.yml ~/.config/gh/hosts.yml; true";
    for level in ["full", "landlock"] {
        let answer = env.weald(&["run", "a", "--sandbox", level, "--", "sh", "-c", script]);
        assert_eq!(
            (answer.code, answer.stdout.as_str()),
            (0, ""),
            "{level}: {answer:#?}"
        );
    }
}
