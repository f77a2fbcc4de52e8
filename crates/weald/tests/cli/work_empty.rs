//! Agents that end with 0 and changed nothing: unless they reported their task done, nothing was done.

use std::fs;

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::landing::show;
use crate::trees_create::listed;
use crate::trees_remove::{KINDS, repository};
use crate::work::{status, work};

fn task(env: &TestEnv, id: &str) -> Value {
    env.ok(&["task", "show", id])["task"].clone()
}

/// The answer says that nothing was done, the task waits, and no worktree is left.
#[track_caller]
fn assert_parked(env: &TestEnv, id: &str, answer: &Answer) {
    assert_eq!(answer.code, 1, "{answer:#?}");
    let ended = answer.json()["agent"]["end"].clone();
    assert_eq!(ended["outcome"], "changed_nothing", "{answer:#?}");
    let task = task(env, id);
    assert_eq!(task["status"], "in_progress", "{task:#}");
    let parked = task["parked"].as_str().unwrap();
    assert!(parked.contains("changed nothing"), "{task:#}");
    assert_eq!(task["lease"], Value::Null);
    assert_eq!(listed(env), [""; 0]);
    assert_eq!(env.git(&["branch", "--list", "wt/*"]), "");
}

#[test]
fn y3_an_agent_that_changed_nothing_is_parked_with_its_last_words() {
    for kind in KINDS {
        let env = repository();
        env.ok(&["task", "add", "Do it"]);
        env.ok(&["new", "do-it", "--task", "1", "--kind", kind]);
        let answer = work(&env, "1", "echo 'You reached your usage limit.'");
        assert_parked(&env, "1", &answer);
        let needs = env.ok(&[])["needs"].clone();
        assert_eq!(needs.as_array().unwrap().len(), 1, "{needs:#}");
        assert_eq!(
            (&needs[0]["kind"], &needs[0]["about"]),
            (&json!("parked"), &json!("task 1"))
        );
        let what = needs[0]["what"].as_str().unwrap();
        assert!(what.contains("You reached your usage limit."), "{what}");
        // Nobody takes it; the person who looks at it resumes it, or says that it is done.
        env.refused(&["task", "claim"], 4, "nothing_ready");
        let resume = ["resume", "1", "--", "sh", "-c", "echo x > x"];
        assert_eq!(env.weald(&resume).code, 0);
        assert_eq!(
            (status(&env, "1"), show(&env, "x")),
            (json!("completed"), "x\n".to_owned())
        );
        env.ok(&["task", "add", "Look at it"]);
        let plain = env.weald(&["work", "2", "--", "true"]);
        assert_eq!(plain.code, 1, "{plain:#?}");
        assert!(plain.stdout.contains("changed nothing"), "{plain:#?}");
        assert!(plain.stdout.contains("weald task done 2"), "{plain:#?}");
        env.ok(&["task", "done", "2"]);
        assert_eq!(status(&env, "2"), "completed");
    }
}

#[test]
fn y3_commits_that_cancel_out_are_no_change() {
    let env = repository();
    env.ok(&["task", "add", "Do it"]);
    let script = "echo q > qq; git add qq; git commit -qm qq; git revert --no-edit HEAD";
    assert_parked(&env, "1", &work(&env, "1", script));
    // The next one begins anew.
    let script = "git log --oneline wt/do-it | wc -l; echo x > x";
    let again = env.weald(&["resume", "1", "--json", "--", "sh", "-c", script]);
    assert_eq!(
        (again.code, show(&env, "x")),
        (0, "x\n".to_owned()),
        "{again:#?}"
    );
    assert_eq!(status(&env, "1"), "completed");
}

#[test]
fn y3_a_report_of_its_own_or_the_setting_completes_without_changes() {
    let env = repository();
    let script = "weald task done --report 'it was right already'";
    let answer = work(&env, "Look at it", script);
    assert_eq!(answer.code, 0, "{answer:#?}");
    let done = task(&env, "1");
    assert_eq!(
        (&done["status"], &done["report"]),
        (&json!("completed"), &json!("it was right already"))
    );
    assert_eq!(listed(&env), [""; 0]);
    // What an agent landed itself is its work, also when nothing is left at its end.
    let script = "echo x > x; git add x; git commit -qm x; weald land";
    let answer = work(&env, "Land it yourself", script);
    assert_eq!(
        (answer.code, status(&env, "2")),
        (0, json!("completed")),
        "{answer:#?}"
    );
    assert_eq!(show(&env, "x"), "x\n");
    // Work that main has by now is no news, but it was done.
    let other = "echo same > same; git add same; git commit -qm same";
    env.ok(&["new", "other"]);
    assert_eq!(
        env.weald(&["run", "other", "--", "sh", "-c", other]).code,
        0
    );
    env.ok(&["new", "again", "--task", &add(&env, "Twice")]);
    env.ok(&["land", "other"]);
    let answer = work(&env, "3", other);
    assert_eq!(
        (answer.code, status(&env, "3")),
        (0, json!("completed")),
        "{answer:#?}"
    );
    env.ok(&["config", "set", "work.on_empty", "complete"]);
    let answer = work(&env, "Nothing to do", "true");
    assert_eq!(
        (answer.code, status(&env, "4")),
        (0, json!("completed")),
        "{answer:#?}"
    );
    assert_eq!(listed(&env), [""; 0]);
}

