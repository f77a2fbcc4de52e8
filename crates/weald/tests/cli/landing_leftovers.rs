//! What landings leave: nothing is weald's because of its name, and whatever can't be brought in order is told.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::landing::{land, landed, rev};
use crate::landing_moving::sh;
use crate::trees_crash::settle;
use crate::trees_remove::{commit, grow, repository};

/// Writes a stage whose plan would put a program among main's hooks.
fn plant(env: &TestEnv, stage: &Path) {
    fs::create_dir_all(stage.join("old")).unwrap();
    fs::create_dir_all(stage.join("files")).unwrap();
    fs::write(stage.join("files/keep"), "k").unwrap();
    fs::write(stage.join("old/0"), "#!/bin/sh\n").unwrap();
    let git_dir = env.repo().join(".git");
    let stamp =
        json!({"inode": 1, "mode": 33188, "size": 1, "modified": [0, 0], "changed": [0, 0]});
    let plan = json!({
        "landing": 99, "target": "main", "old": "1".repeat(40), "new": "2".repeat(40),
        "checkout": git_dir.join("hooks"), "git_dir": git_dir, "stage": stage,
        "entries": [{"path": "post-commit", "action": {"delete": {"old": stamp, "place": 0}},
                     "old_id": null, "new_id": null}],
        "emptied": [], "made": [], "locks": [],
    });
    fs::write(stage.join("plan"), plan.to_string()).unwrap();
}

fn findings(env: &TestEnv, args: &[&str]) -> Vec<Value> {
    let answer = env.weald(&[&["doctor", "--json"], args].concat());
    let all = answer.json()["findings"].as_array().cloned();
    all.unwrap_or_else(|| panic!("{answer:#?}"))
}

fn of_code(findings: &[Value], code: &str) -> Vec<Value> {
    let is_it = |finding: &&Value| finding["code"] == code;
    findings.iter().filter(is_it).cloned().collect()
}

#[track_caller]
fn no_hook(env: &TestEnv, what: &str) {
    let hook = env.repo().join(".git/hooks/post-commit");
    assert!(!hook.exists(), "{what}: a hook was planted");
}

