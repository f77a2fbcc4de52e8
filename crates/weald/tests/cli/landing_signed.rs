//! What lands is signed with the user's key, by the user's own program, after its tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use weald_testkit::TestEnv;

use crate::trees_remove::{commit, git_in, grow, repository};

/// Ends the agent that gnupg started for a throw-away home.
struct Gnupg<'e>(&'e TestEnv);

impl Drop for Gnupg<'_> {
    fn drop(&mut self) {
        let mut kill = self.0.command("gpgconf");
        let _ = kill.args(["--kill", "gpg-agent"]).status();
    }
}

#[track_caller]
fn run(env: &TestEnv, program: &str, args: &[&str]) {
    let output = env.command(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
}

fn configure(env: &TestEnv, settings: &[(&str, &str)]) {
    for (key, value) in settings {
        env.git(&["config", "--global", key, value]);
    }
}

/// A key of gnupg without a passphrase.
fn with_gpg_key(env: &TestEnv) -> Gnupg<'_> {
    let home = env.home().join(".gnupg");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    let mail = "test@example.com";
    let key = ["--quick-gen-key", mail, "ed25519", "sign", "never"];
    let quiet = ["--batch", "--quiet", "--passphrase", ""];
    run(env, "gpg", &[&quiet[..], &key[..]].concat());
    configure(
        env,
        &[("commit.gpgsign", "true"), ("user.signingkey", mail)],
    );
    Gnupg(env)
}

/// A key of ssh without a passphrase, which git knows to be the user's.
fn with_ssh_key(env: &TestEnv) {
    let folder = env.home().join(".ssh");
    fs::create_dir(&folder).unwrap();
    let key = folder.join("id");
    let file = key.to_str().unwrap();
    run(
        env,
        "ssh-keygen",
        &["-q", "-t", "ed25519", "-N", "", "-f", file],
    );
    let public = fs::read_to_string(folder.join("id.pub")).unwrap();
    let signers = folder.join("signers");
    fs::write(&signers, format!("test@example.com {public}")).unwrap();
    configure(
        env,
        &[
            ("commit.gpgsign", "true"),
            ("gpg.format", "ssh"),
            ("user.signingkey", "~/.ssh/id.pub"),
            ("gpg.ssh.allowedSignersFile", signers.to_str().unwrap()),
        ],
    );
}

fn land(env: &TestEnv, args: &[&str]) -> Value {
    let answer = env.weald(&[&["land", "--json"], args].concat());
    answer.json()["landings"][0].clone()
}

/// Lands and expects that the target is signed now, and that the records speak of exactly that commit.
#[track_caller]
fn lands_signed(env: &TestEnv, args: &[&str], format: &str) -> Value {
    let landing = land(env, args);
    assert_eq!(landing["outcome"], "landed", "{landing:#}");
    assert_eq!(landing["signature"]["state"], "signed", "{landing:#}");
    assert_eq!(landing["signature"]["format"], format, "{landing:#}");
    assert_eq!(landing["new_tip"], env.git(&["rev-parse", "main"]).trim());
    env.git(&["verify-commit", "main"]);
    landing
}

#[test]
fn y6_what_lands_is_signed_with_the_users_gpg_key() {
    let env = repository();
    let _gnupg = with_gpg_key(&env);
    env.ok(&["config", "set", "gate.command", "true"]);
    let tree = grow(&env, "a", "sealed");
    commit(&env, &tree, "one", "1\n");
    let landing = lands_signed(&env, &["a"], "openpgp");
    let tested = env.git(&["rev-parse", "main^{tree}"]);
    assert_eq!(landing["gate"]["tree"], tested.trim());
    // The records are true: nothing is on main that did not land, and it can be undone, signed again.
    assert_eq!(env.weald(&["verify"]).code, 0);
    let revert = env.ok(&["revert", &landing["id"].to_string()])["landing"].clone();
    assert_eq!(revert["signature"]["state"], "signed", "{revert:#}");
    env.git(&["verify-commit", "main"]);
    assert_eq!(env.weald(&["verify"]).code, 0);
}

