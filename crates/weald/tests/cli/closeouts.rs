//! The end of a worktree: landings with nothing to land, reports that come late, commands that say what they did.

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_create::{listed, weald_in};
use crate::trees_remove::{KINDS, commit, grow, has_event, repository};
use crate::work::{status, work};

const PROFILES: [&str; 4] = ["default", "classroom", "refact", "claude-code"];

#[test]
fn y20_a_landing_with_nothing_to_land_removes_the_worktree_and_blocks_nobody() {
    for profile in PROFILES {
        let env = repository();
        env.ok(&["init", "--profile", profile]);
        env.ok(&["task", "add", "Fix it"]);
        let made = env.ok(&["new", "--task", "1"])["tree"].clone();
        let name = made["name"].as_str().unwrap();
        env.ok(&["task", "start", "1"]);
        env.ok(&["task", "done", "1"]);
        let blocked = env.weald(&["agent", "spawn", "Next one", "--json", "--", "true"]);
        assert_eq!(blocked.error_code(), "abandoned_trees", "{profile}");
        let landed = env.ok(&["land", name, "--report", "was there already"]);
        let landing = &landed["landings"][0];
        assert_eq!(landing["outcome"], "nothing_to_land", "{profile} {landing}");
        assert_eq!(
            landing["cleanup"]["directory"], "trashed",
            "{profile} {landing}"
        );
        assert!(listed(&env).is_empty(), "{profile}");
        let task = env.ok(&["task", "show", "1"])["task"].clone();
        assert_eq!(task["report"], "was there already", "{profile}");
        let next = env.weald(&["agent", "spawn", "Next one", "--json", "--", "true"]);
        assert_eq!(next.code, 0, "{profile} {next:#?}");
        env.weald(&["agent", "wait", "a1"]);
    }
}

const CANCELLED_OUT: &str = "echo q > qq; git add qq; git commit -qm qq; git revert --no-edit HEAD";

#[test]
fn y20_commits_that_cancel_out_are_removed_like_no_commits() {
    for kind in KINDS {
        let env = repository();
        env.ok(&["task", "add", "Fix it"]);
        env.ok(&["new", "one", "--task", "1", "--kind", kind]);
        let work = ["work", "1", "--no-land", "--", "sh", "-c", CANCELLED_OUT];
        assert_eq!(env.weald(&work).code, 0);
        let spawn = ["agent", "spawn", "Next one", "--json", "--", "true"];
        assert_eq!(env.weald(&spawn).error_code(), "abandoned_trees");
        // Nobody asked for it to land: it stays.
        env.refused(&["rm", "one"], 1, "tree_unlanded");
        if kind == "sealed" {
            // Nor does main's news change that.
            commit(&env, &env.repo(), "news", "1\n");
            env.ok(&["sync", "one"]);
        }
        let landed = env.ok(&["land", "one"])["landings"][0].clone();
        assert_eq!(landed["outcome"], "nothing_to_land", "{landed}");
        assert_eq!(landed["cleanup"]["directory"], "trashed", "{landed}");
        assert_eq!(landed["cleanup"]["branch"], "deleted", "{landed}");
        assert!(listed(&env).is_empty());
        let next = env.weald(&spawn);
        assert_eq!(next.code, 0, "{next:#?}");
        env.weald(&["agent", "wait", "a2"]);
        let restore = landed["cleanup"]["restore"].as_str().unwrap();
        let words: Vec<_> = restore.split(' ').skip(1).collect();
        env.ok(&words);
        let log = env.git(&["log", "--format=%s", "wt/one"]);
        assert!(log.contains("Revert \"qq\""), "nothing is lost: {log}");
    }
}

#[test]
fn y20_a_commit_beside_those_that_cancel_out_stays() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let script = format!("{CANCELLED_OUT}; git branch idea HEAD~1");
    let args = ["work", "1", "--no-land", "--", "sh", "-c", &script];
    assert_eq!(env.weald(&args).code, 0);
    let landed = env.ok(&["land", "fix-it"])["landings"][0].clone();
    assert_eq!(landed["cleanup"]["directory"], "kept", "{landed}");
    let why = landed["cleanup"]["why"].as_str().unwrap();
    assert!(why.contains("1 commit that main does not have"), "{why}");
    assert_eq!(listed(&env), ["fix-it"]);
}

#[test]
fn y20_list_knows_what_weald_committed() {
    let env = repository();
    env.ok(&["config", "set", "policy.gate", "human"]);
    env.ok(&["task", "add", "Fix it"]);
    assert_eq!(work(&env, "1", "echo u > u").code, 1);
    let dirty = || env.ok(&["list"])["trees"][0]["dirty"].clone();
    assert_eq!(dirty(), json!(false), "it waits for an approval");
    env.ok(&["approve", "fix-it", "--yes"]);
    env.ok(&["land", "fix-it", "--keep"]);
    assert_eq!(dirty(), json!(false));
    let path = env.root().join("app.weald/fix-it");
    std::fs::write(path.join("u"), "changed\n").unwrap();
    env.ok(&["status", "fix-it"]);
    assert_eq!(dirty(), json!(true));
    env.weald(&["land", "fix-it", "--keep", "--commit"]);
    assert_eq!(dirty(), json!(false), "a commit of a person's, too");
}

