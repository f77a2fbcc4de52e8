//! Landings that are killed at every labelled step: the lander, or the git that it waits for. Whatever the user does next,
//! nothing that landed is reverted and nothing of theirs is lost.

use std::fs;
use std::process::Stdio;

use serde_json::Value;
use weald_testkit::STEPS;
use weald_testkit::{TestEnv, full_scale};

use crate::landing::rev;
use crate::landing_moving::{nothing_left, sh};
use crate::trees_crash::settle;
use crate::trees_remove::{git_in, grow, repository};

const BASE: &str =
    "mkdir d; for f in a b gone d/x; do echo 1 >$f; done; git add -A; git commit -q -m base";

const CHANGE: &str =
    "echo 2 >a; chmod +x a; git rm -q gone; git rm -rq d; echo 2 >d; mkdir e; echo 2 >e/new
                      git add -A; git commit -q -m change";

const MINE: &str = "echo mine >b; echo staged >s; git add s; echo mine >untracked";

/// What the target must hold in the end.
const LANDED: [(&str, &str); 3] = [("a", "2\n"), ("d", "2\n"), ("e/new", "2\n")];

/// How the checkout is before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checkout {
    Clean,
    Dirty,
    Elsewhere,
}

/// What comes after the kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Doctor,
    CommitAll,
    Commit,
    Land,
}

fn steps() -> impl Iterator<Item = &'static str> {
    // Before it begins nothing was touched, after it is recorded nothing is open; and only a target that is checked out
    // nowhere is looked for again.
    let others = ["land.ready", "land.recorded", "land.looked"];
    let of_landing = STEPS
        .iter()
        .copied()
        .filter(|step| step.starts_with("land."));
    of_landing.filter(move |step| !others.contains(step))
}

fn prepared(checkout: Checkout) -> TestEnv {
    let env = repository();
    sh(&env, &env.repo(), BASE);
    let tree = grow(&env, "t", "sealed");
    sh(&env, &tree, CHANGE);
    match checkout {
        Checkout::Clean => {}
        Checkout::Dirty => sh(&env, &env.repo(), MINE),
        Checkout::Elsewhere => sh(&env, &env.repo(), "git switch -q -c dev"),
    }
    env
}

