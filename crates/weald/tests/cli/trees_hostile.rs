//! Hostile trees: whatever an agent's configuration, hooks, attributes and repositories name, the host runs none of it.
//!
//! Each program of a vector touches a canary outside of the tree. First it is shown that plain git in a copy of the tree
//! runs it; then every host command looks at the tree, and no canary may be there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use weald_testkit::{TestEnv, full_scale};

use crate::landing_gate::wait_until;
use crate::trees_sealed::{manifest, refs, repository, shell, tree, vault};
use crate::trees_vectors::{ALONE, CONFIGURED, NESTED, REPLACED, USERS, Vector};

/// Every command of the host that looks at a tree; `T` stands for its name.
pub const COMMANDS: [&str; 20] = [
    "list",
    "list --fresh",
    "status T",
    "show T",
    "diff T",
    "diff T --json",
    "diff T --stat --against target",
    "snapshot create T",
    "snapshot list T",
    "sync T",
    "path T",
    "path T --check one.txt",
    "enter T",
    "keep T",
    "doctor",
    "doctor --fix",
    "rm T",
    "rm T --discard --force",
    "trash list",
    "trash restore T",
];

/// Runs a host command; it has to end well or refuse, in time and without a panic.
#[track_caller]
pub fn host_command(env: &TestEnv, command: &str, limit: Duration, vector: &str) {
    let words = command
        .split(' ')
        .map(|word| if word == "T" { "a" } else { word });
    let setting = format!("tree.look_limit={}ms", limit.as_millis());
    let args: Vec<_> = words.chain(["--set", &setting]).collect();
    let started = Instant::now();
    let answer = env.weald(&args);
    let took = started.elapsed();
    // One command may look up to three times: before, at a snapshot, after.
    let allowed = limit * 3 + Duration::from_secs(20);
    assert!(took < allowed, "{vector}: {command} took {took:?}");
    assert!(
        matches!(answer.code, 0 | 1 | 3 | 4 | 5),
        "{vector}: {command}: {answer:#?}"
    );
    assert!(
        !answer.stderr.contains("panicked"),
        "{vector}: {command}: {answer:#?}"
    );
}