#[test]
fn y20_a_worktree_that_landed_and_stays_blocks_nobody() {
    let env = repository();
    env.ok(&["init", "--profile", "classroom"]);
    env.ok(&["task", "add", "Fix it"]);
    assert_eq!(work(&env, "1", "echo 1 > part").code, 0);
    env.ok(&["land", "fix-it"]);
    assert_eq!(listed(&env), ["fix-it"]);
    let next = env.weald(&["agent", "spawn", "Next one", "--json", "--", "true"]);
    assert_eq!(next.code, 0, "{next:#?}");
    env.weald(&["agent", "wait", "a2"]);
}

#[test]
fn y20_agent_diff_shows_what_landed_by_a_later_command() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let args = [
        "work",
        "1",
        "--no-land",
        "--json",
        "--",
        "sh",
        "-c",
        "echo 1 > part",
    ];
    assert_eq!(env.weald(&args).code, 0);
    let landed = env.ok(&["land", "fix-it", "--report", "made part"]);
    assert_eq!(landed["landings"][0]["outcome"], "landed");
    assert!(listed(&env).is_empty());
    let diff = env.ok(&["agent", "diff", "a1"]);
    assert_eq!(diff["files"][0]["path"], "part", "{diff}");
    let task = env.ok(&["task", "show", "1"])["task"].clone();
    assert_eq!(
        task["report"], "made part",
        "a report of a completed task counts"
    );
}

fn said(env: &TestEnv, args: &[&str]) -> String {
    let answer = env.weald(args);
    assert_eq!(answer.code, 0, "{args:?} {answer:#?}");
    answer.stdout
}

#[test]
fn y21_rm_completes_a_task_that_is_completed_already() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    env.ok(&["new", "a", "--task", "1"]);
    env.ok(&["task", "start", "1"]);
    env.ok(&["task", "done", "1", "--report", "by hand"]);
    let removed = env.ok(&["rm", "a", "--complete-task"]);
    assert_eq!(removed["outcome"], "trashed");
    assert_eq!(removed["task"]["status"], "completed");
    assert_eq!(removed["task"]["report"], "by hand");
    assert!(listed(&env).is_empty());
}

#[test]
fn y21_commands_say_what_they_did() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let path = grow(&env, "a", "sealed");
    env.ok(&["lock", "a", "--reason", "mine"]);
    let unlocked = said(&env, &["unlock", "a"]);
    assert!(
        unlocked.contains("unlocked a") && unlocked.contains("mine"),
        "{unlocked}"
    );
    assert!(said(&env, &["unlock", "a"]).contains("was not locked"));
    let kept = said(&env, &["keep", "a"]);
    assert!(kept.contains("weald keep a --undo"), "{kept}");
    assert_eq!(env.ok(&["show", "a"])["tree"]["status"], "kept");
    let undone = said(&env, &["keep", "a", "--undo"]);
    assert!(undone.contains("active again"), "{undone}");
    let tree = env.ok(&["show", "a"])["tree"].clone();
    assert_eq!(
        (&tree["status"], &tree["kept_at"]),
        (&json!("active"), &Value::Null)
    );
    assert!(has_event(&env, "a", "tree.unkept"));
    env.refused(&["keep", "a", "--undo"], 1, "illegal_move");
    let bound = said(&env, &["task", "bind", "1", "a"]);
    assert!(bound.contains("bound to a (wt/a)"), "{bound}");
    let unbound = said(&env, &["task", "unbind", "1"]);
    assert!(unbound.contains("no longer bound to a"), "{unbound}");
    commit(&env, &path, "part", "1\n");
    let landed = env.ok(&["land", "a", "--keep"])["landings"][0]["id"].to_string();
    env.ok(&["keep", "a"]);
    assert!(said(&env, &["keep", "a", "--undo"]).contains("landed again"));
    let reverted = said(&env, &["revert", &landed]);
    assert!(
        reverted.contains(&format!("landing {landed} of a is undone on main as ")),
        "{reverted}"
    );
}

#[test]
fn y21_rescue_says_what_it_committed() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    assert_eq!(work(&env, "1", "echo 1 > part; exit 1").code, 1);
    let rescued = said(&env, &["rescue", "1", "--commit"]);
    let head = env.ok(&["show", "fix-it"])["tree"]["head"].clone();
    let head = &head.as_str().unwrap()[..9];
    assert!(
        rescued.contains(&format!("committed as {head} on wt/fix-it")),
        "{rescued}"
    );
    assert!(rescued.contains("weald rescue 1 --continue"), "{rescued}");
    let again = said(&env, &["rescue", "1", "--commit"]);
    assert!(again.contains("nothing to commit"), "{again}");
    assert_eq!(status(&env, "1"), "failed");
}

