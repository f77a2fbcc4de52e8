//! An agent that can finish: it learns why its work did not land, solves conflicts inside, and is tried again.

use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use weald_testkit::{Answer, Gate, Scenario, ScriptedModel, TestEnv, Turn};

/// A repository whose tests fail while a file `broken` is there. They print its content in red.
fn repository() -> TestEnv {
    let env = TestEnv::with_files(env!("CARGO_BIN_EXE_weald"));
    prepare(&env);
    env
}

fn prepare(env: &TestEnv) {
    fs::write(env.repo().join("log.txt"), "start\n").unwrap();
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "a log"]);
    let tests =
        r#"test ! -e broken || { printf '\033[31msaw %s\033[0m\n' "$(cat broken)"; exit 3; }"#;
    env.ok(&["config", "set", "gate.command", tests]);
    env.ok(&["config", "set", "gate.retries", "0"]);
}

/// A command that keeps its prompt, where no commit takes it along, and then does this.
fn keeping_prompts(script: &str) -> String {
    format!("cp \"$WEALD_PROMPT_FILE\" .git/prompt-$WEALD_AGENT; {script}")
}

fn prompt(env: &TestEnv, tree: &str, agent: &str) -> String {
    let tree = env.root().join("app.weald").join(tree);
    fs::read_to_string(tree.join(".git").join(format!("prompt-{agent}"))).unwrap()
}

/// The agents of all tasks, by number.
fn agents(env: &TestEnv) -> Vec<Value> {
    let list = env.ok(&["agent", "list", "--all"]);
    let mut agents = list["agents"].as_array().unwrap().clone();
    agents.sort_by_key(|agent| agent["id"].as_str().unwrap().to_owned());
    agents
}

fn task(env: &TestEnv, id: &str) -> Value {
    env.ok(&["task", "show", id])["task"].clone()
}

#[track_caller]
pub fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn commit_to_main(env: &TestEnv, line: &str) {
    let log = env.repo().join("log.txt");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, format!("{text}{line}\n")).unwrap();
    env.git(&["commit", "-q", "-a", "-m", &format!("say {line} in main")]);
}

/// What commands wait for, and how they do.
fn door(env: &TestEnv) -> (PathBuf, String) {
    let door = env.repo().join(".git/go");
    let file = door.display();
    let wait = format!("for i in $(seq 1500); do [ ! -e {file} ] || break; sleep 0.02; done");
    (door, wait)
}

/// Keeps both sides of a conflict.
const RESOLVE: &str = "sed -i '/^[<=>]/d' log.txt; git add -A; git commit -q --no-edit";

/// Merges main, and keeps both sides.
const MERGE: &str =
    "git merge main || { sed -i '/^[<=>]/d' log.txt; git add -A; git commit -q --no-edit; }";