#[test]
fn y6_every_commit_that_weald_makes_is_signed_with_the_users_ssh_key() {
    let env = repository();
    with_ssh_key(&env);
    for (strategy, kind, commits) in [
        ("squash", "sealed", 1),
        ("merge", "linked", 1),
        ("rebase", "sealed", 2),
    ] {
        let tree = grow(&env, strategy, kind);
        commit(&env, &tree, &format!("{strategy}-1"), "1\n");
        commit(&env, &tree, &format!("{strategy}-2"), "2\n");
        let before = env.git(&["rev-parse", "main"]);
        lands_signed(&env, &[strategy, "--strategy", strategy], "ssh");
        let range = format!("{}..main", before.trim());
        let made = env.git(&["rev-list", "--first-parent", &range]);
        assert_eq!(made.lines().count(), commits, "{strategy}");
        for id in made.lines() {
            env.git(&["verify-commit", id]);
        }
        assert_eq!(env.weald(&["verify"]).code, 0, "{strategy}");
    }
    // A fast-forward lands commits as they are, and says so.
    let tree = grow(&env, "ff", "sealed");
    let head = commit(&env, &tree, "ff", "1\n");
    let landing = land(&env, &["ff", "--strategy", "ff"]);
    assert_eq!(landing["new_tip"], head.as_str(), "{landing:#}");
    let why = landing["signature"]["why"].as_str().unwrap();
    assert!(why.contains("as they are"), "{landing:#}");
}

#[test]
fn y6_gates_that_run_ahead_count_though_the_commit_below_them_gets_signed() {
    let env = repository();
    with_ssh_key(&env);
    env.ok(&["config", "set", "landing.parallel", "3"]);
    env.ok(&["config", "set", "gate.command", "sleep 0.2"]);
    let names = ["a", "b", "c"];
    for name in names {
        let tree = grow(&env, name, "sealed");
        commit(&env, &tree, name, "1\n");
    }
    let answer = env.weald(&["land", "a", "b", "c", "--json"]).json();
    let landings = answer["landings"].as_array().unwrap();
    assert_eq!(landings.len(), 3);
    for landing in landings {
        assert_eq!(landing["signature"]["state"], "signed", "{landing:#}");
        let gate = &landing["gate"];
        assert_eq!(gate["attempts"], 1, "{landing:#}");
        assert_eq!(gate["cached"], Value::Null, "tested again: {landing:#}");
        env.git(&["verify-commit", landing["new_tip"].as_str().unwrap()]);
    }
    assert_eq!(env.weald(&["verify"]).code, 0);
}

#[test]
fn y6_auto_lands_unsigned_when_signing_fails_and_says_so_everywhere() {
    let env = repository();
    configure(
        &env,
        &[
            ("commit.gpgsign", "true"),
            ("gpg.format", "ssh"),
            ("user.signingkey", "~/.ssh/nowhere.pub"),
        ],
    );
    let unsigned = || {
        let board = env.ok(&[]);
        let needs = board["needs"].as_array().unwrap().clone();
        needs
            .into_iter()
            .find(|need| need["kind"] == "unsigned")
            .map(|need| need["what"].as_str().unwrap().to_owned())
    };
    let tree = grow(&env, "a", "sealed");
    commit(&env, &tree, "one", "1\n");
    let landing = land(&env, &["a", "--keep"]);
    assert_eq!(landing["outcome"], "landed", "{landing:#}");
    assert_eq!(landing["signature"]["state"], "unsigned", "{landing:#}");
    let why = landing["signature"]["why"].as_str().unwrap();
    assert!(why.contains("nowhere.pub"), "{why}");
    assert!(unsigned().unwrap().contains("nowhere.pub"));
    commit(&env, &tree, "two", "2\n");
    let told = env.weald(&["land", "a", "--keep"]);
    assert!(told.stdout.contains("not signed: "), "{told:#?}");
    assert!(unsigned().unwrap().contains("like 1 before it"));
    // Whoever wants no signature is told nothing.
    commit(&env, &tree, "three", "3\n");
    let told = env.weald(&["--set", "landing.sign=never", "land", "a"]);
    assert!(!told.stdout.contains("signed"), "{told:#?}");
    assert_eq!(unsigned(), None);
}