/// A remote of the repository, and a clone in which people merge.
fn host(env: &TestEnv) -> std::path::PathBuf {
    let remote = env.root().join("remote.git");
    let elsewhere = env.root().join("elsewhere");
    env.git(&[
        "init",
        "-q",
        "--bare",
        "-b",
        "main",
        remote.to_str().unwrap(),
    ]);
    env.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
    env.git(&["push", "-q", "-u", "origin", "main"]);
    env.git(&[
        "clone",
        "-q",
        remote.to_str().unwrap(),
        elsewhere.to_str().unwrap(),
    ]);
    elsewhere
}

#[test]
fn y22_what_landed_in_jkz_is_open_for_the_clean_up_at_once() {
    let env = repository();
    env.ok(&["init", "--profile", "jkz"]);
    env.ok(&["task", "add", "Issue", "--id", "gh-7"]);
    let path = crate::trees_create::path_of(&env.ok(&["new", "--task", "gh-7"]));
    commit(&env, &path, "part", "1\n");
    env.refused(&["rm", "7", "--discard"], 1, "tree_locked");
    env.ok(&["approve", "7", "--yes"]);
    env.ok(&["land", "7"]);
    assert_eq!(listed(&env), ["7"], "jkz keeps it until somebody cleans up");
    assert_eq!(env.ok(&["show", "7"])["tree"]["locked"], Value::Null);
    let taken = env.ok(&["cleanup-merged", "--apply"]);
    assert_eq!(taken["removed"][0]["tree"], "7", "{taken}");
}

#[test]
fn y22_a_flag_without_effect_is_named_before_anything_is_done() {
    let env = repository();
    env.ok(&["task", "add", "Issue", "--id", "x7"]);
    let made = env.ok(&["new", "--task", "x7"])["tree"].clone();
    let name = made["name"].as_str().unwrap();
    commit(&env, made["path"].as_str().unwrap().as_ref(), "part", "1\n");
    env.ok(&["land", name, "--keep"]);
    let words = ["worktrees", "cleanup", "x7", "--force", "--apply"];
    let mut killed = env.weald_command(&words);
    let killed = killed.env("WEALD_STEP", "kill:remove.announced").output();
    let killed = weald_testkit::Answer::of(killed.unwrap());
    assert_eq!(killed.code, -1, "{killed:#?}");
    let instead = format!("weald rm {name} --discard");
    assert!(killed.stderr.contains(&instead), "{killed:#?}");
}

#[test]
fn y22_the_old_clean_up_commands_take_what_is_merged_on_the_same_day() {
    for (profile, id, words) in [
        ("jkz", "gh-7", &["cleanup-merged"][..]),
        ("jean-claude", "x7", &["worktrees", "cleanup"]),
    ] {
        let env = repository();
        env.ok(&["init", "--profile", profile]);
        let elsewhere = host(&env);
        env.ok(&["task", "add", "Issue", "--id", id]);
        let made = env.ok(&["new", "--task", id])["tree"].clone();
        let name = made["name"].as_str().unwrap();
        let path = std::path::PathBuf::from(made["path"].as_str().unwrap());
        let branch = made["branch"].as_str().unwrap();
        commit(&env, &path, "part", "1\n");
        env.ok(&["status", name]);
        env.git(&["push", "-q", "origin", branch]);
        let run = |more: &[&str]| env.ok(&[words, more].concat());
        assert_eq!(
            run(&["--fetch", "--apply"])["removed"],
            json!([]),
            "{profile}"
        );
        // Somebody merges it on the host, and closes the issue.
        for args in [
            &["fetch", "-q"][..],
            &[
                "merge",
                "-q",
                "--no-ff",
                &format!("origin/{branch}"),
                "-m",
                "m",
            ],
            &["push", "-q"],
        ] {
            crate::trees_create::git_in(&env, &elsewhere, args);
        }
        env.ok(&["task", "start", id]);
        env.ok(&["task", "done", id]);
        let looked = run(&["--fetch", "--min-age", "0", "--orphans"]);
        assert_eq!(
            looked["candidates"][0]["tree"],
            json!(name),
            "{profile} {looked}"
        );
        assert!(path.exists());
        let taken = run(&["--fetch", "--apply"]);
        assert_eq!(
            taken["removed"][0]["tree"],
            json!(name),
            "{profile} {taken}"
        );
        assert!(!path.exists(), "{profile}");
        // A person's lock still counts.
        env.ok(&["new", "mine"]);
        env.ok(&["lock", "mine", "--reason", "still needed"]);
        let kept = run(&["--min-age", "0"])["skipped"].clone();
        assert!(kept.to_string().contains("\"locked\""), "{profile} {kept}");
        // An age that somebody asks for still counts.
        env.ok(&["new", "young"]);
        let young = weald_in(
            &env,
            &env.repo(),
            &[words, &["--min-age", "1h", "--json"]].concat(),
        );
        assert!(young.stdout.contains("too_recent"), "{profile} {young:#?}");
    }
}
