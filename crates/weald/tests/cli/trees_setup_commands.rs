//! Set-up commands: who may propose them, who approves, and what a failure leaves.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use weald_testkit::{TestEnv, skipped};

use crate::trees_remove::{commit, grow, has_event, repository, weald_in};
use crate::trees_setup::commit_all;

/// A repository that proposes commands.
fn proposing(file: &str, content: &str) -> TestEnv {
    let env = repository();
    propose(&env, file, content);
    env
}

fn propose(env: &TestEnv, file: &str, content: &str) {
    let path = env.repo().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    commit_all(env);
}

fn new(env: &TestEnv, name: &str, options: &[&str]) -> Value {
    env.ok(&[&["new", name], options].concat())["setup"].clone()
}

fn made(env: &TestEnv, tree: &str) -> Option<String> {
    fs::read_to_string(env.root().join("app.weald").join(tree).join("made.log")).ok()
}

const ONE: &str = "[setup]\ncommands = ['echo one >> made.log']\n";
const TWO: &str = "[setup]\ncommands = ['echo two >> made.log']\n";

#[test]
fn k14_commands_of_the_repository_need_an_approval_and_a_change_a_new_one() {
    let env = proposing("weald.toml", ONE);
    let answer = env.weald(&["new", "a", "--json"]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert!(answer.stderr.contains("`weald trust`"), "{answer:#?}");
    assert_eq!(answer.json()["setup"]["outcome"], "unapproved");
    assert_eq!(made(&env, "a"), None);
    env.refused(&["setup", "a"], 1, "setup_unapproved");
    let listed = env.ok(&["trust", "--list"]);
    assert_eq!(listed["trust"]["approved"], false);
    assert_eq!(made(&env, "a"), None, "a look approves nothing");
    assert_eq!(new(&env, "b", &[])["outcome"], "unapproved");
    let told = env.weald(&["trust"]).stdout;
    assert!(
        told.contains("weald.toml") && told.contains("  echo one >> made.log"),
        "{told}"
    );
    let done = new(&env, "c", &[]);
    assert_eq!(
        done["commands"],
        json!([{"command": "echo one >> made.log", "exit": 0}])
    );
    assert_eq!(done["from"], "weald.toml");
    assert_eq!(new(&env, "d", &[])["outcome"], "done", "once is enough");
    assert_eq!(made(&env, "d").as_deref(), Some("one\n"));
    assert!(has_event(&env, "d", "tree.setup.after") && has_event(&env, "d", "tree.run.after"));
    assert_eq!(env.ok(&["show", "d"])["tree"]["setup"]["outcome"], "done");
    env.ok(&["setup", "a"]);
    assert_eq!(made(&env, "a").as_deref(), Some("one\n"));
    propose(&env, "weald.toml", TWO);
    assert_eq!(new(&env, "e", &[])["outcome"], "unapproved", "it changed");
    assert_eq!(made(&env, "e"), None);
    // Back again: what was approved stays so.
    propose(&env, "weald.toml", ONE);
    assert_eq!(new(&env, "f", &[])["outcome"], "done");
    assert_eq!(
        env.ok(&["trust", "--revoke"])["trust"]["approvals"],
        json!([])
    );
    assert_eq!(new(&env, "g", &[])["outcome"], "unapproved");
}

#[test]
fn k14_what_an_agent_writes_in_a_tree_or_main_has_uncommitted_does_not_count() {
    let env = proposing("weald.toml", ONE);
    env.ok(&["trust"]);
    let tree = grow(&env, "a", "sealed");
    commit(&env, &tree, "weald.toml", TWO);
    fs::write(
        tree.join("conductor.json"),
        r#"{"scripts": {"setup": "echo evil >> made.log"}}"#,
    )
    .unwrap();
    env.ok(&["setup", "a"]);
    assert_eq!(made(&env, "a").as_deref(), Some("one\none\n"));
    env.ok(&["new", "b", "--base", "wt/a"]);
    assert_eq!(
        made(&env, "b").as_deref(),
        Some("one\n"),
        "the target's tip counts"
    );
    fs::write(env.repo().join("weald.toml"), TWO).unwrap();
    env.ok(&["new", "c"]);
    assert_eq!(made(&env, "c").as_deref(), Some("one\n"));
    // Nor can it approve anything.
    propose(&env, "weald.toml", TWO);
    let trust = format!("{} trust", env!("CARGO_BIN_EXE_weald"));
    let answer = env.weald(&["run", "a", "--", "sh", "-c", &trust]);
    assert_ne!(answer.code, 0, "{answer:#?}");
    let forged = r#"[{"from":"weald.toml","commands":["echo two >> made.log"],"at":"2026-01-01T00:00:00Z"}]"#;
    let forge = format!(
        "mkdir -p .git/weald/private; echo '{forged}' | tee .git/weald/private/approved.json > {}/approved.json",
        env.private().display()
    );
    env.weald(&["run", "a", "--", "sh", "-c", &forge]);
    assert_eq!(new(&env, "d", &[])["outcome"], "unapproved");
}

#[test]
fn k14_the_users_own_commands_need_no_approval_and_win() {
    let env = proposing("weald.toml", ONE);
    let config = env.home().join(".config/weald/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(
        &config,
        "[setup]\ncommands = ['echo mine, all mine >> made.log']\n",
    )
    .unwrap();
    assert_eq!(new(&env, "a", &[])["outcome"], "done");
    assert_eq!(made(&env, "a").as_deref(), Some("mine, all mine\n"));
    assert_eq!(
        env.ok(&["trust", "--list"])["trust"]["proposal"],
        json!(null)
    );
    fs::write(&config, "[setup]\ncommands = []\n").unwrap();
    assert_eq!(new(&env, "b", &[]), json!(null), "none is an answer, too");
}

#[test]
fn k14_a_failure_keeps_the_tree_or_takes_it_back() {
    let env = repository();
    let fails = [
        "--set",
        "setup.commands=echo ok >> made.log, sh -c 'exit 7', echo never >> made.log",
    ];
    let answer = env.weald(&[&["new", "a", "--json"], &fails[..]].concat());
    assert_eq!(answer.code, 0, "{answer:#?}");
    let setup = &answer.json()["setup"];
    assert_eq!(
        (&setup["outcome"], &setup["commands"][1]["exit"]),
        (&json!("failed"), &json!(7))
    );
    assert_eq!(
        made(&env, "a").as_deref(),
        Some("ok\n"),
        "nothing after the failure"
    );
    assert!(answer.stderr.contains("weald setup a"), "{answer:#?}");
    assert!(has_event(&env, "a", "tree.setup.failed"));
    env.refused(&[&["setup", "a"], &fails[..]].concat(), 1, "setup_failed");
    let rollback = [
        &["new", "b"],
        &fails[..],
        &["--set", "setup.on_failure=rollback"],
    ]
    .concat();
    env.ok(&["task", "add", "t"]);
    let refused = env.refused(
        &[&rollback[..], &["--task", "1"]].concat(),
        1,
        "setup_failed",
    );
    assert!(!env.root().join("app.weald/b").exists());
    assert_eq!(
        env.ok(&["task", "show", "1"])["task"]["worktree"],
        json!(null)
    );
    let id = refused["error"]["details"]["trash"].to_string();
    assert!(
        refused["error"]["hint"]
            .as_str()
            .unwrap()
            .contains(&format!("weald restore {id}"))
    );
    assert_eq!(env.git(&["branch", "--list", "wt/b"]), "");
    env.ok(&["trash", "restore", &id]);
    assert_eq!(
        made(&env, "b").as_deref(),
        Some("ok\n"),
        "even that is not lost"
    );
}

#[test]
fn k14_a_command_is_held_in_the_tree_sees_its_variables_and_ends_in_time() {
    let env = repository();
    env.ok(&["task", "add", "t"]);
    let script = "env > env.log; touch $WEALD_MAIN/escaped; true";
    let options = ["--task", "1", "--set", &format!("setup.commands={script}")];
    let mut command = env.weald_command(&[&["new", "a", "--json"], &options[..]].concat());
    command
        .env("GIT_DIR", "/nowhere")
        .env("GIT_INDEX_FILE", "/nowhere/index");
    command
        .env("WEALD_PORT", "1")
        .env_remove("GIT_CONFIG_NOSYSTEM");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let tree: Value = serde_json::from_slice(&output.stdout).unwrap();
    let path = env.root().join("app.weald/a");
    let seen = fs::read_to_string(path.join("env.log")).unwrap();
    let value = |name: &str| {
        let lines = seen.lines().filter_map(|line| line.split_once('='));
        let found: Vec<_> = lines.filter(|(known, _)| *known == name).collect();
        assert!(found.len() < 2, "{name}");
        found.first().map(|(_, value)| (*value).to_owned())
    };
    let port = tree["tree"]["ports"]["first"].to_string();
    let main = env.repo().display().to_string();
    let here = path.display().to_string();
    for (name, expected) in [
        ("WEALD_TREE", "a"),
        ("WEALD_TREE_PATH", &here),
        ("WEALD_TASK", "1"),
        ("WEALD_MAIN", &main),
        ("WEALD_PORT", &port),
        ("CONDUCTOR_PORT", &port),
        ("CONDUCTOR_ROOT_PATH", &main),
        ("CONDUCTOR_WORKSPACE_NAME", "a"),
        ("CONDUCTOR_WORKSPACE_PATH", &here),
        ("CONDUCTOR_DEFAULT_BRANCH", "main"),
        ("ROOT_WORKTREE_PATH", &main),
        ("CODEX_SOURCE_TREE_PATH", &main),
        ("CODEX_WORKTREE_PATH", &here),
    ] {
        assert_eq!(value(name).as_deref(), Some(expected), "{name}");
    }
    assert_eq!((value("GIT_DIR"), value("GIT_INDEX_FILE")), (None, None));
    assert!(!env.repo().join("escaped").exists());
    let slow = [
        "--set",
        "setup.timeout=1s",
        "--set",
        "setup.commands=sleep 60",
    ];
    let setup = new(&env, "b", &slow);
    assert_eq!(setup["outcome"], "failed");
    assert!(
        setup["error"].as_str().unwrap().contains("setup.timeout"),
        "{setup}"
    );
}

#[test]
fn k14_output_is_narrated_and_capped() {
    let env = repository();
    let loud = "setup.commands=echo hello; head -c 3000000 /dev/zero | tr '\\0' x";
    let answer = env.weald(&["new", "a", "--json", "--set", loud]);
    assert_eq!(answer.code, 0);
    assert_eq!(
        answer.json()["setup"]["outcome"],
        "done",
        "stdout is the answer alone"
    );
    assert!(answer.stderr.contains("hello\n"));
    assert!(answer.stderr.len() < 2_000_000, "{}", answer.stderr.len());
    assert!(answer.stderr.contains("the rest was dropped"));
}

#[test]
fn k14_other_tools_files_are_read_at_the_targets_tip_and_approved_alike() {
    let codex = "version = 1\nname = 'x'\n[setup]\nscript = '''\necho codex >> made.log\n'''\n";
    for (file, content, said) in [
        (".codex/environments/environment.toml", codex, "codex\n"),
        (
            ".cursor/worktrees.json",
            r#"{"setup-worktree": ["echo cursor >> made.log"]}"#,
            "cursor\n",
        ),
        (
            "conductor.json",
            r#"{"scripts": {"setup": "echo $CONDUCTOR_WORKSPACE_NAME >> made.log"}}"#,
            "b\n",
        ),
        (
            ".config/wt.toml",
            "post-create = 'echo {{ branch }} >> made.log'",
            "wt/b\n",
        ),
    ] {
        let env = proposing(file, content);
        let setup = new(&env, "a", &[]);
        assert_eq!(
            (&setup["outcome"], &setup["from"]),
            (&json!("unapproved"), &json!(file))
        );
        assert_eq!(made(&env, "a"), None);
        let trust = env.ok(&["trust"]);
        assert_eq!(trust["trust"]["proposal"]["from"], file);
        assert_eq!(new(&env, "b", &[])["outcome"], "done", "{file}");
        assert_eq!(made(&env, "b").as_deref(), Some(said));
        // weald's own come first.
        propose(&env, "weald.toml", ONE);
        assert_eq!(new(&env, "c", &[])["from"], "weald.toml");
    }
    let env = proposing("conductor.json", "{");
    let answer = env.weald(&["new", "a", "--json"]);
    assert_eq!((answer.code, &answer.json()["setup"]), (0, &json!(null)));
    assert!(
        answer.stderr.contains("conductor.json can't be read"),
        "{answer:#?}"
    );
    let env = proposing(
        ".config/wt.toml",
        "pre-start = 'serve {{ branch | hash_port }}'",
    );
    env.ok(&["trust"]);
    let setup = new(&env, "a", &[]);
    assert!(
        setup["error"].as_str().unwrap().contains("hash_port"),
        "{setup}"
    );
}

#[test]
fn k14_a_running_tree_is_not_set_up() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    let mut run = env.weald_command(&["run", "a", "--", "sh", "-c", "touch started; sleep 60"]);
    let mut child = run.spawn().unwrap();
    while !tree.join("started").exists() {
        std::thread::yield_now();
    }
    env.refused(&["setup", "a"], 5, "tree_running");
    child.kill().unwrap();
    child.wait().unwrap();
    let inside = weald_in(&env, &tree, &["setup", "--json"]);
    assert_eq!(
        (inside.code, &inside.json()["setup"]),
        (0, &json!(null)),
        "{inside:#?}"
    );
}