/// Runs a landing that ends itself, or its git, at a step.
fn cut_short(env: &TestEnv, how: &str, step: &str) -> i32 {
    let mut command = env.weald_command(&["land", "t"]);
    command
        .env("WEALD_STEP", format!("{how}:{step}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let ended = command.status().unwrap();
    settle(env);
    ended.code().unwrap_or(-1)
}

fn codes(answer: &Value) -> Vec<String> {
    let all = answer["findings"].as_array().unwrap();
    let code = |finding: &Value| finding["code"].as_str().unwrap().to_owned();
    all.iter()
        .map(code)
        .filter(|code| code != "sandbox_level")
        .collect()
}

#[track_caller]
fn healed(env: &TestEnv, what: &str) {
    let first = env.weald(&["doctor", "--fix", "--json"]);
    assert_eq!(first.code, 0, "{what}: {first:#?}");
    let second = env.ok(&["doctor", "--fix"]);
    assert_eq!(
        codes(&second),
        Vec::<String>::new(),
        "{what}, after {first:#?}"
    );
    nothing_left(env);
}

/// The user's changes are there, changed or committed.
#[track_caller]
fn mine_is_there(env: &TestEnv, what: &str) {
    for (file, text) in [("b", "mine\n"), ("s", "staged\n"), ("untracked", "mine\n")] {
        let found = fs::read_to_string(env.repo().join(file)).unwrap_or_default();
        assert_eq!(found, text, "{what}: {file}");
    }
}

/// Whatever happened in between, the landing gets there, and nothing of it was reverted.
#[track_caller]
fn gets_there(env: &TestEnv, checkout: Checkout, what: &str) {
    // A tree that landed is in the trash.
    let landed = !env.root().join("app.weald/t").exists();
    if !landed {
        let answer = env.weald(&["land", "t", "--json"]);
        assert_eq!(answer.code, 0, "{what}: {answer:#?}");
    }
    for (file, text) in LANDED {
        assert_eq!(
            env.git(&["show", &format!("main:{file}")]),
            text,
            "{what}: {file}"
        );
        if checkout != Checkout::Elsewhere {
            let found = fs::read_to_string(env.repo().join(file)).unwrap_or_default();
            assert_eq!(found, text, "{what}: {file}");
        }
    }
    assert_eq!(env.git(&["ls-tree", "main", "gone"]), "", "{what}");
    // The checkout differs from its HEAD by what the user changed, and by nothing else.
    let status = env.git(&["status", "--porcelain"]);
    let is_mine = |line: &str| [" M b", "A  s", "?? untracked"].contains(&line);
    assert!(status.lines().all(is_mine), "{what}: {status}");
    nothing_left(env);
    env.git(&["fsck", "--connectivity-only"]);
}

fn try_step(how: &str, step: &str, checkout: Checkout, next: Next) {
    let what = format!("{how} at {step}, {checkout:?}, then {next:?}");
    let env = prepared(checkout);
    let before = env.git(&["status", "--porcelain"]);
    let code = cut_short(&env, how, step);
    assert!(how != "kill" || code == -1, "{what}: it never came there");
    match next {
        Next::Doctor => {
            healed(&env, &what);
            assert_eq!(env.git(&["status", "--porcelain"]), before, "{what}");
        }
        Next::CommitAll | Next::Commit => {
            let _ = fs::remove_file(env.repo().join(".git/index.lock"));
            let all = if next == Next::CommitAll { "-a" } else { "-q" };
            sh(
                &env,
                &env.repo(),
                &format!("git commit -q {all} --allow-empty -m mine"),
            );
            let user = rev(&env, "HEAD");
            healed(&env, &what);
            let kept = git_in(
                &env,
                &env.repo(),
                &["merge-base", "--is-ancestor", &user, "HEAD"],
            );
            assert_eq!(kept, "", "{what}");
        }
        Next::Land => {}
    }
    if checkout == Checkout::Dirty {
        mine_is_there(&env, &what);
    }
    gets_there(&env, checkout, &what);
    if checkout == Checkout::Dirty {
        mine_is_there(&env, &what);
    }
}

#[test]
fn m20_killed_anywhere_doctor_brings_it_in_order() {
    for step in steps() {
        try_step("kill", step, Checkout::Dirty, Next::Doctor);
    }
}

#[test]
fn m20_killed_anywhere_and_the_user_commits_everything() {
    for step in steps() {
        try_step("kill", step, Checkout::Dirty, Next::CommitAll);
    }
}

#[test]
fn m20_killed_anywhere_and_the_user_commits_what_is_staged() {
    for step in steps() {
        try_step("kill", step, Checkout::Dirty, Next::Commit);
    }
}

#[test]
fn m20_killed_anywhere_the_next_landing_goes_on() {
    for step in steps() {
        try_step("kill", step, Checkout::Clean, Next::Land);
    }
}

#[test]
fn m20_killed_while_the_target_is_checked_out_nowhere() {
    let alone = [
        "land.intent",
        "land.prepared",
        "land.ref_prepared",
        "land.looked",
        "land.ref_committed",
        "land.moved",
    ];
    for step in alone {
        try_step("kill", step, Checkout::Elsewhere, Next::Doctor);
        try_step("kill", step, Checkout::Elsewhere, Next::Land);
    }
}

#[test]
fn m20_a_killed_git_leaves_no_lock_and_the_landing_goes_on() {
    let waiting = [
        "ref_prepared",
        "planned",
        "swapping",
        "swapped",
        "index_renamed",
    ];
    for step in waiting.map(|step| format!("land.{step}")) {
        let env = prepared(Checkout::Dirty);
        let code = cut_short(&env, "killchild", &step);
        nothing_left(&env);
        mine_is_there(&env, &step);
        assert_eq!(code, 0, "{step}: another git follows");
        gets_there(&env, Checkout::Dirty, &step);
        if full_scale() {
            try_step("killchild", &step, Checkout::Elsewhere, Next::Doctor);
        }
    }
}

#[test]
fn m20_a_stopped_lander_moves_nothing_after_somebody_else_took_over() {
    for step in [
        "land.index_locked",
        "land.ref_prepared",
        "land.swapped",
        "land.index_renamed",
    ] {
        let env = prepared(Checkout::Dirty);
        let mut command = env.weald_command(&["land", "t"]);
        command
            .env("WEALD_STEP", format!("stop:{step}"))
            .env("WEALD_LANDING_LEASE", "1s")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut stopped = command.spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&stopped);
        let options = rustix::process::WaitOptions::UNTRACED;
        rustix::process::waitpid(Some(pid), options).unwrap();
        let answer = env.weald(&["land", "t", "--json"]);
        assert_eq!(answer.code, 0, "{step}: {answer:#?}");
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::CONT);
        let _ = stopped.wait();
        settle(&env);
        mine_is_there(&env, step);
        gets_there(&env, Checkout::Dirty, step);
        assert_eq!(
            env.git(&["rev-list", "--count", "main"]).trim(),
            "4",
            "{step}"
        );
    }
}

#[test]
fn m20_the_lock_of_a_landing_that_is_gone_is_in_nobody_s_way() {
    let env = prepared(Checkout::Dirty);
    let lock = env.repo().join(".git/index.lock");
    fs::write(&lock, "weald landing 99\n").unwrap();
    healed(&env, "doctor");
    fs::write(&lock, "weald landing 99\n").unwrap();
    gets_there(&env, Checkout::Dirty, "land");
}