/// Waits until no process works in the environment any more.
#[track_caller]
pub fn assert_no_process(env: &TestEnv, vector: &str) {
    let root = env.root().to_str().unwrap().to_owned();
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let left: Vec<_> = processes_at(&root);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{vector} left {left:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Processes other than this one that stand in a directory or name it.
fn processes_at(root: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        if name
            .parse::<u32>()
            .is_ok_and(|pid| pid != std::process::id())
        {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let at = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            if line.contains(root) || at.to_string_lossy().contains(root) {
                found.push(format!("{name} {line}"));
            }
        }
    }
    found
}

/// A repository whose main went on after tree `a` was made, so that a sync has something to merge.
pub fn target(kind: &str) -> TestEnv {
    let env = repository();
    fs::write(env.repo().join("f-merge.txt"), "base\n").unwrap();
    env.git(&["add", "."]);
    env.git(&["commit", "-q", "-m", "base"]);
    env.ok(&["new", "a", "--kind", kind]);
    fs::write(env.repo().join("f-merge.txt"), "theirs\n").unwrap();
    env.git(&["commit", "-q", "-a", "-m", "theirs"]);
    let script = "echo ours > f-merge.txt
        for f in clean smudge process command textconv external user usertext usermerge info attr; do echo aaa > f-$f.txt; done
        git add .; git commit -qm ours
        for f in f-*.txt; do test $f = f-merge.txt || echo bbb > $f; done";
    shell(&env, &tree(&env, "a"), script);
    env.ok(&["status", "a"]);
    env
}

fn canary(env: &TestEnv, vector: &str) -> PathBuf {
    env.root().join(format!("canary-{vector}"))
}

/// Writes a program that touches the vector's canary and ends well.
fn program(env: &TestEnv, place: &Path, vector: &str) -> PathBuf {
    let path = place.join(format!(".evil-{vector}"));
    let text = format!("#!/bin/sh\n: > {}\n", canary(env, vector).display());
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn fired(env: &TestEnv) -> Vec<String> {
    let names = fs::read_dir(env.root()).unwrap().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with("canary-")).collect()
}

/// Plants the vectors, proves each in a copy, then lets every host command look; the programs lie in `place`, or in the
/// tree itself.
fn attack(kind: &str, vectors: &[Vector], place: Option<&Path>, env: &TestEnv) {
    let path = tree(env, "a");
    for (name, plant, _) in vectors {
        let evil = program(env, place.unwrap_or(&path), name);
        let script = format!(
            "E={}; H=$(git rev-parse --git-common-dir)\n{plant}",
            evil.display()
        );
        shell(env, &path, &script);
    }
    let copies = env.root().join("copies");
    fs::create_dir(&copies).unwrap();
    // A copy of a linked tree works on main's repository, so that is put back.
    let put_back = "rm -rf c; cp -a ../app.weald/a c; rm -rf ../app/.git; cp -a main ../app/.git";
    shell(env, &copies, "cp -a ../app/.git main");
    for (name, _, fire) in vectors {
        let copy = copies.join("c");
        shell(env, &copies, put_back);
        let _ = fs::remove_file(canary(env, name));
        let script = format!("timeout 10 sh -c '{fire}' > ../{name}.log 2>&1 || true");
        shell(env, &copy, &script);
        let said = fs::read_to_string(copies.join(format!("{name}.log"))).unwrap_or_default();
        assert!(
            canary(env, name).exists(),
            "{name} in a {kind} tree does not fire: {said}"
        );
    }
    shell(env, &copies, put_back);
    for name in fired(env) {
        fs::remove_file(env.root().join(name)).unwrap();
    }
    let before = main_files(env);
    for command in COMMANDS {
        host_command(env, command, Duration::from_secs(3), kind);
        assert_eq!(fired(env), [""; 0], "{command} ran it ({kind})");
        assert_eq!(main_files(env), before, "{command} ({kind})");
    }
    assert_no_process(env, kind);
    assert_eq!(fired(env), [""; 0], "something ran later ({kind})");
}

/// The user's checkout, configuration and hooks.
pub fn main_files(env: &TestEnv) -> Vec<(PathBuf, u64)> {
    let all = manifest(&env.repo()).into_iter();
    let watched = all.filter(|(path, _)| {
        let text = path.to_string_lossy();
        let own = [
            ".git/config",
            ".git/HEAD",
            ".git/hooks",
            ".git/info",
            ".git/refs/heads/main",
        ];
        !text.starts_with(".git") || own.iter().any(|own| text.starts_with(own))
    });
    watched.map(|(path, (_, hash))| (path, hash)).collect()
}

#[test]
fn x6_nothing_that_a_trees_configuration_names_runs_outside() {
    for (turn, kind) in ["sealed", "linked"].into_iter().enumerate() {
        attack(kind, &CONFIGURED, None, &target(kind));
        // With small counts each of these is tried in a tree of one kind or the other.
        let alone = ALONE.into_iter().enumerate();
        for (_, vector) in alone.filter(|(number, _)| full_scale() || number % 2 == turn) {
            attack(kind, &[vector], None, &target(kind));
        }
    }
}

#[test]
fn x6_nothing_that_embedded_repositories_name_runs_outside() {
    for kind in ["sealed", "linked"] {
        attack(kind, &NESTED, None, &target(kind));
    }
}

#[test]
fn x6_no_driver_of_the_users_own_runs_because_a_tree_picks_it() {
    for kind in ["sealed", "linked"] {
        let env = target(kind);
        attack(kind, &USERS, Some(&env.home()), &env);
    }
}

#[test]
fn x6_a_replaced_git_directory_is_no_way_out() {
    thread::scope(|scope| {
        for vector in REPLACED {
            scope.spawn(move || attack("sealed", &[vector], None, &target("sealed")));
        }
    });
    // A linked tree's pointer that leads to a repository of the agent's.
    let pointer = (
        "pointer",
        "git init -q own; git -C own config core.fsmonitor $E; git -C own config core.bare false; echo \"gitdir: $PWD/own/.git\" > .git",
        "git status",
    );
    attack("linked", &[pointer], None, &target("linked"));
}

/// A running agent that ends with the test.
struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a hostile agent does to its own repository, without end.
const REWRITER: &str = "cp -a .git /tmp/good
    while :; do
        for f in HEAD index config packed-refs refs/heads/x logs/HEAD objects/info/alternates; do
            rm -rf .git/$f; mkfifo .git/$f; rm -rf .git/$f; ln -s /etc/passwd .git/$f
            rm -rf .git/$f; mkdir -p .git/$f; rm -rf .git/$f; cp -a /tmp/good/$f .git/$f
        done 2> /dev/null
        git config core.fsmonitor $PWD/.evil-loop; git config alias.x !$PWD/.evil-loop
        git commit -q --allow-empty -m more; git update-ref refs/heads/b$$ HEAD
        mv .git .moved; ln -s /tmp .git; rm .git; mkfifo .git; rm .git; mv .moved .git
        rm -rf .git; cp -a /tmp/good .git; echo again >> rounds
    done 2> /dev/null";

#[test]
fn x6_an_agent_that_rewrites_its_git_in_a_loop() {
    let env = target("sealed");
    program(&env, &tree(&env, "a"), "loop");
    let before = (
        main_files(&env),
        refs(&env, &env.repo().join(".git"), "refs/heads/main"),
    );
    let child = env
        .weald_command(&["run", "a", "--timeout", "60s", "--", "sh", "-c", REWRITER])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut agent = Agent(child);
    let rounds = tree(&env, "a").join("rounds");
    wait_until(|| rounds.exists());
    for round in 0..3 {
        for command in COMMANDS {
            host_command(&env, command, Duration::from_millis(500), "loop");
            assert_eq!(fired(&env), [""; 0], "{command} in round {round}");
        }
        assert_eq!(agent.0.try_wait().unwrap(), None, "the agent ended");
        assert!(tree(&env, "a").is_dir(), "a tree in use is never removed");
    }
    drop(agent);
    let rounds = fs::read_to_string(tree(&env, "a").join("rounds")).unwrap_or_default();
    assert!(rounds.lines().count() > 2, "the agent did next to nothing");
    assert_no_process(&env, "loop");
    let after = (
        main_files(&env),
        refs(&env, &env.repo().join(".git"), "refs/heads/main"),
    );
    assert_eq!(after, before);
    for git_dir in [env.repo().join(".git"), vault(&env)] {
        shell(
            &env,
            &git_dir,
            "git --git-dir=. rev-list --objects --all > /dev/null",
        );
    }
    for command in [
        "doctor --fix",
        "rm T --discard",
        "trash restore T",
        "list --fresh",
    ] {
        host_command(&env, command, Duration::from_secs(1), "loop");
    }
    assert_eq!(fired(&env), [""; 0]);
}