fn spawn(env: &TestEnv, args: &[&str]) -> Child {
    let mut command = env.weald_command(args);
    command.stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn a5_a_resumed_agent_is_told_the_failing_command() {
    let env = repository();
    let script = keeping_prompts(
        "test -e broken || { echo it > broken; git add -A; git commit -q -m one; }",
    );
    let work = ["work", "Do it", "--retries", "0", "--", "sh", "-c", &script];
    let red = env.weald(&work);
    assert_eq!(red.code, 1, "{red:#?}");
    assert!(!prompt(&env, "do-it", "a1").contains("tests failed"));
    let resumed = env.weald(&["resume", "1"]);
    assert_eq!(resumed.code, 1, "{resumed:#?}");
    env.ok(&["agent", "restart", "a2"]);
    env.ok(&["agent", "wait", "a3"]);
    let reviewed = env.weald(&["resume", "1", "--feedback", "Say hello instead."]);
    assert_eq!(reviewed.code, 1, "{reviewed:#?}");
    for agent in ["a2", "a3", "a4"] {
        let prompt = prompt(&env, "do-it", agent);
        for part in [
            "the tests failed",
            "The command: test ! -e broken ||",
            "exited 3 after",
            "\n    saw it\n",
        ] {
            assert!(
                prompt.contains(part),
                "{part} is missing for {agent}:\n{prompt}"
            );
        }
        assert!(!prompt.contains('\u{1b}'), "{prompt}");
        let is_reviewed =
            prompt.contains("A person looked at the work so far and says:\n\nSay hello instead.");
        assert_eq!(is_reviewed, agent == "a4", "{prompt}");
    }
}

#[test]
fn a6_an_agent_sees_what_landed_merges_it_inside_and_lands_again() {
    for kind in ["sealed", "linked"] {
        let env = repository();
        env.ok(&["task", "add", "Say one"]);
        env.ok(&["new", "one", "--kind", kind, "--task", "1"]);
        env.ok(&["new", "other"]);
        let script = format!(
            "exec 2>&1; was=$(git rev-parse main); echo one >> log.txt; git commit -q -a -m one
            for i in $(seq 1500); do [ $(git rev-parse main) = $was ] || break; sleep 0.02; done
            echo seen $(date +%s%N)
            weald land; echo land $?; weald sync other; echo other $?
            weald sync; echo sync $?; {RESOLVE}; weald sync; echo again $?
            weald land -m 'Say both'; echo land $?"
        );
        let work = spawn(&env, &["work", "1", "--", "sh", "-c", &script]);
        let log = env.root().join("app.weald/one/log.txt");
        wait_until("it begins", || {
            fs::read_to_string(&log).is_ok_and(|text| text.contains("one"))
        });
        let beside = env.weald(&["work", "Say two", "--", "sh", "-c", "echo two >> log.txt"]);
        assert_eq!(beside.code, 0, "{beside:#?}");
        let landed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let worked = Answer::of(work.wait_with_output().unwrap());
        assert_eq!(worked.code, 0, "{kind} {worked:#?}");
        let codes: Vec<_> = worked
            .stdout
            .lines()
            .filter(|line| {
                ["land ", "other ", "sync ", "again "]
                    .iter()
                    .any(|word| line.starts_with(word))
            })
            .collect();
        assert_eq!(
            codes,
            ["land 3", "other 1", "sync 3", "again 0", "land 0"],
            "{kind} {worked:#?}"
        );
        let seen = worked
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix("seen "));
        let seen = Duration::from_nanos(seen.unwrap().parse().unwrap());
        assert!(
            seen < landed + Duration::from_secs(5),
            "{kind} {seen:?} {landed:?}"
        );
        // It says what works inside.
        for part in ["log.txt", "git add FILE…; git commit --no-edit; weald land"] {
            assert!(worked.stdout.contains(part), "{part} {worked:#?}");
        }
        let log = env.git(&["show", "main:log.txt"]);
        assert!(
            log.contains("one\n") && log.contains("two\n"),
            "{kind} {log}"
        );
        let subject = env.git(&["log", "-1", "--format=%s", "main"]);
        assert_eq!(subject, "Say both\n", "{kind}");
        assert_eq!(task(&env, "1")["status"], "completed", "{kind}");
    }
}

#[test]
fn a6_a_branch_that_the_agent_is_on_is_never_moved() {
    let env = repository();
    let script = "was=$(git rev-parse HEAD); git checkout -q main; echo begun > begun
        for i in $(seq 1500); do git rev-parse -q --verify refs/remotes/origin/main >/dev/null && break; sleep 0.02; done
        [ $(git rev-parse HEAD) = $was ]; echo same $?; git status --short; rm begun; git checkout -q -";
    let work = spawn(&env, &["work", "Say one", "--", "sh", "-c", script]);
    let begun = env.root().join("app.weald/say-one/begun");
    wait_until("it begins", || begun.exists());
    commit_to_main(&env, "me");
    // Another ref that follows main says when it was looked at.
    let tip = env.git(&["rev-parse", "HEAD"]);
    env.git(&["update-ref", "refs/remotes/origin/main", tip.trim()]);
    commit_to_main(&env, "more");
    let worked = Answer::of(work.wait_with_output().unwrap());
    assert!(worked.stdout.contains("same 0\n?? begun\n"), "{worked:#?}");
}

