//! Landings at the same time: each answers when its own clean-up is done, and says what became of it.

use std::process::Stdio;

use weald_testkit::{Answer, TestEnv, full_scale};

use crate::landing_moving::sh;
use crate::trees_remove::{grow, repository};

/// Starts all of them at once; answers each with whether its tree was there when it ended.
fn at_once(env: &TestEnv, commands: &[(String, Vec<String>)]) -> Vec<(Answer, bool)> {
    std::thread::scope(|scope| {
        let ended = |(tree, words): &(String, Vec<String>)| {
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            let mut command = env.weald_command(&words);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let answer = Answer::of(child.spawn().unwrap().wait_with_output().unwrap());
            (answer, env.root().join("app.weald").join(tree).exists())
        };
        let all: Vec<_> = commands
            .iter()
            .map(|one| scope.spawn(move || ended(one)))
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

fn rounds() -> u32 {
    if full_scale() { 20 } else { 2 }
}

#[test]
fn y13_a_landing_that_waited_answers_after_its_own_clean_up() {
    let env = repository();
    env.ok(&["config", "set", "gate.command", "sleep 0.02"]);
    for round in 0..rounds() {
        let names: Vec<_> = (0..12).map(|number| format!("t{round}-{number}")).collect();
        for name in &names {
            let tree = grow(&env, name, "sealed");
            sh(
                &env,
                &tree,
                &format!("echo x > {name}; git add .; git commit -q -m {name}"),
            );
        }
        let land = |name: &String| {
            let words = ["land", name, "--json"].map(str::to_owned);
            (name.clone(), words.to_vec())
        };
        let commands: Vec<_> = names.iter().map(land).collect();
        for (answer, is_there) in at_once(&env, &commands) {
            assert_eq!(answer.code, 0, "round {round}: {answer:#?}");
            let landing = answer.json()["landings"][0].clone();
            assert_eq!(landing["outcome"], "landed", "round {round}: {landing:#}");
            let cleanup = &landing["cleanup"];
            assert_eq!(
                cleanup["directory"], "trashed",
                "round {round}: {landing:#}"
            );
            assert_eq!(cleanup["branch"], "deleted", "round {round}: {landing:#}");
            assert!(!is_there, "round {round}: {landing:#}");
        }
    }
}

#[test]
fn y13_work_at_once_says_kept_only_of_a_worktree_that_was_kept() {
    let env = repository();
    for round in 0..rounds() / 2 {
        let work = |number: u32| {
            let name = format!("do-{round}-{number}");
            let script = format!("echo x > f-{round}-{number}");
            let words = ["work", "--new", &name, "--", "sh", "-c", &script];
            (name.clone(), words.map(str::to_owned).to_vec())
        };
        let commands: Vec<_> = (0..12).map(work).collect();
        for (answer, is_there) in at_once(&env, &commands) {
            assert_eq!(answer.code, 0, "round {round}: {answer:#?}");
            assert!(!answer.stdout.contains("worktree kept"), "{answer:#?}");
            assert!(answer.stdout.contains("cleaned up"), "{answer:#?}");
            assert!(!is_there, "round {round}: {answer:#?}");
        }
    }
    env.ok(&["config", "set", "landing.after", "keep"]);
    let kept = env.weald(&["work", "Stay here", "--", "sh", "-c", "echo x > stays"]);
    assert!(kept.stdout.contains("worktree kept"), "{kept:#?}");
    assert!(env.root().join("app.weald/stay-here").exists());
}

#[test]
fn y13_messages_say_what_happened() {
    let env = repository();
    env.ok(&["task", "add", "Do it"]);
    let refused = env.refused(&["task", "done", "1", "--token", "99"], 1, "stale_token");
    let message = refused["error"]["message"].to_string();
    assert!(message.contains("there was no such claim"), "{message}");
    // The note comes before the work that it announces.
    let mut command = env.weald_command(&["work", "1", "--", "sh", "-c", "echo x > x"]);
    command.env("WEALD_STEP", "kill:create.announced");
    let killed = Answer::of(command.output().unwrap());
    assert!(
        killed.stderr.contains("Creating isolated worktree..."),
        "{killed:#?}"
    );
    let done = env.weald(&["work", "1", "--", "sh", "-c", "echo x > x"]);
    assert_eq!(done.code, 0, "{done:#?}");
    let reverted = env.weald(&["revert", "1"]);
    assert!(
        reverted.stdout.contains("task 1 is open again"),
        "{reverted:#?}"
    );
    assert_eq!(crate::work::status(&env, "1"), "pending");
    // A branch that is reused starts where it is.
    env.git(&["branch", "wt/mine", "HEAD~1"]);
    let new = env.weald(&["new", "mine", "--on-branch-exists", "reuse"]);
    assert!(
        new.stdout.contains("branch wt/mine with its commits"),
        "{new:#?}"
    );
    assert!(!new.stdout.contains("from"), "{new:#?}");
    env.ok(&["task", "add", "Other"]);
    env.ok(&["new", "other", "--task", "2"]);
    env.ok(&["task", "claim", "2", "--session", "bob"]);
    let refused = env.weald(&["land", "other", "--token", "99"]);
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(said.contains("there was no such claim"), "{refused:#?}");
}
