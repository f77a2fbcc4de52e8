//! What a start may not cost: a command about records starts no process, not even git's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use weald_testkit::{Answer, TestEnv};

use crate::env;

/// A folder with a `git` in it that writes down its calls and then does what git does.
fn telling_git(env: &TestEnv) -> (PathBuf, PathBuf) {
    let (folder, told) = (env.root().join("telling"), env.root().join("told"));
    let found = env.command("sh").args(["-c", "command -v git"]).output();
    let git = String::from_utf8(found.unwrap().stdout).unwrap();
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> '{}'\nexec '{}' \"$@\"\n",
        told.display(),
        git.trim()
    );
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("git"), script).unwrap();
    fs::set_permissions(folder.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    (folder, told)
}

#[test]
fn commands_about_records_start_no_git() {
    let env = env();
    env.ok(&["task", "add", "a"]);
    // The first command that finds a folder to remember the target's configuration in asks git for it.
    env.ok(&["task", "show", "1"]);
    let (folder, told) = telling_git(&env);
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let weald = |args: &[&str]| {
        let mut command = env.weald_command(args);
        Answer::of(command.env("PATH", &path).output().unwrap())
    };
    let commands: [&[&str]; 10] = [
        &["--version"],
        &["task", "show", "1"],
        &["task", "add", "b"],
        &["task", "ready"],
        &["task", "claim", "1", "--session", "alice"],
        &["task", "renew", "1", "--token", "1"],
        &["task", "done", "1", "--token", "1"],
        &["events", "--limit", "5"],
        &["msg", "inbox", "--session", "alice"],
        &["session", "list"],
    ];
    for command in commands {
        let answer = weald(command);
        assert_eq!(answer.code, 0, "{command:?}: {answer:?}");
        let calls = fs::read_to_string(&told).unwrap_or_default();
        assert_eq!(calls, "", "{command:?} starts git");
    }
    // A commit changes the target, whose configuration is read once, by git.
    env.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    weald(&["task", "show", "1"]);
    let calls = fs::read_to_string(&told).expect("this git is the one that is found");
    assert!(calls.contains("cat-file"), "{calls}");
    fs::remove_file(&told).unwrap();
    weald(&["task", "show", "1"]);
    assert!(!told.exists(), "what git said is remembered");
}
