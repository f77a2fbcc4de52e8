//! What a look into a tree costs that nobody changed: no sandbox, and no git but once for all that are at the same commit.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use weald_testkit::{Answer, TestEnv};

use crate::clean::{abandoned, named};
use crate::trees_remove::{git_in, repository};

/// Runs weald with a git that notes what it is asked, and answers which commands of git ran outside of sandboxes.
fn gits_of(env: &TestEnv, args: &[&str]) -> (Answer, Vec<String>) {
    let folder = env.root().join("noting");
    let notes = env.root().join("notes");
    fs::create_dir_all(&folder).unwrap();
    let path = std::env::var("PATH").unwrap();
    let script = format!(
        "#!/bin/sh\necho \"$@\" 2>/dev/null >> {} || true\nPATH={path} exec git \"$@\"\n",
        notes.display()
    );
    let git = folder.join("git");
    fs::write(&git, script).unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    let _ = fs::remove_file(&notes);
    let mut command = env.weald_command(args);
    command.env("PATH", format!("{}:{path}", folder.display()));
    let answer = Answer::of(command.output().unwrap());
    let noted = fs::read_to_string(&notes).unwrap_or_default();
    let commands = ["status", "rev-list", "update-ref", "cat-file", "config"];
    let asked = |line: &str| {
        let mut words = line.split(' ');
        words
            .find(|word| commands.contains(word))
            .map(str::to_owned)
    };
    (answer, noted.lines().filter_map(asked).collect())
}

#[test]
fn l18_trees_that_nobody_changed_go_without_git() {
    let env = repository();
    let paths: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|name| abandoned(&env, name, "sealed"))
        .collect();
    fs::write(paths[1].join("draft"), "mine").unwrap();
    let clean = ["clean", "--apply", "--min-age", "0", "--json"];
    let (answer, gits) = gits_of(&env, &clean);
    let removed = named(&answer.json(), "removed", "outcome");
    assert_eq!(removed.len(), 2, "{answer:#?}");
    // Both are at one commit, whose tree is asked for once; the third was looked into by git, in its sandbox.
    assert_eq!(gits, ["cat-file"]);
    assert_eq!(fs::read_to_string(paths[1].join("draft")).unwrap(), "mine");
    assert_eq!(env.git(&["branch", "--list", "wt/*"]).lines().count(), 1);
    // What went comes back as it was.
    let undone = env.ok(&["undo"]);
    assert_eq!(undone["undone"], "clean.begun", "{undone}");
    for path in [&paths[0], &paths[2]] {
        assert_eq!(git_in(&env, path, &["status", "--porcelain"]), "");
    }
    assert_eq!(env.git(&["branch", "--list", "wt/*"]).lines().count(), 3);
}
