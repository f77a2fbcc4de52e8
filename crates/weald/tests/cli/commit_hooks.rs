//! Hooks of the commits that weald makes: they have what every command in the worktree has, and a time limit.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use weald_testkit::TestEnv;

use crate::trees_remove::{KINDS, commit, git_in, grow, repository};

/// A hook of the repository, which worktrees have, too.
fn hook(env: &TestEnv, name: &str, script: &str) {
    let file = env.repo().join(".git/hooks").join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

fn read(tree: &Path, file: &str) -> String {
    fs::read_to_string(tree.join(file)).unwrap()
}

#[test]
fn y5_a_hook_of_weald_s_commit_has_the_network_environment_and_home_of_a_run() {
    for kind in KINDS {
        let env = repository();
        let tree = grow(&env, "a", kind);
        let see = "readlink /proc/self/ns/net; cut -d: -f1 /proc/net/dev | sort; echo \"$FROM_HERE\"; cat ~/cached";
        hook(&env, "pre-commit", &format!("{{ {see}; }} > hook.log"));
        let weald = |args: &[&str]| {
            let mut command = env.weald_command(args);
            command.env("FROM_HERE", "yes");
            let output = command.output().unwrap();
            assert!(output.status.success(), "{args:?}: {output:?}");
        };
        let in_a_run = format!("echo warm > ~/cached; {{ {see}; }} > run.log");
        weald(&["run", "a", "--", "sh", "-c", &in_a_run]);
        fs::write(tree.join("config.py"), "changed\n").unwrap();
        weald(&["land", "a", "--keep", "--commit", "-m", "All"]);
        let seen = read(&tree, "hook.log");
        assert_eq!(seen, read(&tree, "run.log"), "{kind}");
        assert!(seen.ends_with("yes\nwarm\n"), "{kind}: {seen}");
        let host = fs::read_link("/proc/self/ns/net").unwrap();
        assert!(seen.starts_with(host.to_str().unwrap()), "{kind}: {seen}");
        // Without a network for runs there is none for hooks.
        fs::write(tree.join("config.py"), "again\n").unwrap();
        weald(&[
            "--set",
            "sandbox.network=off",
            "land",
            "a",
            "--keep",
            "--commit",
            "-m",
            "All",
        ]);
        assert!(!read(&tree, "hook.log").starts_with(host.to_str().unwrap()));
    }
}

#[test]
fn y5_what_only_looks_at_a_worktree_stays_offline() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    fs::write(tree.join(".gitattributes"), "probed filter=net\n").unwrap();
    commit(&env, &tree, "probed", "offline\n");
    let host = fs::read_link("/proc/self/ns/net").unwrap();
    let filter = format!(
        "test $(readlink /proc/self/ns/net) = '{}' && echo online || echo offline",
        host.display()
    );
    git_in(&env, &tree, &["config", "filter.net.clean", &filter]);
    fs::write(tree.join("probed"), "offline\n").unwrap();
    let seen = env.ok(&["diff", "a"])["files"].clone();
    let changed = seen.as_array().unwrap().iter();
    let mut changed =
        changed.filter(|file| file["path"] == "probed" && file["state"] == "unstaged");
    assert!(changed.next().is_none(), "{seen:#}");
    let online = git_in(&env, &tree, &["status", "--porcelain", "probed"]);
    assert_eq!(online, " M probed\n", "the filter tells the difference");
}

#[test]
fn y5_m8_a_hook_that_hangs_is_shown_named_and_ended_and_nothing_is_left() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    fs::write(tree.join("config.py"), "changed\n").unwrap();
    let head = git_in(&env, &tree, &["rev-parse", "HEAD"]);
    hook(&env, "pre-commit", "echo linting 1 of 9 >&2; sleep 600");
    let land = [
        "--set",
        "commit.timeout=2s",
        "land",
        "a",
        "--keep",
        "--json",
    ];
    let land = |more: &[&str]| env.weald(&[&land[..], &["--commit", "-m", "All"], more].concat());
    let refused = land(&[]);
    let landing = refused.json()["landings"][0].clone();
    assert_eq!(landing["reason"]["code"], "not_committed", "{landing:#}");
    let message = landing["reason"]["message"].as_str().unwrap();
    assert!(message.contains("the pre-commit hook in a"), "{message}");
    assert!(message.contains("2s (commit.timeout)"), "{message}");
    // Meanwhile a person saw what goes on.
    let said = &refused.stderr;
    assert!(said.contains("committing the changes in a"), "{said}");
    assert!(said.contains("linting 1 of 9"), "{said}");
    assert_eq!(git_in(&env, &tree, &["rev-parse", "HEAD"]), head);
    assert_eq!(
        git_in(&env, &tree, &["status", "--porcelain"]),
        " M config.py\n"
    );
    // A hook that comes after the commit does not take it back.
    fs::remove_file(env.repo().join(".git/hooks/pre-commit")).unwrap();
    hook(&env, "post-commit", "sleep 600");
    let landed = land(&["--set", "commit.timeout=1s"]);
    let landing = landed.json()["landings"][0].clone();
    assert_eq!(landing["outcome"], "landed", "{landed:#?}");
    assert!(
        landed.stderr.contains("the post-commit hook in a"),
        "{landed:#?}"
    );
    assert_eq!(git_in(&env, &tree, &["status", "--porcelain"]), "");
    assert_eq!(env.git(&["show", "main:config.py"]), "changed\n");
}
