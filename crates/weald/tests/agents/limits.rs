//! Usage limits, logins, cost and notifications: what ends or delays agents without being their fault.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::{Answer, Gate, Outage, Scenario, ScriptedModel, TestEnv, Turn};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn with_agents(model: &ScriptedModel) -> Option<TestEnv> {
    TestEnv::with_agents(env!("CARGO_BIN_EXE_weald"), model)
}

/// weald as a user who is logged in with a subscription, by this token, for so many hours more.
fn log_in(env: &TestEnv, token: &str, hours: i64) {
    let expires_at = now_millis() + hours * 3_600_000;
    let login = json!({"claudeAiOauth": {
        "accessToken": token, "refreshToken": "good for one use", "expiresAt": expires_at,
        "scopes": ["user:inference", "user:profile"], "subscriptionType": "max",
    }});
    let file = env.home().join(".claude/.credentials.json");
    fs::write(file, login.to_string()).unwrap();
}

fn now_millis() -> i64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// weald with both agents, logged in as [`log_in`] says.
fn weald(env: &TestEnv, model: &ScriptedModel, args: &[&str]) -> Command {
    let mut command = env.weald_with_agents(model, args);
    command.env_remove("ANTHROPIC_API_KEY");
    command
}

fn run(env: &TestEnv, model: &ScriptedModel, args: &[&str]) -> Answer {
    Answer::of(weald(env, model, args).output().unwrap())
}

fn add_tasks(env: &TestEnv, count: usize) {
    for number in 1..=count {
        env.ok(&["task", "add", &format!("job {number}")]);
    }
}

/// The status of every task.
fn statuses(env: &TestEnv) -> Vec<String> {
    let tasks = env.ok(&["task", "list"])["tasks"].clone();
    let status = |task: &Value| task["status"].as_str().unwrap().to_owned();
    tasks.as_array().unwrap().iter().map(status).collect()
}

/// Looks until something is found.
#[track_caller]
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// What a board says of a kind.
fn needs(env: &TestEnv, kind: &str) -> Vec<Value> {
    let needs = env.ok(&[])["needs"].clone();
    let mut needs = needs.as_array().unwrap().clone();
    needs.retain(|need| need["kind"] == kind);
    needs
}

#[test]
fn a8_workers_wait_for_a_usage_limit_and_then_finish_every_task() {
    let limit = Outage::limit(Duration::from_secs(4));
    let turns = [
        Turn::shell("echo \"$WEALD_TASK\" > \"done-$WEALD_TASK\""),
        Turn::say("all done").after(&limit),
    ];
    let model = ScriptedModel::start([Scenario::new("job", turns)]);
    let Some(env) = with_agents(&model) else {
        return;
    };
    log_in(&env, "old", 24);
    add_tasks(&env, 5);
    let workers = [("claude", "3"), ("codex", "2")].map(|(driver, max)| {
        let args = [
            "worker",
            "--driver",
            driver,
            "--max",
            max,
            "--idle-timeout",
            "1s",
            "--name",
        ];
        weald(&env, &model, &[&args[..], &[driver]].concat())
            .spawn()
            .unwrap()
    });
    // Both wait, and the board says so, with what ends the wait.
    let waiting = until("two agents that wait", || {
        Some(needs(&env, "limit")).filter(|needs| needs.len() == 2)
    });
    for need in &waiting {
        let what = need["what"].as_str().unwrap();
        assert!(
            what.contains("usage limit of ") && what.contains(" until "),
            "{need}"
        );
        assert!(what.contains("it continues by itself"), "{need}");
    }
    let agents = env.ok(&["agent", "list", "--state", "limited"])["agents"].clone();
    assert_eq!(agents.as_array().unwrap().len(), 2, "{agents}");
    for (driver, worker) in ["claude", "codex"].into_iter().zip(workers) {
        let answer = Answer::of(worker.wait_with_output().unwrap());
        assert_eq!(answer.code, 0, "{driver}: {answer:#?}");
        let told = format!("usage limit of {driver} until ");
        assert!(answer.stderr.contains(&told), "{driver}: {answer:#?}");
        assert!(
            answer.stderr.contains("; waiting (a"),
            "{driver}: {answer:#?}"
        );
    }
    assert_eq!(statuses(&env), ["completed"; 5]);
    for number in 1..=5 {
        assert!(env.repo().join(format!("done-{number}")).exists());
    }
    // No task was tried twice: each waiting agent went on, in its own conversation.
    let agents = env.ok(&["agent", "list", "--all"])["agents"].clone();
    let agents = agents.as_array().unwrap();
    assert_eq!(agents.len(), 5);
    assert!(agents.iter().all(|agent| agent["attempt"] == 1));
    assert_eq!(needs(&env, "limit"), Vec::<Value>::new());
}

