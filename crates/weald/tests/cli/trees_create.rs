//! Making trees: names, branches, paths, what they start from, and what a refusal or a failure leaves.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::env;

pub const KINDS: [&str; 2] = ["sealed", "linked"];

/// A fresh repository that can be committed to from inside a tree.
pub fn env_with_identity() -> TestEnv {
    let env = env();
    env.git(&["config", "user.name", "Test"]);
    env.git(&["config", "user.email", "test@example.com"]);
    env
}

/// Writes a file in the main checkout and commits it; the commit's id.
pub fn commit_main(env: &TestEnv, path: &str, text: &str) -> String {
    fs::write(env.repo().join(path), text).unwrap();
    env.git(&["add", "--", path]);
    env.git(&["commit", "-q", "-m", path]);
    tip(env, "HEAD")
}

/// What a name means in main.
pub fn tip(env: &TestEnv, name: &str) -> String {
    env.git(&["rev-parse", "--verify", name]).trim().to_owned()
}

/// weald, called from another directory.
pub fn weald_in(env: &TestEnv, directory: &Path, args: &[&str]) -> Answer {
    let mut command = env.weald_command(args);
    let output = command.current_dir(directory).output().unwrap();
    Answer {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// git in another directory; its output without the last line end.
#[track_caller]
pub fn git_in(env: &TestEnv, directory: &Path, args: &[&str]) -> String {
    let mut command = env.command("git");
    let output = command.args(args).current_dir(directory).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// Commits a file from inside a tree, through weald.
#[track_caller]
pub fn commit_inside(env: &TestEnv, tree: &str, path: &str) {
    let script = format!("echo {path} > {path} && git add {path} && git commit -q -m {path}");
    let answer = env.weald(&["run", tree, "--", "sh", "-c", &script]);
    assert_eq!(answer.code, 0, "{answer:#?}");
}

/// Every worktree that git knows, main first.
pub fn worktrees(env: &TestEnv) -> Vec<PathBuf> {
    env.git(&["worktree", "list", "--porcelain"])
        .lines()
        .filter_map(|line| line.strip_prefix("worktree "))
        .map(PathBuf::from)
        .collect()
}

/// Every branch of main.
pub fn branches(env: &TestEnv) -> Vec<String> {
    env.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/"])
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The names of the trees that weald lists.
pub fn listed(env: &TestEnv) -> Vec<String> {
    env.ok(&["list"])["trees"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tree| tree["name"].as_str().unwrap().to_owned())
        .collect()
}

pub fn path_of(answer: &Value) -> PathBuf {
    PathBuf::from(answer["tree"]["path"].as_str().unwrap())
}

/// Where a tree goes by default.
pub fn place(env: &TestEnv, name: &str) -> PathBuf {
    env.root().join("app.weald").join(name)
}

/// Nothing of a tree `a` is anywhere: no branch, directory, registration, record.
#[track_caller]
fn assert_nothing_of_a(env: &TestEnv) {
    assert_eq!(branches(env), ["main"]);
    assert_eq!(worktrees(env), [env.repo()]);
    assert!(place(env, "a").symlink_metadata().is_err());
    let registrations = fs::read_dir(env.repo().join(".git/worktrees"));
    assert_eq!(registrations.map_or(0, Iterator::count), 0);
    assert_eq!(listed(env), [""; 0]);
    let root = fs::read_dir(place(env, "")).into_iter().flatten();
    let left: Vec<_> = root.map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == ".weald"), "{left:?}");
}

/// The data of every event of this type.
pub fn events(env: &TestEnv, kind: &str) -> Vec<Value> {
    let kind = format!("dev.weald.{kind}");
    env.weald(&["events", "--limit", "200", "--json"])
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|event| event["type"] == kind.as_str())
        .collect()
}

#[test]
fn n4_branch_and_path_follow_the_profile() {
    for (profile, task, name, path, branch) in [
        ("default", "1", "fix-it", "app.weald/fix-it", "wt/fix-it"),
        (
            "classroom",
            "1",
            "fix-it",
            "app/.worktrees/fix-it",
            "wt/fix-it",
        ),
        (
            "two-plane",
            "1",
            "fix-it",
            "app/.worktrees/fix-it",
            "wt/fix-it",
        ),
        ("jkz", "gh-12", "12", "jkz-worktree-12", "jkz/issue-12"),
        (
            "jean-claude",
            "jc-y97",
            "beads-jc-y97",
            "app/trees/beads-jc-y97",
            "beads/jc-y97",
        ),
        (
            "claude-code",
            "1",
            "fix-it",
            "app/.claude/worktrees/fix-it",
            "worktree-fix-it",
        ),
    ] {
        for kind in KINDS {
            let env = env();
            env.ok(&["init", "--profile", profile]);
            match task {
                "1" => env.ok(&["task", "add", "Fix it"]),
                id => env.ok(&["task", "add", "Fix it", "--id", id]),
            };
            let made = env.ok(&["new", "--task", task, "--kind", kind]);
            assert_eq!(made["tree"]["name"], name, "{profile}");
            assert_eq!(made["tree"]["branch"], branch, "{profile}");
            let path = env.root().join(path);
            assert_eq!(path_of(&made), path, "{profile}");
            assert_eq!(worktrees(&env), [env.repo(), path.clone()], "{profile}");
            let mut expected = vec![branch.to_owned(), "main".to_owned()];
            expected.sort();
            assert_eq!(branches(&env), expected, "{profile}");
            let inside = git_in(&env, &path, &["rev-parse", "--show-toplevel"]);
            assert_eq!(Path::new(&inside), path, "{profile}");
        }
    }
}

#[test]
fn n5_the_refact_profile_uses_the_cache_plan_and_hash() {
    for kind in KINDS {
        let env = env();
        env.ok(&["init", "--profile", "refact"]);
        env.ok(&[
            "task",
            "add",
            "Fix it",
            "--id",
            "gh-12",
            "--plan",
            "Big Board",
        ]);
        let made = env.ok(&["new", "--task", "gh-12", "--kind", kind]);
        assert_eq!(made["tree"]["name"], "T-12");
        let branch = made["tree"]["branch"].as_str().unwrap();
        let hash = branch
            .strip_prefix("refact/task/big-board/card/T-12/")
            .unwrap_or_else(|| panic!("{branch}"));
        let is_hash = |text: &str, length| {
            text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        assert!(is_hash(hash, 8), "{branch}");
        let path = path_of(&made);
        let below = path.strip_prefix(env.home().join(".cache/weald/worktrees"));
        let repository = below.unwrap().iter().next().unwrap().to_str().unwrap();
        assert!(is_hash(repository, 16), "{}", path.display());
        assert_eq!(worktrees(&env), [env.repo(), path]);
        assert_eq!(branches(&env), ["main", branch]);
    }
}

#[test]
fn n6_a_branch_in_the_way_of_the_prefix_is_named_and_nothing_is_left() {
    for kind in KINDS {
        let env = env();
        env.git(&["branch", "wt"]);
        let refused = env.refused(&["new", "x", "--kind", kind], 1, "branch_clash");
        assert_eq!(refused["error"]["details"]["existing"], "wt");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("branch wt"), "{message}");
        assert_eq!(branches(&env), ["main", "wt"]);
        assert_eq!(worktrees(&env), [env.repo()]);
        assert_eq!(listed(&env), [""; 0]);
        assert!(!place(&env, "").exists());
        // The other way round: the folder is there, the branch can't be.
        env.git(&["branch", "-m", "wt", "wt/x/y"]);
        let refused = env.refused(&["new", "x", "--kind", kind], 1, "branch_clash");
        assert_eq!(refused["error"]["details"]["existing"], "wt/x/y");
        assert_eq!(branches(&env), ["main", "wt/x/y"]);
        env.ok(&["new", "z", "--kind", kind]);
    }
}

#[test]
fn n9_a_tree_inside_the_repository_leaves_the_main_checkout_clean() {
    for profile in ["classroom", "two-plane", "jean-claude", "claude-code"] {
        for kind in KINDS {
            let env = env();
            commit_main(&env, ".gitignore", "*.log\n");
            let exclude = env.repo().join(".git/info/exclude");
            fs::create_dir_all(exclude.parent().unwrap()).unwrap();
            fs::write(&exclude, "mine without a line end").unwrap();
            env.ok(&["init", "--profile", profile]);
            env.ok(&["new", "a", "--kind", kind]);
            env.ok(&["new", "b", "--kind", kind]);
            assert_eq!(env.git(&["status", "--porcelain"]), "", "{profile}");
            assert_eq!(env.git(&["diff", "HEAD", "--stat"]), "", "{profile}");
            let ignore = fs::read_to_string(env.repo().join(".gitignore")).unwrap();
            assert_eq!(ignore, "*.log\n");
            let excluded = fs::read_to_string(&exclude).unwrap();
            assert!(excluded.starts_with("mine without a line end\n"));
            let mut added: Vec<_> = excluded.lines().skip(1).collect();
            let count = added.len();
            added.sort_unstable();
            added.dedup();
            assert_eq!(added.len(), count, "each line once: {excluded}");
            let is_own = |line: &&str| line.starts_with('/') && line.len() > 1;
            assert!(!added.is_empty() && added.iter().all(is_own), "{excluded}");
        }
    }
}

#[test]
fn n10_slashes_become_plus_in_the_claude_code_profile_alone() {
    for kind in KINDS {
        let env = env();
        env.refused(&["new", "a/b", "--kind", kind], 2, "invalid_name");
        assert_nothing_of_a(&env);
        env.ok(&["init", "--profile", "claude-code"]);
        for name in ["a/../b", "a//b", "/a", "a/", "a/.git", "a/x.lock", "a/b c"] {
            env.refused(&["new", name, "--kind", kind], 2, "invalid_name");
        }
        assert_eq!(branches(&env), ["main"]);
        let made = env.ok(&["new", "a/b", "--kind", kind]);
        assert_eq!(made["tree"]["name"], "a+b");
        assert_eq!(made["tree"]["branch"], "worktree-a+b");
        let path = env.repo().join(".claude/worktrees/a+b");
        assert_eq!(worktrees(&env), [env.repo(), path]);
        assert_eq!(branches(&env), ["main", "worktree-a+b"]);
        let again = env.ok(&["ensure", "a/b", "--kind", kind]);
        assert_eq!(again["outcome"], "reused");
        // What `new` and `ensure` take as a name, the other commands take too.
        assert_eq!(env.ok(&["show", "a/b"])["tree"]["name"], "a+b");
        assert_eq!(env.ok(&["show", "a+b"])["tree"]["name"], "a+b");
    }
}

#[test]
fn k1_a_new_tree_has_its_directory_branch_and_record() {
    for kind in KINDS {
        let env = env();
        let base = commit_main(&env, "file", "text\n");
        env.ok(&["task", "add", "Fix it"]);
        let made = env.ok(&["new", "a", "--task", "1", "--kind", kind]);
        assert_eq!(made["outcome"], "created");
        let path = place(&env, "a");
        for tree in [&made["tree"], &env.ok(&["show", "a"])["tree"]] {
            assert_eq!(tree["name"], "a");
            assert_eq!(tree["kind"], kind);
            assert_eq!(tree["path"], path.to_str().unwrap());
            assert_eq!(tree["branch"], "wt/a");
            assert_eq!(tree["task"], 1);
            assert_eq!(tree["base"], json!({"ref": "main", "commit": base}));
            assert_eq!(tree["target"], "main");
            assert_eq!(tree["status"], "active");
            assert_eq!(tree["locked"], json!(null));
            let created = tree["created_at"].as_str().unwrap();
            assert!(created.ends_with('Z') && created.contains('T'), "{created}");
        }
        let head = ["rev-parse", "--abbrev-ref", "HEAD"];
        assert_eq!(git_in(&env, &path, &head), "wt/a");
        assert_eq!(git_in(&env, &path, &["rev-parse", "HEAD"]), base);
        assert_eq!(tip(&env, "refs/heads/wt/a"), base);
        assert_eq!(fs::read_to_string(path.join("file")).unwrap(), "text\n");
        assert_eq!(git_in(&env, &path, &["status", "--porcelain"]), "");
        assert_eq!(env.ok(&["task", "show", "1"])["task"]["worktree"], "a");
        assert_eq!(events(&env, "tree.create.before").len(), 1);
        assert_eq!(events(&env, "tree.create.after").len(), 1);
        assert_eq!(worktrees(&env), [env.repo(), path]);
    }
}

#[test]
fn k2_the_base_is_what_is_named_or_configured() {
    for kind in KINDS {
        let env = env();
        let main = commit_main(&env, "main", "1");
        env.git(&["switch", "-q", "-c", "dev"]);
        let dev = commit_main(&env, "dev", "1");
        env.git(&["update-ref", "refs/remotes/origin/trunk", &dev]);
        let short = &dev[..12];
        for (name, args, commit) in [
            ("default", vec![], &main),
            ("head", vec!["--set", "tree.base=head"], &dev),
            ("branch", vec!["--base", "dev"], &dev),
            ("commit", vec!["--base", short], &dev),
            ("before", vec!["--base", "dev~1"], &main),
            ("remote", vec!["--base", "origin/trunk"], &dev),
            ("target", vec!["--target", "dev"], &dev),
            ("no-remote", vec!["--set", "tree.base=remote_default"], &dev),
        ] {
            let args = [vec!["new", name, "--kind", kind], args].concat();
            let made = env.ok(&args);
            assert_eq!(made["tree"]["base"]["commit"], commit.as_str(), "{name}");
            let head = git_in(&env, &path_of(&made), &["rev-parse", "HEAD"]);
            assert_eq!(head, *commit, "{name}");
            assert_eq!(
                path_of(&made).join("dev").exists(),
                *commit == dev,
                "{name}"
            );
        }
        let target = env.ok(&["show", "target"]);
        assert_eq!(target["tree"]["target"], "dev");
    }
}

#[test]
fn k2_the_remotes_default_and_main_are_bases_too() {
    for kind in KINDS {
        let env = env();
        let main = tip(&env, "HEAD");
        env.git(&["switch", "-q", "-c", "dev"]);
        let dev = commit_main(&env, "dev", "1");
        let other = ["new", "m", "--kind", kind, "--set", "target=dev", "--set"];
        let made = env.ok(&[&other[..], &["tree.base=main"]].concat());
        // The branch main, also when the target is another one.
        assert_eq!(made["tree"]["base"]["commit"], main.as_str());
        let far = commit_main(&env, "far", "1");
        env.git(&["update-ref", "refs/remotes/origin/trunk", &far]);
        let head = ["symbolic-ref", "refs/remotes/origin/HEAD"];
        env.git(&[&head[..], &["refs/remotes/origin/trunk"]].concat());
        env.git(&["reset", "-q", "--hard", &dev]);
        let wanted = ["--set", "tree.base=remote_default"];
        let made = env.ok(&[&["new", "r", "--kind", kind], &wanted[..]].concat());
        assert_eq!(made["tree"]["base"]["commit"], far.as_str());
        assert!(path_of(&made).join("far").exists());
    }
}

#[test]
fn k2_a_tasks_own_base_counts_where_the_profile_says_so() {
    for kind in KINDS {
        let env = env();
        let main = tip(&env, "HEAD");
        env.git(&["switch", "-q", "-c", "release"]);
        let release = commit_main(&env, "release", "1");
        env.git(&["switch", "-q", "main"]);
        let lines = b"{\"id\":\"gh-1\",\"subject\":\"One\",\"base_branch\":\"release\"}\n\
            {\"id\":\"gh-2\",\"subject\":\"Two\"}\n\
            {\"id\":\"gh-3\",\"subject\":\"Three\",\"base_branch\":\"nosuch\"}\n";
        let imported = env.weald_with_input(&["task", "import", "--json"], lines);
        assert_eq!(imported.code, 0, "{imported:#?}");
        env.ok(&["init", "--profile", "refact"]);
        for (task, commit) in [("gh-1", &release), ("gh-2", &main)] {
            let made = env.ok(&["new", "--task", task, "--kind", kind]);
            assert_eq!(made["tree"]["base"]["commit"], commit.as_str(), "{task}");
            let head = git_in(&env, &path_of(&made), &["rev-parse", "HEAD"]);
            assert_eq!(head, *commit, "{task}");
        }
        let args = ["new", "--task", "gh-3", "--kind", kind];
        env.refused(&args, 4, "unknown_base");
        assert_eq!(worktrees(&env).len(), 3);
    }
}

#[test]
fn k2_an_unknown_base_is_refused_and_leaves_nothing() {
    for kind in KINDS {
        let env = env();
        commit_main(&env, "file", "text");
        for base in [
            "nosuch",
            "--base",
            "-x",
            "",
            "main:file",
            "refs/heads/nosuch",
        ] {
            let base = format!("--base={base}");
            env.refused(&["new", "a", "--kind", kind, &base], 4, "unknown_base");
            assert_nothing_of_a(&env);
        }
        assert_eq!(events(&env, "tree.create.before").len(), 0);
    }
}

#[test]
fn k3_a_second_create_names_the_first_and_leaves_it_alone() {
    for kind in KINDS {
        let env = env();
        let path = path_of(&env.ok(&["new", "a", "--kind", kind]));
        fs::write(path.join("work"), "mine").unwrap();
        let before = env.git(&["worktree", "list", "--porcelain"]);
        for other in KINDS {
            let refused = env.refused(&["new", "a", "--kind", other], 1, "tree_exists");
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(message.contains(path.to_str().unwrap()), "{message}");
        }
        assert_eq!(env.git(&["worktree", "list", "--porcelain"]), before);
        assert_eq!(fs::read_to_string(path.join("work")).unwrap(), "mine");
        assert_eq!(branches(&env), ["main", "wt/a"]);
        assert_eq!(listed(&env), ["a"]);
    }
}

#[test]
fn k4_ensure_is_idempotent_and_keeps_files() {
    for kind in KINDS {
        let env = env_with_identity();
        commit_main(&env, "file", "text");
        env.ok(&["task", "add", "Fix it"]);
        let made = env.ok(&["ensure", "a", "--kind", kind, "--task", "1"]);
        assert_eq!(made["outcome"], "created");
        let path = path_of(&made);
        commit_inside(&env, "a", "done");
        fs::write(path.join("new"), "untracked").unwrap();
        fs::write(path.join("file"), "changed").unwrap();
        let head = git_in(&env, &path, &["rev-parse", "HEAD"]);
        for wanted in [vec!["ensure", "a"], vec!["ensure", "--task", "1"]] {
            let again = env.ok(&wanted);
            assert_eq!(again["outcome"], "reused");
            assert_eq!(again["tree"]["id"], made["tree"]["id"]);
            assert_eq!(path_of(&again), path);
        }
        assert_eq!(fs::read_to_string(path.join("new")).unwrap(), "untracked");
        assert_eq!(fs::read_to_string(path.join("file")).unwrap(), "changed");
        assert_eq!(git_in(&env, &path, &["rev-parse", "HEAD"]), head);
        assert_eq!(listed(&env), ["a"]);
    }
}

#[test]
fn k9_a_main_that_cannot_be_read_is_refused_where_changes_are() {
    let env = env();
    fs::write(env.repo().join(".git/index"), "no index").unwrap();
    let refused = env.weald(&["new", "a", "--set", "tree.dirty_main=refuse"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert!(!env.root().join("app.weald/a").exists());
    // A warning is no more than that.
    env.ok(&["new", "a"]);
}
