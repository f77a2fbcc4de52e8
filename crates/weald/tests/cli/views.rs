//! File views: the files of other systems, after each operation.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_remove::{commit, repository};

const MARK: &str = "_view";

pub fn with_profile(profile: &str) -> TestEnv {
    let env = repository();
    env.ok(&["init", "--profile", profile]);
    env
}

pub fn file(env: &TestEnv, path: &str) -> PathBuf {
    env.repo().join(path)
}

/// A file as JSON, without its mark, which it must have.
#[track_caller]
pub fn view(env: &TestEnv, path: &str) -> Value {
    let text = fs::read(file(env, path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    unmarked(&text)
}

#[track_caller]
pub fn unmarked(text: &[u8]) -> Value {
    let mut value: Value = serde_json::from_slice(text).expect("whole JSON");
    let mark = value.as_object_mut().unwrap().remove(MARK);
    assert!(mark.is_some(), "not marked: {value}");
    value
}

pub fn lines(env: &TestEnv) -> Vec<Value> {
    let text = fs::read_to_string(file(env, ".worktrees/events.jsonl")).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    text.lines().map(|line| unmarked(line.as_bytes())).collect()
}

fn seconds(time: &Value) -> f64 {
    let time: weald_core::Timestamp = time.as_str().unwrap().parse().unwrap();
    time.as_millisecond() as f64 / 1e3
}

/// Every task of the store and its file say the same; so do every tree and the index.
#[track_caller]
pub fn assert_two_plane(env: &TestEnv) {
    let tasks = env.ok(&["task", "list"])["tasks"].clone();
    for task in tasks.as_array().unwrap() {
        let expected = json!({
            "id": task["id"], "subject": task["subject"], "description": task["description"],
            "status": task["status"], "owner": task["owner"].as_str().unwrap_or(""),
            "worktree": task["worktree"].as_str().unwrap_or(""), "blockedBy": task["blocked_by"],
            "created_at": seconds(&task["created_at"]), "updated_at": seconds(&task["updated_at"]),
        });
        let id = task["id"].to_string();
        let path = format!(".tasks/task_{}.json", id.trim_matches('"'));
        assert_eq!(view(env, &path), expected);
    }
    let index = view(env, ".worktrees/index.json")["worktrees"].clone();
    for tree in env.ok(&["list"])["trees"].as_array().unwrap() {
        let expected = json!({
            "name": tree["name"], "path": tree["path"], "branch": tree["branch"], "task_id": tree["task"],
            "status": tree["status"], "created_at": seconds(&tree["created_at"]),
        });
        assert!(
            index.as_array().unwrap().contains(&expected),
            "{index} lacks {expected}"
        );
    }
    assert_eq!(
        env.git(&["status", "--porcelain"]),
        "",
        "views are excluded"
    );
}

fn index_statuses(env: &TestEnv) -> Vec<(String, String)> {
    let index = view(env, ".worktrees/index.json");
    let entries = index["worktrees"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    entries
        .map(|entry| (text(&entry["name"]), text(&entry["status"])))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(name, status): &(&str, &str)| ((*name).to_owned(), (*status).to_owned());
    expected.iter().map(own).collect()
}

/// Operations one after another, the files compared after each.
struct Story {
    env: TestEnv,
    seen: usize,
}

impl Story {
    fn begin() -> Self {
        let env = with_profile("two-plane");
        assert_eq!(
            view(&env, ".worktrees/index.json"),
            json!({"worktrees": []})
        );
        Self { env, seen: 0 }
    }

    /// Runs weald; answers the new lines, which must be these events.
    #[track_caller]
    fn step(&mut self, args: &[&str], code: i32, expected: &[&str]) -> Vec<Value> {
        let answer = self.env.weald(&[args, &["--json"]].concat());
        assert_eq!(answer.code, code, "{args:?} {answer:#?}");
        assert_two_plane(&self.env);
        let new = lines(&self.env).split_off(self.seen);
        self.seen += new.len();
        let names: Vec<_> = new
            .iter()
            .map(|line| line["event"].as_str().unwrap())
            .collect();
        assert_eq!(names, expected, "{args:?}");
        new
    }
}

const CREATED: [&str; 2] = ["worktree.create.before", "worktree.create.after"];
const REMOVED: [&str; 2] = ["worktree.remove.before", "worktree.remove.after"];

#[test]
fn p16_two_plane_files_after_each_addition() {
    let mut story = Story::begin();
    story.step(&["task", "add", "Fix it"], 0, &[]);
    let second = [
        "task",
        "add",
        "Then",
        "--after",
        "1",
        "--description",
        "more",
    ];
    story.step(&second, 0, &[]);
    let made = story.step(&["new", "a", "--task", "1"], 0, &CREATED);
    let path = file(&story.env, ".worktrees/a");
    assert_eq!(made[0]["task"], json!({"id": 1}));
    assert_eq!(
        made[0]["worktree"],
        json!({"name": "a", "base_ref": "HEAD"})
    );
    let part = json!({"name": "a", "path": path, "branch": "wt/a", "status": "active"});
    assert_eq!(made[1]["worktree"], part);
    assert!(made[1]["ts"].is_f64(), "{made:?}");
    let task = view(&story.env, ".tasks/task_1.json");
    assert_eq!(task["status"], "in_progress", "bind advances");
    story.step(&["new", "b"], 0, &CREATED);
    story.step(&["task", "bind", "2", "b"], 0, &[]);
    story.step(&["keep", "b"], 0, &["worktree.keep"]);
    assert_eq!(
        index_statuses(&story.env),
        pairs(&[("a", "active"), ("b", "kept")])
    );
    // A creation that fails on the way: a file is where a folder should be.
    story.step(&["task", "add", "Third"], 0, &[]);
    let odd = "tree.path={repo}/.worktrees/index.json/c";
    let failing = ["new", "c", "--task", "3", "--set", odd];
    let events = ["worktree.create.before", "worktree.create.failed"];
    let failed = story.step(&failing, 1, &events);
    assert_eq!(failed[1]["worktree"]["name"], "c");
    assert_eq!(failed[1]["task"], json!({"id": 3}));
    assert!(failed[1]["error"].is_string());
    assert_eq!(
        index_statuses(&story.env),
        pairs(&[("a", "active"), ("b", "kept")])
    );
}

#[test]
fn p16_two_plane_files_after_each_removal() {
    let mut story = Story::begin();
    story.step(&["task", "add", "Fix it"], 0, &[]);
    story.step(&["new", "a", "--task", "1"], 0, &CREATED);
    fs::write(file(&story.env, ".worktrees/a/draft"), "mine").unwrap();
    let events = ["worktree.remove.before", "worktree.remove.failed"];
    let refused = story.step(&["rm", "a"], 1, &events);
    let error = refused[1]["error"].as_str().unwrap();
    assert!(error.contains("uncommitted"), "{error}");
    story.step(&["rm", "a", "--discard"], 0, &REMOVED);
    assert_eq!(index_statuses(&story.env), pairs(&[("a", "removed")]));
    story.step(&["trash", "restore", "a"], 0, &["worktree.create.after"]);
    assert_eq!(index_statuses(&story.env), pairs(&[("a", "active")]));
    let complete = ["rm", "a", "--discard", "--complete-task"];
    story.step(&complete, 0, &[REMOVED[0], REMOVED[1], "task.completed"]);
    let purge = ["trash", "purge", "--older-than", "1ms", "--apply"];
    story.step(&purge, 0, &[]);
    assert_eq!(index_statuses(&story.env), pairs(&[("a", "removed")]));
    assert_eq!(view(&story.env, ".tasks/task_1.json")["worktree"], "");
}

#[test]
fn p16_classroom_files_after_each_operation() {
    let env = with_profile("classroom");
    let task = |worktree: Value, status: &str| {
        json!({"id": 1, "subject": "Fix it", "description": "", "status": status, "owner": null,
            "blockedBy": [], "worktree": worktree})
    };
    env.ok(&["task", "add", "Fix it"]);
    assert_eq!(view(&env, ".tasks/1.json"), task(json!(null), "pending"));
    assert_eq!(lines(&env), [] as [Value; 0]);
    env.ok(&["new", "a", "--task", "1"]);
    assert_eq!(view(&env, ".tasks/1.json"), task(json!("a"), "pending"));
    env.ok(&["keep", "a"]);
    commit(&env, &file(&env, ".worktrees/a"), "x", "1");
    env.refused(&["rm", "a"], 1, "tree_unlanded");
    env.ok(&["rm", "a", "--discard"]);
    assert_eq!(view(&env, ".tasks/1.json"), task(json!(null), "pending"));
    env.ok(&["task", "start", "1"]);
    env.ok(&["task", "done", "1"]);
    assert_eq!(view(&env, ".tasks/1.json"), task(json!(null), "completed"));
    let told: Vec<_> = lines(&env)
        .into_iter()
        .map(|line| {
            assert!(line["ts"].is_f64());
            (
                line["type"].clone(),
                line["worktree"].clone(),
                line["task_id"].clone(),
            )
        })
        .collect();
    // After success only: the refused removal is not there.
    let expected = ["create", "keep", "remove"].map(|kind| (json!(kind), json!("a"), json!(1)));
    assert_eq!(told, expected);
    assert!(!file(&env, ".worktrees/index.json").exists());
    assert_eq!(env.git(&["status", "--porcelain"]), "");
}

#[test]
fn p16_jean_claude_state_after_each_operation() {
    let env = with_profile("jean-claude");
    env.ok(&["task", "add", "Fix it", "--id", "jc-y97"]);
    assert!(!file(&env, "agents").exists(), "nobody works on it yet");
    env.ok(&["new", "--task", "jc-y97"]);
    let state = |phase: &str, there: bool| {
        let path = file(&env, "trees/beads-jc-y97");
        json!({
            "workflow_id": "beads-jc-y97", "workflow_name": "Fix it", "workflow_type": "beads-task",
            "beads_task_id": "jc-y97", "beads_task_title": "Fix it", "phase": phase,
            "worktree_path": there.then_some(path), "worktree_branch": there.then_some("beads/jc-y97"),
        })
    };
    let name = "agents/beads-jc-y97/state.json";
    assert_eq!(view(&env, name), state("planning", true));
    assert!(file(&env, "agents/beads-jc-y97/logs").is_dir());
    env.ok(&["task", "start", "jc-y97"]);
    assert_eq!(view(&env, name), state("implementing", true));
    env.ok(&["keep", "beads-jc-y97"]);
    assert_eq!(view(&env, name), state("implementing", true));
    env.ok(&["rm", "beads-jc-y97"]);
    assert_eq!(view(&env, name), state("implementing", false));
    env.ok(&["trash", "restore", "beads-jc-y97"]);
    assert_eq!(view(&env, name), state("implementing", true));
    env.ok(&["task", "done", "jc-y97"]);
    assert_eq!(view(&env, name), state("complete", true));
    env.ok(&["new", "loose"]);
    let loose = view(&env, "agents/loose/state.json");
    assert_eq!(
        (&loose["phase"], &loose["beads_task_id"]),
        (&json!("implementing"), &json!(null))
    );
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    // A folder of that name may be the project's own.
    fs::write(file(&env, "agents/code.py"), "").unwrap();
    assert_eq!(env.git(&["status", "--porcelain"]), "?? agents/\n");
}