#[test]
fn a8_an_agent_that_waits_for_a_limit_can_be_stopped() {
    let limit = Outage::limit(Duration::from_secs(3_600));
    let model = ScriptedModel::start([Scenario::new("job", [Turn::say("done").after(&limit)])]);
    let Some(env) = with_agents(&model) else {
        return;
    };
    log_in(&env, "old", 24);
    add_tasks(&env, 2);
    let worker = weald(&env, &model, &["worker", "--name", "wanda"])
        .spawn()
        .unwrap();
    until("an agent that waits", || needs(&env, "limit").pop());
    env.ok(&["msg", "send", "wanda", "go home", "--type", "shutdown"]);
    let answer = Answer::of(worker.wait_with_output().unwrap());
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert_eq!(statuses(&env), ["pending"; 2]);
    // The next one continues the conversation.
    let agent = env.ok(&["agent", "list", "--all"])["agents"][0].clone();
    assert_eq!(agent["end"]["outcome"], "stopped");
    let conversation = agent["conversation"].as_str().unwrap().to_owned();
    let mut again = weald(&env, &model, &["resume", "1"]).spawn().unwrap();
    let second = until("an agent that waits again", || {
        let agents = env.ok(&["agent", "list", "--state", "limited"])["agents"].clone();
        agents.as_array().unwrap().first().cloned()
    });
    assert_eq!(second["conversation"], conversation);
    interrupt(&again);
    assert_eq!(again.wait().unwrap().code(), Some(130));
    assert_eq!(statuses(&env), ["pending"; 2]);
}

#[test]
fn a8_an_expired_login_ends_the_worker_and_burns_no_task() {
    let model = ScriptedModel::start([Scenario::new(
        "job",
        [Turn::say("done").after(&Outage::login("new"))],
    )]);
    let Some(env) = with_agents(&model) else {
        return;
    };
    add_tasks(&env, 5);
    for (driver, command) in [("claude", "claude, then /login"), ("codex", "codex login")] {
        log_in(&env, "old", 24);
        let answer = run(&env, &model, &["worker", "--driver", driver]);
        assert_eq!(answer.code, 1, "{driver}: {answer:#?}");
        let error = format!("{driver} is not logged in");
        assert!(answer.stderr.contains(&error), "{driver}: {answer:#?}");
        assert!(answer.stderr.contains(command), "{driver}: {answer:#?}");
        assert_eq!(statuses(&env), ["pending"; 5], "{driver}");
    }
    let agents = env.ok(&["agent", "list", "--all"])["agents"].clone();
    let outcomes = agents
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| &agent["end"]["outcome"]);
    assert_eq!(outcomes.collect::<Vec<_>>(), ["logged_out", "logged_out"]);
    // One whose end is known beforehand begins nothing at all.
    log_in(&env, "old", -1);
    for args in [&["worker"][..], &["work", "2"], &["agent", "spawn", "3"]] {
        let answer = run(&env, &model, args);
        assert_eq!(answer.code, 1, "{args:?}: {answer:#?}");
        assert!(
            answer.stderr.contains("the login has expired"),
            "{args:?}: {answer:#?}"
        );
    }
    let agents = env.ok(&["agent", "list", "--all"])["agents"].clone();
    assert_eq!(agents.as_array().unwrap().len(), 2);
    assert_eq!(statuses(&env), ["pending"; 5]);
}

#[test]
fn a8_a_newer_login_of_the_user_reaches_an_agent_at_work() {
    let gate = Gate::new();
    let turns = [
        Turn::shell("echo hello > hello.txt").behind(&gate),
        Turn::say("all done").after(&Outage::login("new")),
    ];
    let model = ScriptedModel::start([Scenario::new("job", turns)]);
    let Some(env) = with_agents(&model) else {
        return;
    };
    log_in(&env, "old", 24);
    add_tasks(&env, 1);
    let work = weald(&env, &model, &["resume", "1"]).spawn().unwrap();
    gate.wait_for_arrival();
    log_in(&env, "new", 24);
    gate.open();
    let answer = Answer::of(work.wait_with_output().unwrap());
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert_eq!(statuses(&env), ["completed"]);
    let hosts = fs::read_to_string(env.home().join(".claude/.credentials.json")).unwrap();
    assert!(hosts.contains("refreshToken"));
}

