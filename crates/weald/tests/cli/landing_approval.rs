//! Landings that need a person: who may approve, what an approval is for, and what needs one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weald_testkit::{Answer, TestEnv};

use crate::trees_remove::{KINDS, commit, git_in, grow, repository};

fn land(env: &TestEnv, more: &[&str]) -> Value {
    let answer = env.weald(&[&["land", "a", "--keep", "--json"], more].concat());
    answer.json()["landings"][0].clone()
}

/// Refused for want of an approval, with nothing moved; answers the reason.
#[track_caller]
fn assert_refused(env: &TestEnv, more: &[&str]) -> Value {
    let before = env.git(&["rev-parse", "main"]);
    let landing = land(env, more);
    assert_eq!(landing["outcome"], "refused", "{landing}");
    assert_eq!(landing["reason"]["code"], "needs_approval", "{landing}");
    assert_eq!(landing["reason"]["hint"], "weald approve a");
    assert_eq!(env.git(&["rev-parse", "main"]), before);
    landing["reason"].clone()
}

#[track_caller]
fn assert_lands(env: &TestEnv) {
    let landing = land(env, &[]);
    assert_eq!(landing["outcome"], "landed", "{landing}");
    // Whatever moves the checkout, here it is not the question.
    env.git(&["reset", "-q", "--hard", "main"]);
}

fn secret(env: &TestEnv) -> PathBuf {
    env.home().join(".local/state/weald/approval/key")
}

/// A repository whose landings all need a person, with one commit in tree `a`.
fn guarded(kind: &str) -> (TestEnv, PathBuf, String) {
    let env = repository();
    env.ok(&["config", "set", "policy.gate", "human"]);
    let tree = grow(&env, "a", kind);
    let head = commit(&env, &tree, "mine", "m\n");
    (env, tree, head)
}

#[test]
fn m18_a_human_gate_wants_an_approval_of_the_exact_head() {
    for kind in KINDS {
        let (env, tree, head) = guarded(kind);
        assert_refused(&env, &[]);
        let approved = approve(&env, "a");
        assert_eq!(approved["approval"]["head"], head, "{approved}");
        assert_eq!(approved["approval"]["target"], "main");
        assert_eq!(approved["commits"][0]["commit"], head);
        assert_eq!(approved["files"][0]["path"], "mine");
        assert_eq!(approved["files"][0]["protected"], false);
        let more = commit(&env, &tree, "more", "m\n");
        let reason = assert_refused(&env, &[]);
        let message = reason["message"].as_str().unwrap();
        assert!(message.contains(&head[..12]) && message.contains(&more[..12]));
        approve(&env, "a");
        assert_lands(&env);
        // It was for that one only.
        commit(&env, &tree, "another", "m\n");
        assert_refused(&env, &[]);
    }
}

#[test]
fn m18_an_approval_is_for_the_head_that_was_reviewed() {
    let (env, tree, head) = guarded("sealed");
    let shown = env.weald_alone(&["approve", "a", "--yes", "--head", &head[..10]]);
    assert_eq!(shown.code, 0, "{shown:#?}");
    // What it is for comes before the word.
    let place = |text: &str| {
        shown
            .stdout
            .find(text)
            .unwrap_or_else(|| panic!("{shown:#?}"))
    };
    assert!(place(&head[..9]) < place("a may land on main"));
    assert!(place("  mine") < place("a may land on main"));
    let more = commit(&env, &tree, "more", "m\n");
    let late = ["approve", "a", "--yes", "--json", "--head", &head];
    let refused = env.weald_alone(&late);
    assert_eq!(
        (refused.code, refused.error_code().as_str()),
        (1, "head_moved")
    );
    assert_refused(&env, &[]);
    let odd = env.weald_alone(&["approve", "a", "--yes", "--json", "--head", "main"]);
    assert_eq!(odd.code, 2, "{odd:#?}");
    let upper = more.to_ascii_uppercase();
    let bound = env.weald_alone(&["approve", "a", "--yes", "--json", "--head", &upper]);
    assert_eq!(bound.json()["approval"]["head"], more, "{bound:#?}");
    assert_lands(&env);
}