#[test]
fn x7_without_user_namespaces_a_set_up_does_not_run() {
    let env = repository();
    let script = r#"
echo 0 > /proc/sys/user/max_user_namespaces || exit 77
set -e
own="--set setup.commands=./make"
"$WEALD" new a --json $own > out 2> err; grep -q '"outcome":"unavailable"' out; grep -q 'weald setup a' err
[ ! -e ../app.weald/a/made.log ]
code=0; "$WEALD" setup a $own 2> err || code=$?; [ "$code" = 6 ]; [ ! -e ../app.weald/a/made.log ]
code=0; "$WEALD" new b $own --set setup.on_failure=rollback || code=$?; [ "$code" = 6 ]; [ ! -e ../app.weald/b ]
printf '#!/bin/sh\ntouch hooked.log\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout
"$WEALD" new c 2> err; grep -q 'hook failed: it did not run' err; [ ! -e ../app.weald/c/hooked.log ]
"#;
    fs::create_dir_all(env.repo().join(".git/hooks")).unwrap();
    propose(&env, "make", "#!/bin/sh\ntouch made.log\n");
    env.git(&["update-index", "--chmod=+x", "make"]);
    env.git(&["commit", "-q", "-m", "executable"]);
    assert_eq!(
        new(&env, "works", &["--set", "setup.commands=./make"])["outcome"],
        "done"
    );
    let output = Command::new("unshare")
        .args(["-Ur", "sh", "-c", script])
        .current_dir(env.repo())
        .env("HOME", env.home())
        .env("WEALD", env!("CARGO_BIN_EXE_weald"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || told.contains("unshare failed") {
        return skipped("a user namespace without further ones can't be made here");
    }
    let err = fs::read_to_string(env.repo().join("err")).unwrap_or_default();
    assert!(
        output.status.success(),
        "{}\n{told}\n{err}",
        String::from_utf8_lossy(&output.stdout)
    );
}