#[test]
fn y6_require_refuses_what_it_can_not_sign_and_loses_nothing() {
    let env = repository();
    env.ok(&["config", "set", "landing.sign", "require"]);
    configure(
        &env,
        &[("gpg.format", "ssh"), ("user.signingkey", "~/.ssh/id.pub")],
    );
    let tree = grow(&env, "a", "sealed");
    let head = commit(&env, &tree, "one", "1\n");
    let main = env.git(&["rev-parse", "main"]);
    for strategy in ["squash", "ff"] {
        let landing = land(&env, &["a", "--strategy", strategy]);
        assert_eq!(landing["outcome"], "refused", "{landing:#}");
        assert_eq!(landing["reason"]["code"], "not_signed", "{landing:#}");
        assert_eq!(env.git(&["rev-parse", "main"]), main, "{strategy}");
        assert_eq!(git_in(&env, &tree, &["rev-parse", "HEAD"]).trim(), head);
    }
    // With the key it lands, though nothing says commit.gpgsign.
    with_ssh_key(&env);
    env.git(&["config", "--global", "commit.gpgsign", "false"]);
    let landed = lands_signed(&env, &["a", "--strategy", "rebase"], "ssh");
    // Taking it back is signed, too, and what to do then is to take it back.
    env.git(&["config", "--global", "user.signingkey", "~/.ssh/none.pub"]);
    let id = landed["id"].to_string();
    let told = env.weald(&["revert", &id]);
    let again = format!("then: weald revert {id}\n");
    assert!(
        told.stdout.contains("was not undone") && told.stdout.contains(&again),
        "{told:#?}"
    );
    // A fast-forward can't be signed; the one command that the refusal names lands it.
    let told = env.weald(&[
        "--set",
        "landing.strategy=ff",
        "work",
        "by ff",
        "--",
        "sh",
        "-c",
        "echo y > y; git add y; git commit -qm y",
    ]);
    assert!(
        told.stdout
            .contains("  continue: weald land by-ff --strategy rebase\n"),
        "{told:#?}"
    );
    assert!(!told.stdout.contains("then:"), "{told:#?}");
}

/// A program that leaves a mark.
fn marking(folder: &Path, mark: &Path) -> String {
    let program = folder.join("program");
    let script = format!("#!/bin/sh\ntouch {}\nexit 1\n", mark.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program.to_str().unwrap().to_owned()
}

#[test]
fn y6_no_program_that_the_repository_names_runs_on_the_host() {
    let env = repository();
    let mark = env.root().join("ran");
    let program = marking(env.root(), &mark);
    let tree = grow(&env, "a", "linked");
    // The agent of a linked worktree writes main's configuration.
    let mut script = "git config commit.gpgsign true".to_owned();
    for key in [
        "gpg.program",
        "gpg.ssh.program",
        "gpg.ssh.defaultKeyCommand",
    ] {
        script += &format!(" && git config {key} {program}");
    }
    assert_eq!(env.weald(&["run", "a", "--", "sh", "-c", &script]).code, 0);
    for (format, key) in [
        ("openpgp", "nobody"),
        ("ssh", "key::ssh-ed25519 AAAA"),
        ("ssh", ""),
    ] {
        env.git(&["config", "gpg.format", format]);
        env.git(&["config", "user.signingkey", key]);
        if key.is_empty() {
            env.git(&["config", "--unset", "user.signingkey"]);
        }
        let mut user = env.command("git");
        user.args(["commit", "-q", "--allow-empty", "-m", "mine"]);
        assert!(!user.status().unwrap().success());
        assert!(mark.exists(), "{format} {key}: git itself would run it");
        fs::remove_file(&mark).unwrap();
        fs::write(tree.join("file"), format!("{format} {key}")).unwrap();
        git_in(&env, &tree, &["add", "file"]);
        let work = ["-c", "commit.gpgsign=false", "commit", "-q", "-m", "work"];
        git_in(&env, &tree, &work);
        let landing = land(&env, &["a", "--keep"]);
        assert_eq!(landing["outcome"], "landed", "{landing:#}");
        assert_eq!(landing["signature"]["state"], "unsigned", "{landing:#}");
        let why = landing["signature"]["why"].as_str().unwrap();
        assert!(why.contains("of the repository's own"), "{why}");
        assert!(!mark.exists(), "{format} {key}: it ran");
    }
}