#[test]
fn m18_an_approval_is_only_as_good_as_the_secret_it_was_made_with() {
    let (env, _, _) = guarded("sealed");
    approve(&env, "a");
    let file = secret(&env);
    let found = file.metadata().unwrap();
    assert_eq!(
        (found.len(), found.permissions().mode() & 0o777),
        (32, 0o600)
    );
    let folder = file.parent().unwrap().metadata().unwrap();
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
    let own = fs::read(&file).unwrap();
    fs::write(&file, [7; 32]).unwrap();
    let reason = assert_refused(&env, &[]);
    assert!(reason.to_string().contains("your secret"), "{reason}");
    fs::remove_file(&file).unwrap();
    assert_refused(&env, &[]);
    fs::write(&file, &own).unwrap();
    // Written anew it can be read by others, so it proves nothing.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert_refused(&env, &[]);
    let failed = env.weald_alone(&["approve", "a", "--yes"]);
    assert_eq!(failed.code, 1, "{failed:#?}");
    // It was shown before anything could fail.
    assert!(failed.stdout.contains("  mine"), "{failed:#?}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_lands(&env);
}

fn answered(command: &mut std::process::Command) -> Answer {
    Answer::of(command.output().unwrap())
}

#[test]
fn m18_an_agents_session_can_not_approve() {
    let (env, _, _) = guarded("sealed");
    let asked = ["approve", "a", "--yes", "--json"];
    for name in ["CLAUDECODE", "CODEX_THREAD_ID", "GEMINI_CLI", "WEALD_TOKEN"] {
        let refused = answered(env.weald_command(&asked).env(name, "1"));
        assert_eq!(refused.error_code(), "agent_session", "{name}");
        assert!(refused.stdout.contains(name), "{refused:#?}");
    }
    // A program of that name is above it.
    let agent = env.root().join("claude");
    fs::write(&agent, "#!/bin/sh\n\"$@\"\nexit $?\n").unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let weald = env.weald_command(&[]).get_program().to_owned();
    let refused = answered(env.command(&agent).arg(&weald).args(asked));
    assert_eq!(refused.error_code(), "agent_session", "{refused:#?}");
    // So is a run in a tree, whose sandbox somebody switched off.
    let free = ["run", "a", "--sandbox", "off", "--"];
    let refused = answered(env.weald_command(&free).arg(&weald).args(asked));
    assert_eq!(refused.error_code(), "agent_session", "{refused:#?}");
    assert!(
        refused.stdout.contains("it runs in worktree a"),
        "{refused:#?}"
    );
    // The home is seen from inside wherever this test was built.
    let seen = env.home().join("weald");
    fs::copy(&weald, &seen).unwrap();
    let confined = ["run", "a", "--"];
    let refused = answered(env.weald_command(&confined).arg(&seen).args(asked));
    assert_eq!(refused.error_code(), "not_allowed_inside", "{refused:#?}");
    assert_refused(&env, &[]);
    approve(&env, "a");
    assert_lands(&env);
}

#[test]
fn m18_what_could_not_be_shown_is_not_approved() {
    let (env, _, _) = guarded("sealed");
    let weald = env.weald_command(&[]).get_program().to_owned();
    let script = "\"$0\" approve a --yes > /dev/full";
    let answer = env.alone([
        "sh".as_ref(),
        "-c".as_ref(),
        script.as_ref(),
        weald.as_os_str(),
    ]);
    assert_ne!(answer.code, 0, "{answer:#?}");
    assert_eq!(env.ok(&["show", "a"])["tree"]["approval"], Value::Null);
    assert_refused(&env, &[]);
}

#[test]
fn m18_without_a_terminal_nobody_approves_by_accident() {
    let (env, _, _) = guarded("sealed");
    env.refused(&["approve", "a"], 1, "needs_terminal");
    assert_eq!(env.ok(&["show", "a"])["tree"]["approval"], Value::Null);
    let unknown = env.weald_alone(&["approve", "nobody", "--yes", "--json"]);
    assert_eq!(
        (unknown.code, unknown.error_code().as_str()),
        (4, "tree_not_found")
    );
}

/// Approves a tree as a person would.
#[track_caller]
pub fn approve(env: &TestEnv, tree: &str) -> Value {
    let answer = env.weald_alone(&["approve", tree, "--yes", "--json"]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    answer.json()
}

/// What a command in a sandbox sees of the secret.
fn seen(env: &TestEnv, before: &[&str]) -> Answer {
    let file = secret(env);
    env.weald(&[before, &["--", "cat", file.to_str().unwrap()]].concat())
}

#[test]
fn m18_no_run_and_no_visit_reads_the_secret() {
    let (env, tree, _) = guarded("sealed");
    // A run that began before there was a secret does not see it either.
    let file = secret(&env);
    let script = format!(
        "touch ready; until [ -e go ]; do sleep 0.05; done; ls -A {0}; cat {1}",
        file.parent().unwrap().display(),
        file.display()
    );
    let mut early = env.weald_command(&["run", "a", "--", "sh", "-c", &script]);
    let early = early.stdout(std::process::Stdio::piped());
    let early = early.stderr(std::process::Stdio::piped()).spawn().unwrap();
    while !tree.join("ready").exists() {
        std::thread::yield_now();
    }
    approve(&env, "a");
    let own = fs::read(&file).unwrap();
    fs::write(tree.join("go"), "").unwrap();
    let early = early.wait_with_output().unwrap();
    assert!(
        !early.status.success() && early.stdout.is_empty(),
        "{early:?}"
    );
    let elsewhere = env.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let exec = ["sandbox", "exec", "--write", elsewhere.to_str().unwrap()];
    for before in [&["run", "a"][..], &exec] {
        let answer = seen(&env, before);
        assert!(answer.code != 0 && answer.stdout.is_empty(), "{answer:#?}");
    }
    let free = env
        .weald_command(&["run", "a", "--sandbox", "off", "--", "cat"])
        .arg(&file)
        .output();
    assert_eq!(free.unwrap().stdout, own, "it would be there to be read");
    // A filter of the tree's own runs in a visit that writes.
    git_in(&env, &tree, &["add", "-A"]);
    git_in(&env, &tree, &["commit", "-q", "-m", "markers"]);
    let smudge = format!("cat {} > leaked 2>&1; cat", file.display());
    git_in(&env, &tree, &["config", "filter.leak.smudge", &smudge]);
    commit(&env, &env.repo(), ".gitattributes", "*.x filter=leak\n");
    commit(&env, &env.repo(), "file.x", "x\n");
    assert_eq!(env.ok(&["sync", "a"])["outcome"], "merged");
    let leaked = fs::read(tree.join("leaked")).expect("the filter ran");
    assert!(!leaked.windows(own.len()).any(|part| part == own));
}

#[test]
fn m18_at_level_landlock_the_secret_and_the_record_can_not_be_written() {
    let (env, _, _) = guarded("sealed");
    approve(&env, "a");
    let (file, store) = (secret(&env), env.private());
    let own = fs::read(&file).unwrap();
    let script = format!(
        "echo x > {0}; rm -f {0}; rm -rf {1}; echo x > {1}/weald.db; true",
        file.display(),
        store.display()
    );
    let level = ["--sandbox", "landlock"];
    env.weald(&[&["run", "a"], &level[..], &["--", "sh", "-c", &script]].concat());
    assert_eq!(fs::read(&file).unwrap(), own);
    assert_lands(&env);
}

/// Replaces a file in a tree and lands it without an approval.
fn change(env: &TestEnv, tree: &Path, file: &str) {
    let full = tree.join(file);
    fs::create_dir_all(full.parent().unwrap()).unwrap();
    commit(env, tree, file, "# changed\n");
}

#[test]
fn m24_what_weald_reads_at_the_target_and_protected_paths_need_approval() {
    let env = repository();
    fs::create_dir(env.repo().join("infra")).unwrap();
    commit(&env, &env.repo(), "infra/prod", "p\np\np\np\n");
    commit(
        &env,
        &env.repo(),
        "weald.toml",
        "policy.protected = ['infra/']\n",
    );
    env.ok(&["config", "set", "policy.protected", "*.lock"]);
    let tree = grow(&env, "a", "sealed");
    change(&env, &tree, "ordinary");
    assert_lands(&env);
    for file in [
        "weald.toml",
        ".config/wt.toml",
        ".claude/settings.json",
        "infra/new",
        "sub/Cargo.lock",
    ] {
        change(&env, &tree, file);
        let reason = assert_refused(&env, &[]);
        assert_eq!(reason["paths"], serde_json::json!([file]), "{reason}");
        git_in(&env, &tree, &["reset", "-q", "--hard", "HEAD~1"]);
    }
    // Away from there, or into there: both names count.
    for (from, to) in [("infra/prod", "elsewhere"), ("ordinary", "infra/ordinary")] {
        git_in(&env, &tree, &["mv", from, to]);
        git_in(&env, &tree, &["commit", "-q", "-m", "moved"]);
        assert_refused(&env, &[]);
        git_in(&env, &tree, &["reset", "-q", "--hard", "HEAD~1"]);
    }
    change(&env, &tree, "infra/prod");
    let approved = approve(&env, "a");
    assert_eq!(approved["files"][0]["protected"], true, "{approved}");
    assert_lands(&env);
}

#[test]
fn m24_settings_of_a_tree_loosen_nothing() {
    let (env, tree, _) = guarded("sealed");
    let loose = "target = 'elsewhere'\npolicy.gate = 'none'\npolicy.protected = []\nsandbox.level = 'landlock'\n\
                 sandbox.network = 'on'\nsandbox.write = ['/']\nsandbox.sockets = ['/x']\nlanding.hooks = 'run'\n\
                 landing.identity = 'Evil <evil@example.com>'\ngate.command = 'true'\n";
    let before = env.weald(&["config", "show"]).stdout;
    commit(&env, &tree, "weald.toml", loose);
    for directory in [&tree, &env.repo()] {
        let shown = env.weald(&["-C", directory.to_str().unwrap(), "config", "show"]);
        assert_eq!(shown.stdout, before, "{}", directory.display());
    }
    let reason = assert_refused(&env, &[]);
    assert_eq!(reason["paths"][0], "weald.toml");
    // Even on the target, approved by a person, it loosens nothing that is guarded.
    approve(&env, "a");
    assert_lands(&env);
    let shown = env.ok(&["config", "show"]);
    let text = shown.to_string();
    assert!(text.contains("can't loosen"), "{text}");
    env.ok(&["trust"]);
    commit(&env, &tree, "more", "m\n");
    assert_refused(&env, &[]);
}

#[test]
fn m24_protected_paths_that_landed_just_now_count_for_the_next_in_the_queue() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    let other = grow(&env, "b", "sealed");
    commit(&env, &tree, "weald.toml", "policy.protected = ['infra']\n");
    change(&env, &other, "infra/x");
    approve(&env, "a");
    let answer = env.weald(&["land", "a", "b", "--json"]);
    let landings = answer.json()["landings"].clone();
    assert_eq!(landings[0]["outcome"], "landed", "{landings}");
    assert_eq!(
        landings[1]["reason"]["code"], "needs_approval",
        "{landings}"
    );
}

#[test]
fn m24_an_agent_loosens_no_guard_by_flags_variables_or_configuration() {
    let (env, _, _) = guarded("sealed");
    env.ok(&["config", "set", "gate.command", "test -e mine"]);
    let file = env.private().join("config.toml");
    let before = fs::read(&file).unwrap();
    let agent = |args: &[&str], name: &str, value: &str| {
        let mut command = env.weald_command(args);
        answered(command.env("CLAUDECODE", "1").env(name, value))
    };
    for set in [
        "policy.gate=none",
        "policy.gate=tests",
        "gate.command=true",
        "sandbox.write=/",
        "setup.commands=true",
        "profile=default",
        "landing.hooks=run",
        "target=wt/a",
    ] {
        let (key, value) = set.split_once('=').unwrap();
        let asked: [&[&str]; 4] = [
            &["land", "a", "--json", "--set", set],
            &["revert", "1", "--json", "--set", set],
            &["queue", "resume", "--json", "--set", set],
            &["queue", "retry", "1", "--json", "--set", set],
        ];
        // The gate is the owner's own word, so the default profile takes nothing away from it.
        if key != "profile" {
            for asked in asked {
                let refused = agent(asked, "X", "1");
                assert_eq!(refused.error_code(), "agent_session", "{asked:?}");
            }
            let refused = agent(&["config", "set", key, value, "--json"], "X", "1");
            assert_eq!(refused.error_code(), "agent_session", "{set}");
        }
        let refused = agent(&["config", "unset", key, "--json"], "X", "1");
        assert_eq!(refused.error_code(), "agent_session", "{set}");
    }
    assert_eq!(fs::read(&file).unwrap(), before);
    // A variable may be its owner's: it does not count, and that is said.
    let landed = ["land", "a", "--keep", "--json"];
    let refused = agent(&landed, "WEALD_POLICY_GATE", "none");
    assert_eq!(
        refused.json()["landings"][0]["reason"]["code"],
        "needs_approval",
        "{refused:#?}"
    );
    assert!(refused.stderr.contains("ignoring $WEALD_POLICY_GATE"));
    approve(&env, "a");
    let green = agent(&landed, "WEALD_GATE_COMMAND", "false");
    let landing = &green.json()["landings"][0];
    assert_eq!(landing["outcome"], "landed", "{green:#?}");
    assert_eq!(landing["gate"]["command"], "test -e mine");
}

#[test]
fn m24_an_agent_may_guard_more_and_a_person_may_loosen() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    commit(&env, &tree, "mine", "m\n");
    let agent = |args: &[&str], name: &str, value: &str| {
        let mut command = env.weald_command(args);
        answered(command.env("CLAUDECODE", "1").env(name, value))
    };
    let landed = ["land", "a", "--keep", "--json"];
    let refused = agent(&landed, "WEALD_POLICY_GATE", "human");
    let reason = &refused.json()["landings"][0]["reason"];
    assert_eq!(reason["code"], "needs_approval", "{refused:#?}");
    let red = agent(&landed, "WEALD_GATE_COMMAND", "false");
    assert_eq!(red.json()["landings"][0]["outcome"], "red", "{red:#?}");
    let set = ["config", "set", "policy.gate", "human", "--json"];
    assert_eq!(agent(&set, "X", "1").code, 0);
    let left = agent(&["init", "--profile", "two-plane", "--json"], "X", "1");
    assert_eq!(left.code, 0, "{left:#?}");
    let person = env.weald_alone(&[&landed[..], &["--set", "policy.gate=none"]].concat());
    assert_eq!(person.json()["landings"][0]["outcome"], "landed");
}
