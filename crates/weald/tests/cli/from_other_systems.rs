//! What people of other systems rely on beside names and places: where work starts and lands, who takes it, what is told.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::agents_dying::status;
use crate::hooks_claude::hook;
use crate::mcp_client::McpClient;
use crate::trees_fetch::{pushed, with_remote};
use crate::trees_remove::{commit, git_in, repository};

fn chosen(profile: &str) -> TestEnv {
    let env = repository();
    env.ok(&["init", "--profile", profile]);
    env
}

fn base(tree: &Value) -> (&str, &str) {
    let text = |key: &str| tree["base"][key].as_str().unwrap();
    (text("ref"), text("commit"))
}

/// A clone that knows origin's default, with a commit of its own, and one on origin that nobody fetched.
fn ahead_of_origin() -> (TestEnv, String) {
    let (env, other) = with_remote();
    env.git(&["remote", "set-head", "origin", "main"]);
    let head = commit(&env, &env.repo(), "mine", "mine\n");
    pushed(&env, &other, "theirs");
    (env, head)
}

#[test]
fn y8_profiles_that_start_from_head_do_so_in_a_clone() {
    let (env, head) = ahead_of_origin();
    for profile in ["classroom", "two-plane"] {
        env.ok(&["init", "--profile", profile]);
        let made = env.ok(&["new", profile])["tree"].clone();
        assert_eq!(base(&made), ("HEAD", head.as_str()), "{profile}");
        let name = format!("{profile}-mcp");
        let mut client = McpClient::open(&env);
        let made = client.call("worktree_create", json!({"name": name}))["tree"].clone();
        assert_eq!(base(&made), ("HEAD", head.as_str()), "{profile} by MCP");
        assert!(client.leave().success());
    }
    // Whoever stands elsewhere is told what is true.
    env.git(&["checkout", "-q", "-b", "side"]);
    let made = env.weald(&["new", "told"]);
    let told = "the main checkout is on side; this worktree starts from HEAD and lands on main";
    assert!(made.stderr.contains(told), "{made:#?}");
    assert!(made.stdout.contains("from HEAD for main"), "{made:#?}");
    // HEAD is no branch that work could land on.
    env.refused(&["new", "odd", "--target", "HEAD"], 4, "unknown_target");
}

#[test]
fn y8_base_ref_head_of_claude_code_is_the_local_head() {
    let (env, head) = ahead_of_origin();
    env.ok(&["init", "--profile", "claude-code"]);
    let local = json!({"worktree": {"baseRef": "head"}});
    fs::create_dir(env.repo().join(".claude")).unwrap();
    let settings = env.repo().join(".claude/settings.local.json");
    fs::write(settings, local.to_string()).unwrap();
    let input = json!({"hook_event_name": "WorktreeCreate", "cwd": env.repo(), "session_id": "s", "name": "asked"});
    let answer = hook(&env, "worktree-create", &input);
    let tree = env.repo().join(".claude/worktrees/asked");
    assert_eq!(
        answer.stdout.trim(),
        tree.display().to_string(),
        "{answer:#?}"
    );
    assert_eq!(git_in(&env, &tree, &["rev-parse", "HEAD"]).trim(), head);
}

/// A task for branch dev, which is one commit ahead of main.
fn for_dev(env: &TestEnv) -> String {
    env.git(&["checkout", "-q", "-b", "dev"]);
    let tip = commit(env, &env.repo(), "dev-only", "1\n");
    env.git(&["checkout", "-q", "main"]);
    let task = json!({"id": "gh-7", "subject": "Fix it", "base_branch": "dev"});
    let file = env.home().join("tasks.jsonl");
    fs::write(&file, format!("{task}\n")).unwrap();
    env.ok(&["task", "import", "--from", "jsonl", file.to_str().unwrap()]);
    tip
}

