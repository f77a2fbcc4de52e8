//! Work that somebody began: by a session that says so, by an agent that failed, in a worktree of another tool.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::landing::show;
use crate::trees_create::{git_in, listed, weald_in};
use crate::trees_remove::{KINDS, grow, repository};
use crate::work::{status, work};

fn as_session(env: &TestEnv, session: &str, args: &[&str]) -> Answer {
    let mut command = env.weald_command(args);
    Answer::of(command.env("WEALD_SESSION", session).output().unwrap())
}

#[test]
fn y11_a_live_session_that_says_what_it_works_on_stops_others() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    env.ok(&["task", "add", "Another one"]);
    let tree = grow(&env, "a", "sealed");
    env.ok(&["task", "bind", "1", "a"]);
    env.ok(&["session", "register", "bob"]);
    env.ok(&["session", "heartbeat", "bob", "--task", "1", "--tree", "a"]);
    let check = ["session", "check", "--task", "1", "--session", "carol"];
    env.refused(&check, 1, "task_contested");
    for args in [
        &["ensure", "--task", "1", "--json"][..],
        &["ensure", "a", "--json"],
        &["task", "claim", "1", "--with-tree", "--json"],
        &["work", "1", "--json", "--", "touch", "by-carol"],
        &["agent", "spawn", "1", "--json", "--", "touch", "by-carol"],
        &["race", "1", "-n", "2", "--json", "--", "touch", "by-carol"],
    ] {
        let answer = as_session(&env, "carol", args);
        assert_eq!(
            answer.code,
            if args[0] == "race" { 1 } else { 5 },
            "{args:?} {answer:#?}"
        );
        let text = answer.stdout.clone() + &answer.stderr;
        assert!(args[0] == "race" || text.contains("bob"), "{args:?} {text}");
    }
    let entered = as_session(&env, "carol", &["enter", "a"]);
    assert!(
        entered.stderr.contains("bob works on task 1"),
        "{entered:#?}"
    );
    // A worker takes what nobody speaks for.
    let idle = [
        "worker",
        "--name",
        "dan",
        "--idle-timeout",
        "1s",
        "--json",
        "--",
        "touch",
        "by-dan",
    ];
    let worked = env.weald(&idle);
    assert_eq!(worked.code, 0, "{worked:#?}");
    assert_eq!(status(&env, "2"), "completed", "{worked:#?}");
    assert_eq!(status(&env, "1"), "pending");
    assert!(!tree.join("by-carol").exists());
    // The session itself goes on, and so does anybody once it is over.
    let own = ["session", "check", "--task", "1", "--session", "bob"];
    env.ok(&own);
    let by_bob = as_session(
        &env,
        "bob",
        &["work", "1", "--json", "--", "touch", "by-bob"],
    );
    assert_eq!(by_bob.code, 0, "{by_bob:#?}");
    env.ok(&["task", "add", "Third"]);
    env.ok(&["session", "heartbeat", "bob", "--task", "3"]);
    env.ok(&["session", "end", "bob"]);
    assert_eq!(work(&env, "3", "touch third").code, 0);
}

#[test]
fn y12_work_on_a_failed_task_goes_on_in_its_worktree() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    assert_eq!(work(&env, "1", "echo one > part; exit 1").code, 1);
    assert_eq!(status(&env, "1"), "failed");
    let again = env.weald(&[
        "work",
        "1",
        "--",
        "sh",
        "-c",
        "cat part && echo two >> part",
    ]);
    assert_eq!(again.code, 0, "{again:#?}");
    assert!(again.stderr.contains("like weald resume 1"), "{again:#?}");
    assert!(again.stderr.contains("worktree fix-it"), "{again:#?}");
    assert_eq!(show(&env, "part"), "one\ntwo\n");
    assert_eq!(status(&env, "1"), "completed");
    let agents = env.ok(&["agent", "list", "--all"]);
    assert_eq!(agents["agents"][1]["resumes"], "a1", "{agents}");
}