#[test]
fn a7_two_workers_append_to_one_file_and_both_land() {
    let env = repository();
    let (door, wait) = door(&env);
    env.ok(&["task", "add", "Say one"]);
    env.ok(&["task", "add", "Say two"]);
    let script = format!(
        "cp \"$WEALD_PROMPT_FILE\" prompt-$WEALD_AGENT
        if grep -q 'conflicts with main' prompt-$WEALD_AGENT; then {MERGE}
        else echo $WEALD_TASK_SUBJECT >> log.txt; git add -A; git commit -q -m \"$WEALD_TASK_SUBJECT\"; {wait}; fi"
    );
    let worker = |name| {
        spawn(
            &env,
            &[
                "worker", "--name", name, "--max", "1", "--", "sh", "-c", &script,
            ],
        )
    };
    let workers = ["alice", "bob"].map(worker);
    let is_begun = |agent: &Value| agent["state"] == "running";
    wait_until("both work", || {
        agents(&env).iter().filter(|agent| is_begun(agent)).count() == 2
    });
    fs::write(&door, "").unwrap();
    let answers = workers.map(|worker| Answer::of(worker.wait_with_output().unwrap()));
    for answer in &answers {
        assert_eq!(answer.code, 0, "{answers:#?}");
    }
    let log = env.git(&["show", "main:log.txt"]);
    for line in ["start", "Say one", "Say two"] {
        assert!(log.lines().any(|known| known == line), "{log}");
    }
    // Whoever came second was tried again, and was told what it needs to know.
    let told = answers.iter().map(|answer| answer.stderr.as_str());
    let told: String = told.collect();
    assert!(
        told.contains("↻ It conflicts in log.txt; retry 1 of 2 (a3)"),
        "{told}"
    );
    let agents = agents(&env);
    assert_eq!(agents.len(), 3, "{agents:#?}");
    let retry = &agents[2];
    let first = agents
        .iter()
        .find(|agent| agent["id"] == retry["resumes"])
        .unwrap();
    assert_eq!(retry["retry"], 1, "{retry:#}");
    // Under one name and one claim, so nobody could take the task between.
    assert_eq!(
        (&first["session"], &first["token"]),
        (&retry["session"], &retry["token"])
    );
    let prompt = env.git(&["show", "main:prompt-a3"]);
    let other = match retry["task"] == 1 {
        true => "Say two",
        false => "Say one",
    };
    for part in ["    log.txt\n", other, "`git merge main` (or `weald sync`)"] {
        assert!(prompt.contains(part), "{part} is missing in\n{prompt}");
    }
    assert!(!prompt.contains("Don't merge"), "{prompt}");
}

#[test]
fn a7_a_worker_says_what_it_leaves_and_a_later_one_solves_the_conflict() {
    let env = repository();
    let (door, wait) = door(&env);
    env.ok(&["task", "add", "Say one"]);
    env.ok(&["task", "add", "Say two", "--after", "1"]);
    let script = format!(
        "if grep -q 'conflicts with main' $WEALD_PROMPT_FILE; then {MERGE}
        else echo $WEALD_TASK_SUBJECT >> log.txt; git commit -q -a -m one; {wait}; fi"
    );
    let worker = |name, more: &[&str]| {
        let first = ["worker", "--name", name, "--idle-timeout", "100ms"];
        let command = ["--", "sh", "-c", &script];
        spawn(&env, &[&first, more, &command].concat())
    };
    let alice = worker("alice", &["--retries", "0", "--json"]);
    wait_until("alice works", || {
        agents(&env)
            .first()
            .is_some_and(|agent| agent["state"] == "running")
    });
    commit_to_main(&env, "me");
    fs::write(&door, "").unwrap();
    let alice = Answer::of(alice.wait_with_output().unwrap());
    assert_eq!(alice.code, 1, "{alice:#?}");
    let last = alice.stdout.lines().last().unwrap();
    let error = serde_json::from_str::<Value>(last).unwrap()["error"].clone();
    assert_eq!(error["code"], "work_left", "{alice:#?}");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("task 1 (Say one): it conflicts in log.txt"),
        "{error}"
    );
    assert!(
        error["hint"].as_str().unwrap().contains("weald resume 1"),
        "{error}"
    );
    assert_eq!(task(&env, "1")["status"], "needs_merge");
    // What depends on it waits, so the next worker begins with it.
    let bob = Answer::of(worker("bob", &[]).wait_with_output().unwrap());
    assert_eq!(bob.code, 0, "{bob:#?}");
    let log = env.git(&["show", "main:log.txt"]);
    assert!(
        log.contains("me\n") && log.contains("Say one\n") && log.contains("Say two\n"),
        "{log}"
    );
}