#[test]
fn y27_a_task_with_a_base_branch_starts_there_and_lands_there() {
    for profile in weald_core::config::PROFILES {
        let env = chosen(profile);
        let tip = for_dev(&env);
        let made = env.ok(&["new", "--task", "gh-7"])["tree"].clone();
        assert_eq!(base(&made), ("dev", tip.as_str()), "{profile}");
        assert_eq!(made["target"], "dev", "{profile}");
        if *profile == "jkz" {
            // There a person approves each landing.
            continue;
        }
        let path = PathBuf::from(made["path"].as_str().unwrap());
        commit(&env, &path, "work", "done\n");
        let name = made["name"].as_str().unwrap();
        let landed = env.ok(&["land", name, "--report", "done"]);
        assert_eq!(
            landed["landings"][0]["outcome"], "landed",
            "{profile}: {landed:#}"
        );
        let has = |branch: &str| {
            env.git(&["ls-tree", "--name-only", branch])
                .contains("work\n")
        };
        assert!(has("dev") && !has("main"), "{profile}");
    }
    // One that only the remote has is made here, as `git switch` would.
    let env = chosen("default");
    let remote = env.root().join("remote.git");
    let remote = remote.to_str().unwrap();
    env.git(&["clone", "-q", "--bare", ".", remote]);
    env.git(&["--git-dir", remote, "branch", "dev", "main"]);
    env.git(&["remote", "add", "origin", remote]);
    env.git(&["fetch", "-q"]);
    env.ok(&["task", "add", "Fix it", "--base-branch", "nope"]);
    env.ok(&["task", "edit", "1", "--base-branch", "dev"]);
    let worked = env.weald(&["work", "1", "--json", "--", "touch", "work"]);
    assert_eq!(worked.code, 0, "{worked:#?}");
    assert!(
        env.git(&["ls-tree", "--name-only", "dev"])
            .contains("work\n")
    );
    assert!(
        !env.git(&["ls-tree", "--name-only", "main"])
            .contains("work\n")
    );
    let upstream = env.git(&["rev-parse", "--abbrev-ref", "dev@{upstream}"]);
    assert_eq!(upstream.trim(), "origin/dev");
    // Somebody may still say otherwise, and a branch that is not there is refused.
    let env = chosen("default");
    for_dev(&env);
    let made = env.ok(&["new", "--task", "gh-7", "--target", "main"])["tree"].clone();
    assert_eq!(
        (made["target"].as_str(), base(&made).0),
        (Some("main"), "main")
    );
    env.git(&["branch", "-q", "-D", "dev"]);
    env.ok(&["rm", made["name"].as_str().unwrap()]);
    env.refused(&["new", "--task", "gh-7"], 4, "unknown_base");
}

const WORK: &str = "echo $WEALD_SESSION > f-$WEALD_TASK; git add -A; git commit -qm work";

#[test]
fn y25_workers_take_tasks_that_were_bound_before_anybody_claimed_them() {
    let env = chosen("two-plane");
    for subject in ["one", "two", "three", "four"] {
        env.ok(&["task", "add", subject]);
    }
    env.ok(&["task", "dep", "4", "--add", "3"]);
    for (task, lane) in [("1", "lane-1"), ("2", "lane-2"), ("4", "lane-4")] {
        env.ok(&["new", lane, "--task", task]);
        assert_eq!(status(&env, task), "in_progress");
    }
    // The second one is somebody's, and the last one waits for the third.
    env.ok(&["task", "claim", "2", "--session", "carol"]);
    let args = [
        "worker",
        "--name",
        "alice",
        "--idle-timeout",
        "100ms",
        "--json",
        "--",
        "sh",
        "-c",
        WORK,
    ];
    let answer = env.weald(&args);
    let done: Vec<Value> = answer
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let done: Vec<_> = done
        .iter()
        .map(|line| (&line["task"]["id"], &line["agent"]["tree"]))
        .collect();
    let three = json!("three");
    assert_eq!(
        done,
        [
            (&json!(1), &json!("lane-1")),
            (&json!(3), &three),
            (&json!(4), &json!("lane-4"))
        ],
        "{answer:#?}"
    );
    assert_eq!(status(&env, "2"), "in_progress");
    // One that nobody has can be given to somebody.
    env.ok(&["task", "add", "five"]);
    env.ok(&["new", "lane-5", "--task", "5"]);
    let owned = env.ok(&["task", "bind", "5", "lane-5", "--owner", "carol"]);
    assert_eq!(owned["task"]["owner"], "carol", "{owned:#}");
    env.refused(&["task", "claim", "--session", "bob"], 4, "nothing_ready");
    // Where binding starts nothing, whoever started a task by hand keeps it.
    let env = repository();
    env.ok(&["task", "add", "mine"]);
    env.ok(&["new", "lane", "--task", "1"]);
    env.ok(&["task", "bind", "1", "lane", "--start"]);
    env.refused(&["task", "claim", "--session", "bob"], 4, "nothing_ready");
}

#[test]
fn y26_jean_claude_has_the_output_of_agents_and_its_own_words() {
    let env = chosen("jean-claude");
    env.ok(&["task", "add", "Fix it", "--id", "jc-1"]);
    let script = "echo these words; echo x > f; git add f; git commit -qm f; test -e f";
    env.ok(&[
        "work",
        "jc-1",
        "--use-worktree",
        "--yes",
        "--",
        "sh",
        "-c",
        script,
    ]);
    let folder = env.repo().join("agents/beads-jc-1");
    let state: Value =
        serde_json::from_slice(&fs::read(folder.join("state.json")).unwrap()).unwrap();
    assert_eq!(state["workflow_name"], "Fix it", "{state:#}");
    assert_eq!(state["workflow_type"], "beads-task", "{state:#}");
    let log = folder.join("logs/a1.log");
    assert!(fs::read_to_string(&log).unwrap().contains("these words"));
    assert!(
        fs::read_link(&log).unwrap().is_relative(),
        "it holds when the repository is moved"
    );
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    // What somebody else put there is left alone.
    fs::remove_file(&log).unwrap();
    fs::write(&log, "mine").unwrap();
    env.ok(&["task", "reopen", "jc-1"]);
    assert_eq!(fs::read_to_string(&log).unwrap(), "mine");
    env.refused(
        &[
            "work",
            "jc-1",
            "--use-worktree",
            "--no-worktree",
            "--",
            "true",
        ],
        2,
        "usage",
    );
}