#[test]
fn y12_spawn_on_a_failed_task_goes_on_in_its_worktree() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    assert_eq!(work(&env, "1", "echo one > part; exit 1").code, 1);
    let script = "cat part && echo two >> part";
    let spawned = env.weald(&["agent", "spawn", "1", "--", "sh", "-c", script]);
    assert_eq!(spawned.code, 0, "{spawned:#?}");
    assert!(
        spawned.stderr.contains("like weald resume 1"),
        "{spawned:#?}"
    );
    env.ok(&["agent", "wait", "a2"]);
    assert_eq!(show(&env, "part"), "one\ntwo\n");
    assert_eq!(status(&env, "1"), "completed");
}

#[test]
fn y12_a_cancelled_task_is_opened_again_by_a_person_alone() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    assert_eq!(work(&env, "1", "echo one > part; exit 1").code, 1);
    env.ok(&["task", "cancel", "1"]);
    let restart = ["rescue", "1", "--restart", "--json", "--", "true"];
    assert_eq!(env.weald(&restart).code, 1);
    assert_eq!(listed(&env), ["fix-it"], "nothing is thrown away for it");
    for command in ["resume", "work"] {
        let answer = env.weald(&[command, "1", "--json", "--", "sh", "-c", "echo c > c"]);
        assert_eq!(answer.code, 1, "{answer:#?}");
        let error = answer.json()["error"].clone();
        assert!(
            error["message"].to_string().contains("cancelled"),
            "{error}"
        );
        assert_eq!(error["hint"], "weald task reopen 1", "{error}");
        assert_eq!(status(&env, "1"), "cancelled");
    }
    assert_eq!(
        env.ok(&["agent", "list", "--all"])["agents"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    env.ok(&["task", "reopen", "1"]);
    let answer = env.weald(&["resume", "1", "--json", "--", "sh", "-c", "echo c > c"]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert_eq!(show(&env, "part"), "one\n");
}

/// A worktree as another tool makes it.
fn foreign(env: &TestEnv, below: &str, branch: &str) -> std::path::PathBuf {
    let path = env.root().join(below);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = path.to_str().unwrap();
    env.git(&["worktree", "add", "-q", "-b", branch, text]);
    path
}

fn refusal(env: &TestEnv, args: &[&str]) -> Value {
    let answer = env.weald(args);
    assert_eq!(answer.code, 1, "{answer:#?}");
    answer.json()["error"].clone()
}

#[test]
fn y24_work_inside_a_worktree_of_another_tool_happens_there() {
    for (below, branch) in [
        ("app/.claude/worktrees/x", "worktree-x"),
        ("jkz-worktree-7", "jkz/issue-7"),
    ] {
        let env = repository();
        let path = foreign(&env, below, branch);
        fs::create_dir(path.join("deep")).unwrap();
        env.ok(&["task", "add", "Fix it"]);
        let args = ["work", "1", "--json", "--", "sh", "-c", "pwd > where"];
        let answer = weald_in(&env, &path.join("deep"), &args);
        assert_eq!(answer.code, 0, "{answer:#?}");
        assert_eq!(answer.json()["landing"]["status"], "landed", "{answer:#?}");
        assert_eq!(show(&env, "where").trim(), path.to_str().unwrap());
        assert!(
            path.join("where").is_file(),
            "it stays where its tool put it"
        );
        assert_eq!(listed(&env).len(), 1, "nothing else was made");
        // What landed is done with, so the next one works there, too.
        let next = |words: &[&str]| {
            let command = [
                "--json",
                "--",
                "sh",
                "-c",
                "date +%N > again; test ! -e stop",
            ];
            weald_in(&env, &path, &[words, &command].concat())
        };
        let answer = next(&["work", "Second in the same"]);
        assert_eq!(answer.code, 0, "{answer:#?}");
        assert_eq!(answer.json()["landing"]["status"], "landed", "{answer:#?}");
        assert_eq!(
            env.ok(&["task", "show", "1"])["task"]["worktree"],
            Value::Null
        );
        // One whose task is open is not, and nothing is recorded then.
        fs::write(path.join("stop"), "").unwrap();
        assert_eq!(next(&["work", "The third"]).code, 1);
        let refused = next(&["work", "The fourth"]);
        assert_eq!(refused.error_code(), "tree_bound", "{refused:#?}");
        env.refused(&["task", "show", "4"], 4, "task_not_found");
    }
}

#[test]
fn y24_from_main_the_hint_is_to_adopt_the_worktree_of_another_tool() {
    let env = repository();
    env.ok(&["init", "--profile", "jkz"]);
    let path = foreign(&env, "jkz-worktree-7", "jkz/issue-7");
    env.ok(&["task", "add", "Issue", "--id", "gh-7"]);
    let adopt = format!("weald adopt {} --task gh-7", path.display());
    for args in [
        &["new", "--task", "gh-7", "--json"][..],
        &["work", "gh-7", "--json", "--", "true"],
    ] {
        let error = refusal(&env, args);
        assert_eq!(error["hint"], json!(adopt), "{args:?} {error}");
    }
    git_in(&env, &path, &["switch", "-q", "-c", "elsewhere"]);
    env.git(&["branch", "-D", "jkz/issue-7"]);
    let error = refusal(&env, &["new", "--task", "gh-7", "--json"]);
    assert_eq!(
        (&error["code"], &error["hint"]),
        (&json!("path_occupied"), &json!(adopt))
    );
    let run = |command: &str| {
        let words: Vec<_> = command.split(' ').skip(1).collect();
        env.ok(&words);
    };
    run(&adopt);
    let worked = env.weald(&["work", "gh-7", "--no-land", "--", "touch", "there"]);
    assert_eq!(worked.code, 0, "{worked:#?}");
    assert!(path.join("there").is_file());
    // Adopted for nobody, it only has to be bound.
    let path = foreign(&env, "jkz-worktree-8", "jkz/issue-8");
    env.ok(&["task", "add", "Issue", "--id", "gh-8"]);
    env.ok(&["adopt", path.to_str().unwrap()]);
    let error = refusal(&env, &["work", "gh-8", "--json", "--", "true"]);
    assert_eq!(
        error["hint"], "weald task bind gh-8 jkz-worktree-8",
        "{error}"
    );
    run(error["hint"].as_str().unwrap());
    let worked = env.weald(&["work", "gh-8", "--no-land", "--", "touch", "there"]);
    assert_eq!(worked.code, 0, "{worked:#?}");
    assert!(path.join("there").is_file());
}

#[test]
fn os28_tasks_claims_and_events_say_where_the_work_is() {
    for kind in KINDS {
        let env = repository();
        env.ok(&["task", "add", "Fix it"]);
        let tree = grow(&env, "there", kind);
        let bound = env.weald(&["task", "bind", "1", "there"]).stdout;
        assert!(
            bound.contains(&format!("work in {}", tree.display())),
            "{bound}"
        );
        let list = env.weald(&["task", "list"]).stdout;
        let columns: Vec<_> = list.lines().next().unwrap().split_whitespace().collect();
        assert!(columns.contains(&"WORKTREE"), "{list}");
        assert!(list.lines().nth(1).unwrap().contains(" there "), "{list}");
        let claimed = env
            .weald(&["task", "claim", "1", "--session", "alice"])
            .stdout;
        assert!(
            claimed.contains(&format!("work in {}", tree.display())),
            "{claimed}"
        );
        let events = env.weald(&["events"]).stdout;
        let line = events
            .lines()
            .find(|line| line.contains("task.bound"))
            .unwrap();
        assert!(line.contains("1") && line.contains("there"), "{events}");
    }
}

#[test]
fn os28_a_script_under_the_hosts_tmp_is_told_to_be_invisible_inside() {
    let env = repository();
    grow(&env, "a", "sealed");
    let folder = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
    let script = folder.path().join("agent.sh");
    fs::write(&script, "true\n").unwrap();
    let script = script.to_str().unwrap();
    let told = format!("{script} is not visible inside");
    let ran = env.weald(&["run", "a", "--", "sh", script]);
    assert!(ran.code != 0 && ran.stderr.contains(&told), "{ran:#?}");
    let ran = env.weald(&["run", "a", "--", "sh", "-c", "exit 3"]);
    assert!(!ran.stderr.contains("not visible"), "{ran:#?}");
    let worked = env.weald(&["work", "Do it", "--new", "--", "sh", script]);
    assert!(worked.stdout.contains(&told), "{worked:#?}");
    assert!(Path::new(script).exists());
}