/// A message of the scripted model, as both agents count it.
fn tokens(used: &Value) -> u64 {
    used["input_tokens"].as_u64().unwrap() + used["output_tokens"].as_u64().unwrap()
}

#[test]
fn a12_tokens_and_money_are_counted_by_agent_task_day_and_model() {
    let gate = Gate::new();
    let model = ScriptedModel::start([
        Scenario::new(
            "quick",
            [Turn::shell("echo x > \"x-$WEALD_TASK\""), Turn::say("done")],
        ),
        Scenario::new(
            "slow",
            [
                Turn::shell("echo y > y.txt"),
                Turn::say("done").behind(&gate),
            ],
        ),
    ]);
    let Some(env) = with_agents(&model) else {
        return;
    };
    for subject in ["quick one", "quick two", "slow"] {
        env.ok(&["task", "add", subject]);
    }
    let slow = env
        .weald_with_agents(&model, &["work", "3"])
        .spawn()
        .unwrap();
    gate.wait_for_arrival();
    for (task, driver) in [("1", "claude"), ("2", "codex")] {
        let args = ["work", task, "--driver", driver, "--json"];
        let answer = Answer::of(env.weald_with_agents(&model, &args).output().unwrap());
        assert_eq!(answer.code, 0, "{answer:#?}");
    }
    // One that is killed has used what its messages say.
    env.ok(&["agent", "stop", "a1"]);
    drop(slow.wait_with_output());
    let by = |what: &str| env.ok(&["cost", "--by", what]);
    let agents = by("agent");
    let rows = agents["costs"].as_array().unwrap();
    let drivers: Vec<_> = rows.iter().map(|row| &row["driver"]).collect();
    assert_eq!(drivers, ["claude", "claude", "codex"], "{agents}");
    assert!(rows.iter().all(|row| tokens(row) >= 2), "{agents}");
    // Cut off; whole, with money; and without money, which weald does not invent.
    assert_eq!(rows[0]["partial"], true, "{agents}");
    assert_eq!(rows[0]["tokens_without_cost"], tokens(&rows[0]), "{agents}");
    assert_eq!(rows[1]["partial"], false, "{agents}");
    assert!(rows[1]["cost_usd"].as_f64().unwrap() > 0.0, "{agents}");
    assert_eq!(rows[2]["cost_usd"], Value::Null, "{agents}");
    let all = &agents["total"];
    for what in ["task", "day", "model"] {
        let found = by(what);
        assert_eq!(tokens(&found["total"]), tokens(all), "{found}");
        let sum: u64 = found["costs"].as_array().unwrap().iter().map(tokens).sum();
        assert_eq!(sum, tokens(all), "{found}");
    }
    let models = by("model");
    let names: Vec<_> = models["costs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["name"])
        .collect();
    assert_eq!(names.len(), 2, "{models}");
    assert!(names.contains(&&json!("codex")), "{models}");
    assert_eq!(
        env.ok(&["cost", "--since", "2100-01-01"])["costs"],
        json!([])
    );
    let people = env.weald(&["cost"]).stdout;
    assert!(
        people.contains("not reported") && people.contains("+ interrupted: at least"),
        "{people}"
    );
    // The board, and the task.
    assert_eq!(tokens(&env.ok(&[])["used_today"]), tokens(all));
    assert!(env.weald(&[]).stdout.contains("used today: "));
    assert_eq!(
        tokens(&env.ok(&["task", "show", "1"])["used"]),
        tokens(&rows[1])
    );
    env.refused(&["cost", "--since", "yesterday"], 2, "invalid_value");
}

#[test]
fn a12_a_budget_stops_agents_and_workers_and_says_so() {
    let gate = Gate::new();
    let turns = [
        Turn::shell("echo x > x.txt"),
        Turn::say("done").behind(&gate),
    ];
    let model = ScriptedModel::start([Scenario::new("job", turns)]);
    let Some(env) = with_agents(&model) else {
        return;
    };
    add_tasks(&env, 3);
    let run = |args: &[&str]| Answer::of(env.weald_with_agents(&model, args).output().unwrap());
    let answer = run(&["work", "1", "--set", "agent.budget=2 tokens"]);
    assert_ne!(answer.code, 0, "{answer:#?}");
    let task = env.ok(&["task", "show", "1"])["task"].clone();
    let reason = task["parked"].as_str().unwrap();
    assert!(reason.starts_with("a1 used "), "{reason}");
    assert!(reason.contains("agent.budget is 2 tokens"), "{reason}");
    assert!(
        reason.contains("weald config set agent.budget BUDGET"),
        "{reason}"
    );
    // The day's is used up: a worker begins nothing.
    let answer = run(&["worker", "--set", "agent.budget_day=2 tokens", "--json"]);
    assert_eq!(
        (answer.code, answer.error_code().as_str()),
        (1, "over_budget"),
        "{answer:#?}"
    );
    assert_eq!(statuses(&env)[1..], ["pending", "pending"]);
    // A repository may set one where the user has none.
    fs::write(env.repo().join("weald.toml"), "agent.budget = '$3'\n").unwrap();
    env.git(&["add", "weald.toml"]);
    env.git(&["commit", "-qm", "a budget"]);
    let shown = || env.weald(&["config", "show", "agent.budget"]).stdout;
    assert!(shown().contains("$3"), "{}", shown());
    env.ok(&["config", "set", "agent.budget", "$5"]);
    assert!(
        shown().contains("$5") && !shown().contains("$3"),
        "{}",
        shown()
    );
    env.refused(
        &["config", "set", "agent.budget", "much"],
        2,
        "invalid_value",
    );
}

#[test]
fn a13_a_program_of_the_user_is_told_what_needs_them_once_a_minute() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_weald"));
    let (log, program) = (env.home().join("told"), env.home().join("tell"));
    // One write for each line: two of them may run at once.
    let script = "#!/bin/sh\nevent=$(cat)\nprintf '%s|%s|%s\\n' \"$WEALD_NOTICE_KIND\" \"$WEALD_NOTICE\" \"$event\" >> \"$1\"\n";
    fs::write(&program, script).unwrap();
    let mode = Command::new("chmod").arg("755").arg(&program).status();
    assert!(mode.unwrap().success());
    let line = format!("'{}' '{}'", program.display(), log.display());
    add_tasks(&env, 4);
    let fail = |task: &str, report: &str| {
        env.ok(&["task", "start", task]);
        env.ok(&["task", "fail", task, "--report", report]);
    };
    let told = || fs::read_to_string(&log).unwrap_or_default();
    // Off by default, and no repository switches it on.
    fs::write(
        env.repo().join("weald.toml"),
        format!("notify.command = \"{line}\"\n"),
    )
    .unwrap();
    fail("1", "no luck");
    env.ok(&["config", "set", "notify.command", &line]);
    let report = "$(touch pwned)\u{1b}]0;x\u{7}; `id`";
    fail("2", report);
    env.ok(&[
        "msg",
        "send",
        "somebody",
        "which one?",
        "--type",
        "question",
    ]);
    // The second of its kind within a minute.
    fail("3", "no luck");
    let all = until("two notifications", || {
        Some(told()).filter(|told| told.lines().count() >= 2)
    });
    let parked = all
        .lines()
        .find(|line| line.starts_with("parked|"))
        .unwrap();
    assert!(
        parked.contains("is failed: $(touch pwned)]0;x; `id`|"),
        "{all}"
    );
    let event: Value = serde_json::from_str(parked.rsplit_once('|').unwrap().1).unwrap();
    assert_eq!(
        (&event["kind"], &event["about"]),
        (&json!("parked"), &json!("task 2"))
    );
    assert!(
        all.lines()
            .any(|line| line.starts_with("question|") && line.contains("which one?"))
    );
    // Only what is asked for.
    env.ok(&["config", "set", "notify.on", "question"]);
    fs::remove_dir_all(env.private().join("notified")).unwrap();
    fail("4", "no luck");
    env.ok(&["msg", "send", "somebody", "and now?", "--type", "question"]);
    let all = until("one more", || {
        Some(told()).filter(|told| told.contains("and now?"))
    });
    assert_eq!(all.lines().count(), 3, "{all}");
    assert!(!env.repo().join("pwned").exists());
}

fn interrupt(child: &std::process::Child) {
    let status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
}