/// What an agent is told about landing, in a repository with these settings.
fn told(env: &TestEnv, flags: &[&str]) -> String {
    env.ok(&["task", "add", "Fix it"]);
    let script = "cp $WEALD_PROMPT_FILE prompt.md; git add -A; git commit -qm prompt";
    let args = [&["work", "1", "--json"], flags, &["--", "sh", "-c", script]].concat();
    let done = env.weald(&args).json();
    let branch = done["agent"]["branch"].as_str().unwrap().to_owned();
    let show = |reference: &str| {
        let mut git = env.command(Path::new("git"));
        let name = format!("{reference}:prompt.md");
        let shown = git.current_dir(env.repo()).args(["show", &name]).output();
        String::from_utf8(shown.unwrap().stdout).unwrap()
    };
    let text = show(&branch);
    // What landed is on main, and its branch is gone.
    if text.is_empty() { show("main") } else { text }
}

#[test]
fn y28_the_prompt_says_whether_and_how_work_lands() {
    for (profile, flags, expected) in [
        (
            "default",
            &[][..],
            "weald lands your work on main when you are done, as one commit.",
        ),
        (
            "default",
            &["--no-land"],
            "Nothing lands automatically here: your work stays on wt/fix-it",
        ),
        (
            "default",
            &["--set", "gate.command=true"],
            "as one commit, after the tests passed.",
        ),
        (
            "classroom",
            &[],
            "Nothing lands automatically here: your work stays on wt/fix-it",
        ),
        (
            "jkz",
            &[],
            "weald lands your work on main when you are done, as one commit, after a person approved it.",
        ),
    ] {
        let env = chosen(profile);
        let text = told(&env, flags);
        assert!(text.contains(expected), "{profile} {flags:?}: {text}");
        let lands = !expected.starts_with("Nothing");
        assert_eq!(
            text.contains("weald lands your work on main"),
            lands,
            "{text}"
        );
    }
}

#[test]
fn profiles_with_worktrees_in_the_checkout_warn_of_git_clean() {
    let env = repository();
    let init = |profile: &str| env.weald(&["init", "--profile", profile]).stderr;
    for (profile, folder) in [
        ("classroom", ".worktrees"),
        ("jean-claude", "trees"),
        ("claude-code", ".claude/worktrees"),
    ] {
        let told = init(profile);
        let warned = format!(
            "worktrees are inside the checkout, in {folder}/: `git clean -ffdx` deletes them"
        );
        assert!(told.contains(&warned), "{profile}: {told}");
    }
    for profile in ["default", "jkz", "refact"] {
        assert!(!init(profile).contains("git clean"), "{profile}");
    }
    // The warning is true, of both kinds of worktrees.
    env.ok(&["init", "--profile", "classroom"]);
    for kind in ["sealed", "linked"] {
        env.ok(&["new", kind, "--kind", kind]);
    }
    let is_there = |name: &str| {
        env.repo()
            .join(".worktrees")
            .join(name)
            .join("config.py")
            .exists()
    };
    env.git(&["clean", "-q", "-fdx"]);
    assert!(is_there("sealed") && is_there("linked"));
    env.git(&["clean", "-q", "-ffdx"]);
    assert!(!is_there("sealed") && !is_there("linked"));
}

#[test]
fn a_failed_task_whose_work_lands_is_completed_and_frees_its_dependants() {
    let env = repository();
    env.ok(&["task", "add", "First"]);
    env.ok(&["task", "add", "Second", "--after", "1"]);
    let script = format!("{WORK}; exit 1");
    let failed = env.weald(&["work", "1", "--json", "--", "sh", "-c", &script]);
    assert_eq!(
        (failed.code, status(&env, "1").as_str()),
        (1, "failed"),
        "{failed:#?}"
    );
    let tree = failed.json()["tree"]["name"].as_str().unwrap().to_owned();
    let landed = env.ok(&["land", &tree]);
    assert_eq!(
        landed["landings"][0]["cleanup"]["task"], "completed",
        "{landed:#}"
    );
    assert_eq!(status(&env, "1"), "completed");
    let ready = env.ok(&["task", "ready"])["tasks"].clone();
    assert_eq!(ready[0]["id"], 2, "{ready:#}");
}