fn add(env: &TestEnv, subject: &str) -> String {
    env.ok(&["task", "add", subject])["task"]["id"].to_string()
}

#[test]
fn y3_a_worker_whose_agents_change_nothing_stops() {
    let env = repository();
    for subject in ["one", "two", "three", "four", "five"] {
        add(&env, subject);
    }
    let answer = env.weald(&[
        "worker",
        "--name",
        "alice",
        "--idle-timeout",
        "1s",
        "--",
        "true",
    ]);
    assert_eq!(answer.code, 1, "{answer:#?}");
    assert!(
        answer.stderr.contains("2 agents in a row changed nothing"),
        "{answer:#?}"
    );
    let counts = env.ok(&[])["counts"].clone();
    assert_eq!(
        counts,
        json!({"pending": 3, "in_progress": 2}),
        "{answer:#?}"
    );
    // One that works in between shows that agents can.
    let script = r#"test "$WEALD_TASK" != 4 || echo x > x"#;
    let args = ["worker", "--idle-timeout", "1s", "--", "sh", "-c", script];
    let answer = env.weald(&args);
    assert_eq!(answer.code, 1, "{answer:#?}");
    assert!(
        answer.stderr.contains("2 tasks wait for you"),
        "{answer:#?}"
    );
    let counts = env.ok(&[])["counts"].clone();
    assert_eq!(
        counts,
        json!({"in_progress": 4, "completed": 1}),
        "{answer:#?}"
    );
}

/// Work that does not land is told apart by its worktree; work in the main checkout by what is there.
#[test]
fn y3_nothing_done_is_parked_without_a_landing_too() {
    let env = repository();
    let no_land = |subject: &str, script: &str| {
        let args = [
            "work",
            subject,
            "--no-land",
            "--json",
            "--",
            "sh",
            "-c",
            script,
        ];
        env.weald(&args)
    };
    assert_parked(&env, "1", &no_land("No land", "true"));
    let answer = no_land("A file", "echo x > x");
    assert_eq!(
        (answer.code, status(&env, "2")),
        (0, json!("completed")),
        "{answer:#?}"
    );
    assert_eq!(listed(&env), ["a-file"]);
    env.ok(&["rm", "a-file", "--discard"]);
    env.git(&["branch", "-D", "wt/a-file"]);
    let in_main = |subject: &str, script: &str| {
        let args = [
            "work",
            subject,
            "--no-worktree",
            "--json",
            "--",
            "sh",
            "-c",
            script,
        ];
        env.weald_alone(&args)
    };
    fs::write(env.repo().join("config.py"), "mine\n").unwrap();
    assert_parked(&env, "3", &in_main("In main", "cat config.py"));
    for (id, script) in [
        ("4", "echo more >> config.py"),
        ("5", "git commit -qam changed"),
        ("6", "echo new > new"),
    ] {
        let answer = in_main("In main again", script);
        assert_eq!(
            (answer.code, status(&env, id)),
            (0, json!("completed")),
            "{answer:#?}"
        );
    }
}

#[test]
fn y3_phases_and_races_need_a_change_somewhere() {
    let env = repository();
    env.ok(&["config", "set", "phase.list", "build,review"]);
    let phase =
        |id: &str, script: &str| env.weald(&["phase", id, "--json", "--", "sh", "-c", script]);
    // A review changes nothing, and that is fine.
    add(&env, "Build");
    let answer = phase("1", r#"test $WEALD_ROLE = review || echo x > x"#);
    assert_eq!(
        (answer.code, status(&env, "1")),
        (0, json!("completed")),
        "{answer:#?}"
    );
    add(&env, "Nothing");
    assert_parked(&env, "2", &phase("2", "true"));
    add(&env, "Race");
    let script = "test $WEALD_ROLE = race:a || echo y > y";
    let raced = env.weald(&["race", "3", "-n", "2", "--json", "--", "sh", "-c", script]);
    assert_eq!(raced.code, 0, "{raced:#?}");
    let refused = env.refused(&["race", "pick", "3", "a"], 1, "entry_not_done");
    assert!(refused.to_string().contains("changed nothing"), "{refused}");
    env.ok(&["race", "pick", "3", "b"]);
    assert_eq!(
        (status(&env, "3"), show(&env, "y")),
        (json!("completed"), "y\n".to_owned())
    );
}
