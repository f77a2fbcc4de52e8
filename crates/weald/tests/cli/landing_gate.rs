//! The gate: what it tests, what it may do, and what it leaves.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use weald_testkit::{TestEnv, skipped};

use crate::trees_remove::{commit, grow, repository};
use crate::trees_setup::commit_all;
use crate::trees_work::is_running;

/// Sets a key in the private configuration.
pub fn set(env: &TestEnv, key: &str, value: &str) {
    env.ok(&["config", "set", key, value]);
}

/// Makes a tree with one commit.
pub fn tree_with(env: &TestEnv, name: &str, file: &str, text: &str) -> PathBuf {
    let path = grow(env, name, "sealed");
    commit(env, &path, file, text);
    path
}

/// Lands a tree with further variables; answers the landing.
pub fn land_with(env: &TestEnv, name: &str, variables: &[(&str, &str)]) -> Value {
    let mut command = env.weald_command(&["land", name, "--json"]);
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{output:#?}"));
    assert!(answer["landings"].is_array(), "{output:#?}");
    answer["landings"][0].clone()
}

pub fn land(env: &TestEnv, name: &str) -> Value {
    land_with(env, name, &[])
}

#[track_caller]
pub fn log_of(landing: &Value) -> String {
    let log = [&landing["gate"]["log"], &landing["log"]];
    let path = log.iter().find_map(|log| log.as_str());
    fs::read_to_string(path.unwrap_or_else(|| panic!("no log: {landing:#}"))).unwrap()
}

/// How many runs there were.
pub fn runs(env: &TestEnv) -> usize {
    fs::read_dir(env.private().join("landings")).map_or(0, Iterator::count)
}

/// The lines of a log that begin with a word, without it.
fn said(log: &str, word: &str) -> Vec<String> {
    let lines = log.lines().filter_map(|line| line.strip_prefix(word));
    lines.map(str::to_owned).collect()
}

fn no_gate_tree_is_left(env: &TestEnv) {
    assert!(!env.root().join("app.weald/.gate").exists());
    let layers = env.home().join(".cache/weald/layers");
    let left = fs::read_dir(layers).into_iter().flatten().flatten();
    let left: Vec<_> = left.map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

const TELL: &str = "git rev-parse HEAD | sed s/^/head:/; git rev-parse HEAD^{tree} | sed s/^/its:/; \
    git symbolic-ref -q HEAD | sed s/^/branch:/; git status --porcelain --ignored | sed s/^/status:/; \
    find . -name .git -prune -o -type f -print | sed s/^/file:/";

#[test]
fn gate_tests_exactly_what_becomes_the_tip() {
    let env = repository();
    set(&env, "gate.command", TELL);
    let tree = tree_with(&env, "a", "a.txt", "a\n");
    fs::write(tree.join("untracked"), "not committed").unwrap();
    fs::write(tree.join("ignored.log"), "not committed").unwrap();
    fs::write(env.repo().join("ignored.log"), "main's own").unwrap();
    fs::write(env.repo().join("later.txt"), "the target moved").unwrap();
    commit_all(&env);
    let landing = land(&env, "a");
    assert_eq!(landing["outcome"], "landed", "{landing:#}");
    let log = log_of(&landing);
    let tip = env.git(&["rev-parse", "main", "main^{tree}"]);
    let tip: Vec<_> = tip.lines().collect();
    assert_eq!(said(&log, "head:"), [tip[0]], "{log}");
    assert_eq!(said(&log, "its:"), [tip[1]], "{log}");
    assert_eq!(landing["gate"]["tree"], tip[1]);
    assert!(said(&log, "status:").is_empty(), "{log}");
    assert!(said(&log, "branch:").is_empty(), "{log}");
    let mut files = said(&log, "file:./");
    files.sort();
    assert_eq!(files, [".gitignore", "a.txt", "config.py", "later.txt"]);
    no_gate_tree_is_left(&env);
}

#[test]
fn gate_log_says_what_ran_on_what_and_how_it_ended() {
    let env = repository();
    set(
        &env,
        "gate.command",
        "echo first; echo second >&2; echo third; exit 7",
    );
    set(&env, "gate.retries", "0");
    tree_with(&env, "a", "a.txt", "a\n");
    let before = env.git(&["rev-parse", "main"]);
    let landing = land(&env, "a");
    assert_eq!(landing["outcome"], "red");
    assert_eq!(env.git(&["rev-parse", "main"]), before);
    let log = log_of(&landing);
    assert!(log.contains("first\nsecond\nthird\n"), "in order: {log}");
    assert_eq!(
        said(&log, "command:   "),
        ["echo first; echo second >&2; echo third; exit 7"]
    );
    let candidate = landing["new_tip"].as_str().unwrap();
    assert_eq!(said(&log, "candidate: "), [candidate]);
    assert_eq!(said(&log, "began:     ").len(), 1);
    let ended = said(&log, "ended:     ");
    assert!(ended[0].contains("` exited 7 after "), "{log}");
    let name = format!("{}-1.log", landing["id"]);
    assert!(landing["log"].as_str().unwrap().ends_with(&name));
}

#[test]
fn gate_log_is_bounded_and_keeps_its_end() {
    let env = repository();
    set(
        &env,
        "gate.command",
        "echo begin; yes | head -c 30000000; echo the end",
    );
    tree_with(&env, "a", "a.txt", "a\n");
    let log = log_of(&land(&env, "a"));
    assert!(log.len() < (16 << 20) + 4096, "{}", log.len());
    assert!(log.contains("\nbegin\n") && log.contains("\nthe end\n"));
    assert!(log.contains("bytes are left out here]"));
}

#[test]
fn x7_a_gate_writes_its_own_directory_and_nothing_else() {
    let env = repository();
    let sibling = grow(&env, "b", "sealed");
    tree_with(&env, "a", "a.txt", "a\n");
    let private = env.private();
    let places = [
        env.repo().join("config.py"),
        env.repo().join("evil"),
        env.repo().join(".git/evil"),
        env.repo().join(".git/refs/heads/evil"),
        env.repo().join(".git/weald/vault/evil"),
        private.join("evil"),
        private.join("receipts/evil"),
        sibling.join("evil"),
        env.home().join("evil"),
        env.root().join("app.weald/.gate/evil"),
    ];
    let tries = places.iter().map(|place| {
        let place = place.display();
        format!("(echo evil >> {place}) 2>/dev/null && test -e {place} && echo wrote:{place}\n")
    });
    let script = format!(
        "{}echo own > own && cat own | sed s/^/own:/",
        tries.collect::<String>()
    );
    let config = private.join("config.toml");
    let text = toml_of("gate", "command", &script);
    fs::create_dir_all(&private).unwrap();
    fs::write(config, text).unwrap();
    let landing = land(&env, "a");
    assert_eq!(landing["outcome"], "landed", "{landing:#}");
    let log = log_of(&landing);
    assert_eq!(said(&log, "own:"), ["own"], "{log}");
    for place in &places {
        let text = fs::read_to_string(place).unwrap_or_default();
        assert!(!text.contains("evil"), "{}", place.display());
    }
    let inside = format!("{}/", env.repo().display());
    let wrote = said(&log, "wrote:");
    let wrote: Vec<_> = wrote.iter().filter(|at| at.starts_with(&inside)).collect();
    assert!(wrote.is_empty(), "main is not even seen to change: {log}");
}

/// A file with one key, whatever is in its text.
pub fn toml_of(section: &str, key: &str, text: &str) -> String {
    format!("[{section}]\n{key} = '''{text}'''\n")
}

#[test]
fn gate_that_takes_too_long_is_ended_with_everything_it_started() {
    let env = repository();
    let length = "8731.25";
    let script = format!(
        "sleep {length} & setsid sleep {length} & (setsid sh -c 'sleep {length}; true' &); sleep {length}"
    );
    set(&env, "gate.command", &script);
    set(&env, "gate.timeout", "1s");
    set(&env, "gate.retries", "0");
    tree_with(&env, "a", "a.txt", "a\n");
    let landing = land(&env, "a");
    assert_eq!(landing["outcome"], "red", "{landing:#}");
    assert!(!is_running(length), "a sleep is left");
    let log = log_of(&landing);
    assert!(log.contains("` did not end within 1 s"), "{log}");
    no_gate_tree_is_left(&env);
}

#[test]
fn gate_that_is_red_runs_again_in_a_fresh_tree() {
    let env = repository();
    // Fails in the first run and leaves something that would fail the second.
    let script = "test ! -e left || exit 9; case $WEALD_TREE in *-1) touch left; exit 3;; esac";
    set(&env, "gate.command", script);
    tree_with(&env, "a", "a.txt", "a\n");
    let landing = land(&env, "a");
    assert_eq!(landing["outcome"], "landed", "{landing:#}");
    assert_eq!(landing["gate"]["attempts"], 2, "{landing:#}");
    assert_eq!(runs(&env), 2);
    set(&env, "gate.command", "false");
    set(&env, "gate.retries", "2");
    tree_with(&env, "b", "b.txt", "b\n");
    let landing = land(&env, "b");
    assert_eq!(landing["outcome"], "red");
    assert_eq!(runs(&env), 5);
    let events = env.weald(&["events", "--json", "--limit", "200"]).stdout;
    let red = events.lines().find(|line| line.contains("landing.red"));
    let red = red.unwrap_or_else(|| panic!("{events}"));
    assert!(red.contains("`false` exited 1 after "), "{red}");
    assert!(red.contains("(ran 3 times)"), "{red}");
    no_gate_tree_is_left(&env);
}

#[test]
fn x7_without_user_namespaces_no_gate_runs_and_nothing_lands() {
    let env = repository();
    set(&env, "gate.command", "echo ran");
    tree_with(&env, "a", "a.txt", "a\n");
    let script = r#"
echo 0 > /proc/sys/user/max_user_namespaces || exit 77
before=$(git rev-parse main)
code=0; "$WEALD" land a > out 2>&1 || code=$?
[ "$code" = 6 ] || { cat out; exit 1; }
[ "$(git rev-parse main)" = "$before" ]
! grep -q '^ran' .git/weald/private/landings/*.log
"#;
    let output = std::process::Command::new("unshare")
        .args(["-Ur", "sh", "-c", script])
        .current_dir(env.repo())
        .env("HOME", env.home())
        .env("WEALD", env!("CARGO_BIN_EXE_weald"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.code() == Some(77) || told.contains("unshare failed") {
        return skipped("a user namespace without further ones can't be made here");
    }
    assert!(output.status.success(), "{told}");
}

#[test]
fn gate_that_was_killed_leaves_a_tree_that_the_next_one_takes_away() {
    let env = repository();
    set(&env, "gate.command", "true");
    tree_with(&env, "a", "a.txt", "a\n");
    let gates = env.root().join("app.weald/.gate");
    let killed = || {
        let mut command = env.weald_command(&["land", "a"]);
        let output = command.env("WEALD_STEP", "kill:gate.made").output();
        assert_eq!(output.unwrap().status.code(), None);
        assert!(gates.is_dir());
    };
    killed();
    let left = |answer: &Value| {
        let findings = answer["findings"].as_array().unwrap().clone();
        let gates = findings.into_iter().filter(|finding| {
            finding["what"].as_str().unwrap().contains(".gate/") && finding["code"] == "leftover"
        });
        gates.collect::<Vec<_>>()
    };
    let found = left(&env.ok(&["doctor"]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["severity"], "info");
    assert!(gates.is_dir(), "a look deletes nothing");
    assert_eq!(left(&env.ok(&["doctor", "--fix"]))[0]["fixed"], true);
    no_gate_tree_is_left(&env);
    assert!(left(&env.ok(&["doctor", "--fix"])).is_empty());
    killed();
    // What the killed ones queued lands, too, and first.
    land(&env, "a");
    assert_eq!(env.git(&["show", "main:a.txt"]), "a\n");
    no_gate_tree_is_left(&env);
}

#[test]
fn gate_of_a_living_process_is_left_alone() {
    let env = repository();
    set(&env, "gate.command", "true");
    tree_with(&env, "a", "a.txt", "a\n");
    let mut command = env.weald_command(&["land", "a"]);
    command.env("WEALD_STEP", "stop:gate.made");
    let mut child = command.spawn().unwrap();
    let gates = env.root().join("app.weald/.gate");
    wait_until(|| stopped(child.id()));
    let held: Vec<_> = fs::read_dir(&gates).unwrap().flatten().collect();
    assert_eq!(held.len(), 2, "a tree and its owner");
    let told = env.weald(&["--json", "doctor", "--fix"]);
    assert_eq!(told.code, 1, "a stopped holder is told: {told:#?}");
    assert!(told.stdout.contains("holder_stopped"), "{told:#?}");
    assert_eq!(fs::read_dir(&gates).unwrap().count(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    env.ok(&["doctor", "--fix"]);
    assert!(!gates.exists());
}

/// Waits for something that comes about by itself.
#[track_caller]
pub fn wait_until(done: impl Fn() -> bool) {
    for _ in 0..600 {
        if done() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it did not come about");
}

fn stopped(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:\tT"))
}

#[test]
fn gate_sees_a_stable_environment_and_what_gate_env_names() {
    let env = repository();
    set(
        &env,
        "gate.command",
        "env | sed s/^/env:/; test ! -t 0; cat",
    );
    set(&env, "gate.env", "WANTED");
    tree_with(&env, "a", "a.txt", "a\n");
    let variables = [
        ("WANTED", "yes"),
        ("SECRET_TOKEN", "no"),
        ("TERM", "xterm"),
        ("LC_ALL", "C"),
        ("WEALD_SESSION", "alice"),
    ];
    let landing = land_with(&env, "a", &variables);
    assert_eq!(landing["outcome"], "landed", "{landing:#}");
    let seen = said(&log_of(&landing), "env:");
    let has = |name: &str| {
        let found = seen.iter().find_map(|line| line.strip_prefix(name));
        found.and_then(|rest| rest.strip_prefix('='))
    };
    assert_eq!(has("WANTED"), Some("yes"));
    assert_eq!(has("LC_ALL"), Some("C"));
    assert_eq!(has("WEALD_GATE"), Some("1"));
    assert_eq!(has("WEALD_LANDING"), Some(&*landing["id"].to_string()));
    assert_eq!(has("WEALD_CANDIDATE"), landing["commit"].as_str());
    assert_eq!(has("WEALD_MAIN"), env.repo().to_str());
    assert!(has("WEALD_PORT").is_some(), "{seen:?}");
    for name in ["SECRET_TOKEN", "TERM", "WEALD_SESSION", "WEALD_POOL_SIZE"] {
        assert_eq!(has(name), None, "{seen:?}");
    }
    let leases = env.home().join(".local/state/weald/ports");
    let held = fs::read_dir(leases).unwrap().flatten();
    let held = held.filter(|entry| entry.path().is_symlink()).count();
    assert_eq!(
        held, 0,
        "its ports are others' to take, and the tree landed"
    );
}

#[test]
fn gate_tree_is_set_up_as_new_trees_are() {
    let env = repository();
    fs::write(env.repo().join(".worktreeinclude"), "secret.log\n").unwrap();
    commit_all(&env);
    fs::write(env.repo().join("secret.log"), "42").unwrap();
    set(&env, "setup.commands", "echo made > made.log");
    set(
        &env,
        "gate.command",
        "grep -q 42 secret.log && grep made made.log",
    );
    tree_with(&env, "a", "a.txt", "a\n");
    let landing = land(&env, "a");
    assert_eq!(landing["outcome"], "landed", "{landing:#}");
    // A set-up that fails is no test of it.
    set(&env, "setup.commands", "");
    tree_with(&env, "b", "b.txt", "b\n");
    set(&env, "setup.commands", "echo failing; exit 4");
    set(&env, "gate.command", "echo the tests ran");
    let landing = land(&env, "b");
    assert_eq!(landing["outcome"], "red", "{landing:#}");
    assert!(!log_of(&landing).contains("\nthe tests ran"));
}

#[test]
fn gate_of_an_ordinary_user_works_and_is_held() {
    let Some(home) = crate::sandbox::ordinary_home("gate-user") else {
        return;
    };
    let script = r#"
set -e
git init -q -b main app; cd app
git config user.name T; git config user.email t@example.com
echo base > base; git add -A; git commit -qm one
W=../weald
$W new a; echo a > ../app.weald/a/a.txt
git -C ../app.weald/a add -A; git -C ../app.weald/a commit -qm two
$W config set gate.command 'cat a.txt; mkdir -p deep/er; chmod 500 deep; ! (echo evil > '"$PWD"'/evil) 2>/dev/null'
$W land a
[ "$(git show main:a.txt)" = a ]; [ ! -e evil ]; [ ! -e ../app.weald/.gate ]
"#;
    let mut command = std::process::Command::new("sh");
    crate::sandbox::as_user(&mut command);
    command
        .args(["-c", script])
        .current_dir(&home)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", &home)
        .env("WEALD_POOL_SIZE", "0");
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{told}");
}

#[test]
fn landing_without_a_gate_says_so_unless_that_was_chosen() {
    let env = repository();
    let says = |more: &[&str]| {
        let told = env.weald(&[&["land", "a", "--keep"], more].concat());
        assert_eq!(told.code, 0, "{told:#?}");
        told.stdout.contains("no test command: set gate.command")
    };
    tree_with(&env, "a", "a.txt", "a\n");
    assert!(says(&[]));
    assert!(!says(&[]), "nothing landed");
    let tree = env.root().join("app.weald/a");
    commit(&env, &tree, "b", "b\n");
    set(&env, "policy.gate", "none");
    assert!(!says(&[]));
    commit(&env, &tree, "c", "c\n");
    set(&env, "policy.gate", "tests");
    set(&env, "gate.command", "true");
    assert!(!says(&[]));
}