/// Lands `t` and is killed at a step.
fn killed_at(env: &TestEnv, step: &str) {
    let mut command = env.weald_command(&["land", "t"]);
    command
        .env("WEALD_STEP", format!("kill:{step}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    assert_eq!(command.status().unwrap().code(), None);
    settle(env);
}

/// A tree `t` that changes, adds and deletes a file.
fn prepared() -> TestEnv {
    let env = repository();
    sh(
        &env,
        &env.repo(),
        "echo 1 >a; echo 1 >gone; git add -A; git commit -q -m base",
    );
    let tree = grow(&env, "t", "sealed");
    sh(
        &env,
        &tree,
        "echo 2 >a; git rm -q gone; echo 2 >new; git add -A; git commit -q -m change",
    );
    env
}

fn plan_file(env: &TestEnv, landing: u64) -> std::path::PathBuf {
    let folder = env.repo().join(".git/weald/private/moves");
    folder.join(format!("{landing}.plan"))
}

#[test]
fn m20_a_stage_in_a_tree_or_a_checkout_is_never_acted_on() {
    let env = repository();
    let tree = grow(&env, "x", "sealed");
    let before = rev(&env, "main");
    plant(&env, &tree.join(".weald-landing-99"));
    // One that looks like a linked worktree.
    sh(&env, &tree, "mv .git .gitx; echo 'gitdir: .gitx' > .git");
    findings(&env, &["--fix"]);
    no_hook(&env, "in a tree");
    sh(
        &env,
        &tree,
        "rm .git; mv .gitx .git; git add -A -f .weald-landing-99; git commit -q -m stage",
    );
    let (code, done) = land(&env, &["x"]);
    assert_eq!(
        (code, &done[0]["reason"]["code"]),
        (1, &json!("path_reserved")),
        "{done:#?}"
    );
    assert_eq!(rev(&env, "main"), before);
    // Also where nobody has the target checked out.
    sh(&env, &env.repo(), "git switch -q -c dev");
    let (_, done) = land(&env, &["x"]);
    assert_eq!(done[0]["reason"]["code"], "path_reserved", "{done:#?}");
    sh(&env, &env.repo(), "git switch -q main");
    // The user's own, tracked or not.
    for name in [".weald-landing-99", "weald-landing-2"] {
        plant(&env, &env.repo().join(name));
    }
    sh(&env, &env.repo(), "git add -A -f .; git commit -q -m mine");
    findings(&env, &["--fix"]);
    no_hook(&env, "in the checkout");
    assert_eq!(env.git(&["status", "--porcelain"]), "");
}

#[test]
fn m20_a_stage_in_a_git_directory_that_no_record_names_is_told() {
    let env = prepared();
    let stage = env.repo().join(".git/weald-landing-99");
    plant(&env, &stage);
    for args in [&[][..], &["--fix"]] {
        let told = of_code(&findings(&env, args), "landing_leftover");
        assert_eq!(told.len(), 1, "{told:#?}");
        assert_eq!(told[0]["fixed"], false);
        assert!(
            told[0]["would"].as_str().unwrap().contains("rm -r"),
            "{told:#?}"
        );
        no_hook(&env, "in the git directory");
        assert!(stage.join("old/0").exists());
    }
    // At the very place that the next landing would take.
    fs::rename(&stage, env.repo().join(".git/weald-landing-1")).unwrap();
    let (_, done) = land(&env, &["t"]);
    assert_eq!(done[0]["reason"]["code"], "stage_in_the_way", "{done:#?}");
    assert!(env.repo().join(".git/weald-landing-1/old/0").exists());
    landed(&env, &["t"]);
}

#[test]
fn m20_a_plan_about_another_checkout_is_not_acted_on() {
    let hooks = |env: &TestEnv, plan: &mut Value| {
        plan["checkout"] = json!(env.repo().join(".git/hooks"));
    };
    let other_stage = |env: &TestEnv, plan: &mut Value| {
        plan["stage"] = json!(env.repo().join("elsewhere"));
    };
    let into_git = |_: &TestEnv, plan: &mut Value| {
        plan["entries"][0]["path"] = json!(".GIT/hooks/post-commit");
    };
    let outside = |_: &TestEnv, plan: &mut Value| {
        plan["entries"][0]["path"] = json!("../outside");
    };
    type Change<'c> = &'c dyn Fn(&TestEnv, &mut Value);
    let changes: [Change<'_>; 4] = [&hooks, &other_stage, &into_git, &outside];
    for (number, change) in changes.into_iter().enumerate() {
        let env = prepared();
        killed_at(&env, "land.swapped");
        let file = plan_file(&env, 1);
        let good = fs::read_to_string(&file).unwrap();
        let mut plan: Value = serde_json::from_str(&good).unwrap();
        change(&env, &mut plan);
        fs::write(&file, plan.to_string()).unwrap();
        let told = of_code(&findings(&env, &["--fix"]), "landing_unfinished");
        assert_eq!(told.len(), 1, "{number}");
        assert_eq!(told[0]["fixed"], false, "{number}: {told:#?}");
        no_hook(&env, "by a plan");
        assert!(!env.root().join("outside").exists());
        fs::write(&file, good).unwrap();
        landed(&env, &["t"]);
    }
}

#[test]
fn m20_a_plan_whose_landing_has_ended_is_brought_in_order() {
    let env = prepared();
    killed_at(&env, "land.swapped");
    let stage = env.repo().join(".git/weald-landing-50");
    fs::rename(env.repo().join(".git/weald-landing-1"), &stage).unwrap();
    let file = plan_file(&env, 1);
    let mut plan: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    plan["stage"] = json!(stage);
    plan["landing"] = json!(50);
    fs::remove_file(&file).unwrap();
    fs::write(plan_file(&env, 50), plan.to_string()).unwrap();
    findings(&env, &["--fix"]);
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(env.repo().join("gone")).unwrap(), "1\n");
    assert!(!stage.exists() && !plan_file(&env, 50).exists());
    landed(&env, &["t"]);
}

/// Makes the process of a landing one of another machine.
fn move_away(env: &TestEnv, landing: i64) {
    let database = rusqlite::Connection::open(env.private().join("weald.db")).unwrap();
    let changed = database.execute(
        "UPDATE landings SET doc = json_set(doc, '$.intent.worker.host', 'elsewhere') WHERE id = ?1",
        [landing],
    );
    assert_eq!(changed.unwrap(), 1);
}

#[test]
fn m20_a_landing_of_an_unknown_process_blocks_its_target_alone() {
    let env = prepared();
    let other = grow(&env, "other", "sealed");
    commit(&env, &other, "o", "o");
    killed_at(&env, "land.swapped");
    move_away(&env, 1);
    for args in [&[][..], &["--fix"]] {
        let told = of_code(&findings(&env, args), "landing_unfinished");
        assert_eq!(told.len(), 1, "{told:#?}");
        assert_eq!(told[0]["fixed"], false);
        let would = told[0]["would"].as_str().unwrap();
        assert!(would.contains("weald doctor --recover 1"), "{would}");
    }
    let (_, done) = land(&env, &["other"]);
    assert_eq!(done[0]["reason"]["code"], "landing_unfinished", "{done:#?}");
    let hint = done[0]["reason"]["hint"].as_str().unwrap();
    assert!(hint.contains("weald doctor --recover 1"), "{hint}");
    // Itself, and the whole queue: told, not waited for.
    for args in [&["land", "t", "--json"][..], &["land", "--json"]] {
        let answer = env.weald(args);
        assert_eq!(answer.code, 1, "{answer:#?}");
        assert!(answer.stdout.contains("landing_unfinished"), "{answer:#?}");
    }
    sh(&env, &env.repo(), "git branch side main");
    env.ok(&["config", "set", "target", "side"]);
    let aside = grow(&env, "aside", "sealed");
    commit(&env, &aside, "s", "s");
    landed(&env, &["aside"]);
    assert_eq!(env.git(&["show", "side:s"]), "s");
    env.ok(&["config", "set", "target", "main"]);
    // An agent can't say that it is gone, its owner can.
    let mut agent = env.weald_command(&["queue", "recover", "1", "--json"]);
    let refused = agent.env("CLAUDECODE", "1").output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    env.ok(&["queue", "recover", "1"]);
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    let again = env.weald(&["queue", "recover", "1", "--json"]);
    assert!(again.stdout.contains("nothing_to_recover"), "{again:#?}");
    landed(&env, &["t"]);
}

#[test]
fn m20_a_running_landing_is_not_recovered_by_hand() {
    let env = prepared();
    let mut command = env.weald_command(&["land", "t"]);
    command
        .env("WEALD_STEP", "stop:land.swapped")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut stopped = command.spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&stopped);
    rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::UNTRACED).unwrap();
    let refused = env.weald(&["queue", "recover", "1", "--json"]);
    assert!(refused.stdout.contains("landing_busy"), "{refused:#?}");
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    assert!(stopped.wait().unwrap().success());
    assert_eq!(env.git(&["show", "main:a"]), "2\n");
}