#[test]
fn a7_a_retry_that_changes_nothing_is_the_last_and_the_task_is_parked() {
    let env = repository();
    let script = "test -e broken || { echo it > broken; git add -A; git commit -q -m one; }";
    let worked = env.weald(&["work", "Do it", "--", "sh", "-c", script]);
    assert_eq!(worked.code, 1, "{worked:#?}");
    let retried = "↻ Its tests failed (landing 1): `test ! -e broken";
    assert!(worked.stderr.contains(retried), "{worked:#?}");
    assert!(worked.stderr.contains("` exited 3 after"), "{worked:#?}");
    assert!(worked.stderr.contains("; retry 1 of 2 (a2)"), "{worked:#?}");
    assert_eq!(agents(&env).len(), 2);
    let parked = task(&env, "1")["parked"].clone();
    let parked = parked.as_str().unwrap();
    assert!(parked.contains("its tests failed (landing 2)"), "{parked}");
    assert!(parked.ends_with("; retry a2 made no changes"), "{parked}");
}

#[test]
fn a7_a_crash_counts_no_retry_and_begins_no_new_count() {
    let env = repository();
    let (door, wait) = door(&env);
    // Each one changes something; the second never ends.
    let script = format!(
        "echo $WEALD_AGENT > broken; git add -A; git commit -q -m one; [ $WEALD_AGENT != a2 ] || {wait}"
    );
    let work = [
        "work",
        "Do it",
        "--retries",
        "1",
        "--detach",
        "--",
        "sh",
        "-c",
        &script,
    ];
    env.ok(&work);
    wait_until("the retry works", || {
        agents(&env)
            .get(1)
            .is_some_and(|agent| agent["state"] == "running")
    });
    // Nobody else gets the task meanwhile.
    env.refused(
        &["task", "claim", "1", "--session", "thief", "--json"],
        5,
        "task_held",
    );
    env.end_processes();
    fs::write(&door, "").unwrap();
    let resumed = env.weald(&["resume", "1"]);
    assert_eq!(resumed.code, 1, "{resumed:#?}");
    let agents = agents(&env);
    let counts: Vec<_> = agents
        .iter()
        .map(|agent| agent["retry"].as_u64().unwrap_or(0))
        .collect();
    assert_eq!(counts, [0, 1, 1], "{agents:#?}");
    let parked = task(&env, "1")["parked"].clone();
    assert!(
        parked.as_str().unwrap().ends_with("; a retry did not help"),
        "{parked}"
    );
}

#[test]
fn a7_real_claude_solves_a_conflict_and_failed_tests_in_one_conversation() {
    let about = "say it in the log";
    let gate = Gate::new();
    let first =
        "echo claude >> log.txt; echo it > broken; git add -A; git commit -q -m 'from claude'";
    let filler = || Turn::say("not asked");
    let sync = Turn::Tool {
        name: "mcp__weald__worktree_sync".to_owned(),
        input: json!({}),
    };
    let model = ScriptedModel::start([
        // Turns are counted through the whole conversation.
        Scenario::new(
            "the tests failed on it",
            [
                filler(),
                filler(),
                filler(),
                Turn::shell("git rm -q broken; git commit -q -m fixed"),
            ],
        ),
        Scenario::new(
            "it conflicts with main in",
            [filler(), sync, Turn::shell(RESOLVE)],
        ),
        Scenario::new(about, [Turn::shell(first).behind(&gate)]),
    ]);
    let Some(env) = TestEnv::with_agents(env!("CARGO_BIN_EXE_weald"), &model) else {
        return;
    };
    prepare(&env);
    let work = ["work", about, "--driver", "claude", "--json"];
    let worked = env.weald_with_agents(&model, &work).spawn().unwrap();
    gate.wait_for_arrival();
    commit_to_main(&env, "me");
    gate.open();
    let worked = Answer::of(worked.wait_with_output().unwrap());
    assert_eq!(worked.code, 0, "{worked:#?}");
    assert_eq!(worked.json()["agent"]["id"], "a3", "{worked:#?}");
    let log = env.git(&["show", "main:log.txt"]);
    assert!(log.contains("me\n") && log.contains("claude\n"), "{log}");
    let said = model.requests(about).pop().unwrap().said().join("\n");
    for part in [
        "    log.txt\n",
        "say me in main",
        "from claude",
        "`git merge main` (or `weald sync`)",
        "The command: test ! -e broken ||",
        "exited 3 after",
        "\n    saw it\n",
    ] {
        assert!(said.contains(part), "{part} is missing in\n{said}");
    }
}