#[test]
fn m20_a_worktree_that_git_forgot_meanwhile_is_in_nobody_s_way() {
    let env = prepared();
    sh(
        &env,
        &env.repo(),
        "git switch -q -c dev; git worktree add -q ../m main",
    );
    killed_at(&env, "land.swapped");
    fs::remove_dir_all(env.repo().join(".git/worktrees/m")).unwrap();
    let told = of_code(&findings(&env, &["--fix"]), "landing_unfinished");
    assert_eq!(told[0]["fixed"], true, "{told:#?}");
    landed(&env, &["t"]);
    assert_eq!(env.git(&["show", "main:a"]), "2\n");
}

#[test]
fn m20_a_history_that_cannot_be_read_decides_nothing() {
    let env = prepared();
    killed_at(&env, "land.swapped");
    // Somebody committed meanwhile, and that commit can't be read.
    let tip = env.git(&["commit-tree", "-p", "main", "-m", "mine", "main^{tree}"]);
    let tip = tip.trim();
    let (folder, name) = tip.split_at(2);
    let object = env.repo().join(".git/objects").join(folder).join(name);
    for lock in ["refs/heads/main.lock", "HEAD.lock"] {
        let _ = fs::remove_file(env.repo().join(".git").join(lock));
    }
    fs::write(env.repo().join(".git/refs/heads/main"), format!("{tip}\n")).unwrap();
    fs::rename(&object, env.root().join("object")).unwrap();
    let told = of_code(&findings(&env, &["--fix"]), "landing_unfinished");
    assert_eq!(told[0]["fixed"], false, "{told:#?}");
    assert!(plan_file(&env, 1).exists());
    assert_eq!(fs::read_to_string(env.repo().join("a")).unwrap(), "2\n");
    fs::rename(env.root().join("object"), &object).unwrap();
    landed(&env, &["t"]);
}

#[test]
fn m7_files_that_git_was_told_to_skip_are_compared_if_they_are_there() {
    for (change, file) in [("echo 2 >a", "a"), ("git rm -q gone", "gone")] {
        let env = repository();
        let base = "echo 1 >a; echo 1 >gone; git add -A; git commit -q -m base";
        sh(&env, &env.repo(), base);
        let tree = grow(&env, "t", "sealed");
        let change = format!("{change}; git add -A; git commit -q -m change");
        sh(&env, &tree, &change);
        let skip = format!("git update-index --skip-worktree {file}");
        sh(&env, &env.repo(), &format!("{skip}; echo LOCAL >{file}"));
        let before = rev(&env, "main");
        let (_, done) = land(&env, &["t"]);
        assert_eq!(done[0]["reason"]["code"], "target_dirty", "{done:#?}");
        assert_eq!(done[0]["reason"]["paths"], json!([file]));
        let kept = fs::read_to_string(env.repo().join(file)).unwrap();
        assert_eq!((kept.as_str(), rev(&env, "main")), ("LOCAL\n", before));
        assert_eq!(env.git(&["ls-files", "-v", file]), format!("S {file}\n"));
        // As it was committed, it is in nobody's way.
        fs::write(env.repo().join(file), "1\n").unwrap();
        landed(&env, &["t"]);
        assert_eq!(env.git(&["status", "--porcelain"]), "");
    }
}
