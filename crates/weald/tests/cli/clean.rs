//! Clean-up: what goes, what stays and why, and that a look changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_remove::{KINDS, commit, events, git_in, grow, repository};
use crate::trees_trash::manifest;

/// Makes a tree whose task is cancelled: one that may go.
pub fn abandoned(env: &TestEnv, name: &str, kind: &str) -> PathBuf {
    let task = env.ok(&["task", "add", &format!("Try {name}")])["task"]["id"].clone();
    let task = task.to_string();
    env.ok(&["new", name, "--kind", kind, "--task", &task]);
    env.ok(&["task", "cancel", &task]);
    env.root().join("app.weald").join(name)
}

/// Changes a field of a tree's record, as a broken registry would have it.
pub fn rewrite(env: &TestEnv, tree: &str, field: &str, value: &Value) {
    let database = rusqlite::Connection::open(env.private().join("weald.db")).unwrap();
    let text = value.to_string();
    let changed = database.execute(
        "UPDATE trees SET doc = json_set(doc, ?1, json(?2)) WHERE json_extract(doc, '$.name') = ?3",
        [&format!("$.{field}"), &text, tree],
    );
    assert_eq!(changed.unwrap(), 1, "{tree} {field}");
}

/// Makes a tree and all in it unused since then.
pub fn grow_old(env: &TestEnv, tree: &str, at: &str) {
    rewrite(env, tree, "last_used_at", &json!(at));
    let places = [
        env.root().join("app.weald").join(tree),
        env.repo().join(".git/worktrees").join(tree),
    ];
    for place in places {
        let mut command = env.command("find");
        command.arg(&place);
        command.args(["-exec", "touch", "-h", "-d", at, "{}", "+"]);
        assert!(command.status().unwrap().success());
    }
}

/// What stays, by name, with its blockers.
pub fn blockers(report: &Value) -> BTreeMap<String, Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let skipped = report["skipped"].as_array().unwrap().iter();
    skipped
        .map(|one| {
            let words = one["blockers"].as_array().unwrap().iter();
            (text(&one["tree"]), words.map(text).collect())
        })
        .collect()
}

/// The trees in a list of the report, with one field of each.
pub fn named(report: &Value, list: &str, field: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = report[list].as_array().unwrap().iter();
    all.map(|one| (text(&one["tree"]), text(&one[field])))
        .collect()
}

fn candidates(report: &Value) -> Vec<(String, String)> {
    named(report, "candidates", "reason")
}

pub fn pair(tree: &str, word: &str) -> (String, String) {
    (tree.to_owned(), word.to_owned())
}

/// Everything that the database says: its files may change without that.
fn records(env: &TestEnv) -> Vec<String> {
    let database = rusqlite::Connection::open(env.private().join("weald.db")).unwrap();
    let named = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
    let mut tables = database.prepare(named).unwrap();
    let tables = tables.query_map([], |row| row.get(0)).unwrap();
    let tables: Vec<String> = tables.map(Result::unwrap).collect();
    let mut rows = Vec::new();
    for table in tables {
        let all = format!("SELECT * FROM \"{table}\"");
        let mut all = database.prepare(&all).unwrap();
        let width = all.column_count();
        let mut found = all.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let cells: Vec<_> = (0..width)
                .map(|place| row.get_ref(place).unwrap())
                .collect();
            rows.push(format!("{table}: {cells:?}"));
        }
    }
    rows
}

/// Everything there is, but for files by which a database's readers agree with each other.
fn everything(env: &TestEnv) -> BTreeMap<PathBuf, (u32, String)> {
    let mut all = manifest(env.root());
    all.retain(|path, _| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !["weald.db-shm", "weald.db-wal"].contains(&name.as_ref())
    });
    all
}

#[test]
fn l1_without_apply_nothing_changes() {
    let env = repository();
    for kind in KINDS {
        let name = |what: &str| format!("{what}-{kind}");
        abandoned(&env, &name("free"), kind);
        let dirty = abandoned(&env, &name("dirty"), kind);
        fs::write(dirty.join("draft"), "mine").unwrap();
        // A commit that nobody imported yet, and one more on the target that the vault has not seen.
        let ahead = grow(&env, &name("ahead"), kind);
        commit(&env, &ahead, "new", "new");
    }
    fs::write(env.repo().join("later"), "later").unwrap();
    env.git(&["add", "later"]);
    env.git(&["commit", "-q", "-m", "later"]);
    // Settings of the new tip are read once, by any command.
    env.ok(&["list"]);
    // In this order: a database that is closed last is folded into one file.
    let recorded = records(&env);
    let before = everything(&env);
    assert!(recorded.len() > 10, "{recorded:#?}");
    for args in [
        &["clean", "--min-age", "0"][..],
        &["clean"],
        &["clean", "--min-age", "0", "--orphans"],
    ] {
        let report = env.ok(args);
        assert_eq!(report["applied"], false);
        assert_eq!(report["removed"], json!([]));
        let skipped = blockers(&report);
        assert!(skipped.len() >= 4, "{report:#}");
        for kind in KINDS {
            assert!(skipped[&format!("dirty-{kind}")].contains(&"dirty".to_owned()));
            let ahead = &skipped[&format!("ahead-{kind}")];
            assert!(ahead.contains(&"branch_not_merged".to_owned()), "{ahead:?}");
        }
        let after = everything(&env);
        let changed: Vec<_> = before
            .keys()
            .chain(after.keys())
            .filter(|path| before.get(*path) != after.get(*path))
            .collect();
        assert!(changed.is_empty(), "{args:?}: {changed:?}");
        assert_eq!(records(&env), recorded, "{args:?}");
    }
    let report = env.ok(&["clean", "--min-age", "0"]);
    let free = ["free-sealed", "free-linked"].map(|name| pair(name, "task_cancelled"));
    assert_eq!(candidates(&report), free);
}

#[test]
fn l2_guards_hold_with_apply() {
    for kind in KINDS {
        let env = repository();
        let free = abandoned(&env, "free", kind);
        fs::write(free.join("notes.log"), "ignored").unwrap();
        let locked = abandoned(&env, "locked", kind);
        env.ok(&["lock", "locked", "--reason", "mine"]);
        let dirty = abandoned(&env, "dirty", kind);
        fs::write(dirty.join("draft"), "mine").unwrap();
        let live = abandoned(&env, "live", kind);
        env.ok(&[
            "session",
            "register",
            "bob",
            "--pid",
            &std::process::id().to_string(),
        ]);
        env.ok(&["session", "heartbeat", "bob", "--tree", "live"]);
        let kept = abandoned(&env, "kept", kind);
        env.ok(&["keep", "kept"]);
        let before: Vec<_> = [&locked, &dirty, &live, &kept]
            .map(|path| manifest(path))
            .into();
        let report = env.ok(&["clean", "--apply", "--min-age", "0", "--orphans"]);
        assert_eq!(report["applied"], true);
        assert_eq!(candidates(&report), [pair("free", "task_cancelled")]);
        assert_eq!(
            named(&report, "removed", "outcome"),
            [pair("free", "trashed")]
        );
        let words = |all: &[&str]| {
            all.iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let expected = [
            ("dirty", words(&["dirty"])),
            ("kept", words(&["kept"])),
            ("live", words(&["referenced"])),
            ("locked", words(&["locked"])),
        ];
        let expected = expected.map(|(name, words)| (name.to_owned(), words));
        assert_eq!(blockers(&report), BTreeMap::from(expected), "{kind}");
        let after: Vec<_> = [&locked, &dirty, &live, &kept]
            .map(|path| manifest(path))
            .into();
        assert_eq!(before, after);
        assert!(!free.exists());
        // Everything of it waits in the trash, and one event began it all.
        let restore = report["removed"][0]["restore"].as_str().unwrap();
        let trashed = events(&env, "free");
        let trashed = trashed.iter().find(|(kind, _)| kind == "tree.trashed");
        assert!(trashed.unwrap().1["data"]["operation"].is_number());
        let args: Vec<_> = restore.split(' ').skip(1).collect();
        env.ok(&args);
        assert_eq!(
            fs::read_to_string(free.join("notes.log")).unwrap(),
            "ignored"
        );
    }
}

#[test]
fn d1_a_kept_tree_is_never_taken() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        commit(&env, &path, "new", "new");
        env.ok(&["land", "a", "--keep"]);
        env.ok(&["keep", "a"]);
        let report = env.ok(&["clean", "--apply", "--min-age", "0"]);
        assert_eq!(blockers(&report)["a"], ["kept"]);
        assert!(path.join("new").is_file());
        let told = env.weald(&["clean", "--apply", "--min-age", "0"]);
        assert!(told.stdout.contains("kept"), "{told:#?}");
    }
}

#[test]
fn l4_work_that_was_merged_in_any_way_may_go() {
    for kind in KINDS {
        let env = repository();
        let grown = |name: &str, files: &[&str]| {
            let path = grow(&env, name, kind);
            for file in files {
                commit(&env, &path, file, &format!("{file}\n"));
            }
            env.ok(&["status", name]);
        };
        grown("ancestor", &["a1", "a2"]);
        grown("single", &["s1"]);
        grown("multi", &["m1", "m2"]);
        grown("recorded", &["r1", "r2"]);
        grown("open", &["o1"]);
        env.git(&["merge", "-q", "--no-edit", "wt/ancestor"]);
        for name in ["single", "multi"] {
            env.git(&["merge", "-q", "--squash", &format!("wt/{name}")]);
            env.git(&["commit", "-q", "-m", name]);
        }
        env.ok(&["land", "recorded", "--keep"]);
        // The same lines change: only the record knows.
        fs::write(env.repo().join("r1"), "changed\n").unwrap();
        env.git(&["commit", "-q", "-a", "-m", "changed"]);
        let before = everything(&env);
        let report = env.ok(&["clean", "--min-age", "0"]);
        let merged = ["ancestor", "single", "multi", "recorded"];
        assert_eq!(
            candidates(&report),
            merged.map(|name| pair(name, "landed")),
            "{kind}"
        );
        assert_eq!(blockers(&report)["open"], ["branch_not_merged", "not_done"]);
        // Merges that are tried leave nothing in a repository.
        let after = everything(&env);
        assert!(before.keys().eq(after.keys()));
        let report = env.ok(&["clean", "--min-age", "0", "--apply"]);
        assert_eq!(report["removed"].as_array().unwrap().len(), 4, "{report:#}");
        assert_eq!(report["removed"][2]["branch"], "deleted");
    }
}

#[test]
fn l5_a_day_since_the_last_use_and_zero_asks_for_nothing() {
    for kind in KINDS {
        let env = repository();
        let long_ago = "2020-01-01T00:00:00Z";
        for name in ["old", "touched", "looked", "future"] {
            abandoned(&env, name, kind);
            grow_old(&env, name, long_ago);
        }
        abandoned(&env, "new", kind);
        // Somebody worked by hand.
        let touched = env.root().join("app.weald/touched");
        fs::write(touched.join("notes.log"), "x").unwrap();
        // A look, a lock or a mark is no use.
        env.ok(&["status", "looked"]);
        env.ok(&["lock", "looked"]);
        env.ok(&["unlock", "looked"]);
        grow_old(&env, "future", "2999-01-01T00:00:00Z");
        let report = env.ok(&["clean"]);
        let free = ["old", "looked"].map(|name| pair(name, "task_cancelled"));
        assert_eq!(candidates(&report), free, "{kind}: {report:#}");
        let skipped = blockers(&report);
        assert_eq!(skipped["new"], ["too_recent"]);
        assert_eq!(skipped["touched"], ["too_recent"]);
        assert_eq!(skipped["future"], ["age_unknown"]);
        let report = env.ok(&["clean", "--min-age", "0"]);
        assert_eq!(candidates(&report).len(), 5);
        let report = env.ok(&["clean", "--set", "clean.min_age=0"]);
        assert_eq!(candidates(&report).len(), 5);
        let report = env.ok(&["clean", "--set", "clean.min_age=3650d", "--min-age", "1d"]);
        assert_eq!(candidates(&report).len(), 2);
        let report = env.ok(&["clean", "--set", "clean.min_age=3650d"]);
        assert_eq!(candidates(&report), []);
        assert_eq!(env.weald(&["clean", "--min-age", "-1h"]).code, 2);
        // Use makes it young again.
        assert_eq!(env.weald(&["run", "old", "--", "true"]).code, 0);
        let report = env.ok(&["clean"]);
        assert_eq!(blockers(&report)["old"], ["too_recent"]);
    }
}

#[test]
fn l6_only_what_landed_or_whose_task_is_over_goes() {
    for kind in KINDS {
        let env = repository();
        let landed = grow(&env, "landed", kind);
        commit(&env, &landed, "new", "new");
        env.ok(&["land", "landed", "--keep"]);
        abandoned(&env, "cancelled", kind);
        for (name, ends) in [("completed", "done"), ("failed", "fail")] {
            let id = env.ok(&["task", "add", name])["task"]["id"].to_string();
            env.ok(&["new", name, "--kind", kind, "--task", &id]);
            let claim = env.ok(&["task", "claim", &id, "--session", "bob"]);
            let token = claim["lease"]["token"].to_string();
            env.ok(&["task", ends, &id, "--token", &token]);
        }
        let id = env.ok(&["task", "add", "pending"])["task"]["id"].to_string();
        env.ok(&["new", "pending", "--kind", kind, "--task", &id]);
        grow(&env, "alone", kind);
        let report = env.ok(&["clean", "--min-age", "0"]);
        let expected = [
            pair("landed", "landed"),
            pair("cancelled", "task_cancelled"),
            pair("completed", "task_completed"),
        ];
        assert_eq!(candidates(&report), expected, "{kind}");
        let skipped = blockers(&report);
        for name in ["failed", "pending", "alone"] {
            assert_eq!(skipped[name], ["not_done"], "{name}");
        }
        let with = |requires: &str| {
            let set = format!("clean.requires={requires}");
            let report = env.ok(&["clean", "--min-age", "0", "--set", &set]);
            let found = candidates(&report).into_iter();
            found.map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(with("merged"), ["landed"]);
        assert_eq!(with("complete"), ["landed", "cancelled", "completed"]);
        let untouched = ["cancelled", "completed", "failed", "pending", "alone"];
        assert_eq!(with("unchanged"), [&["landed"], &untouched[..]].concat());
        // One task's tree alone.
        let report = env.ok(&["clean", "--min-age", "0", "--task", "1"]);
        assert_eq!(candidates(&report), [pair("cancelled", "task_cancelled")]);
        assert_eq!(report["skipped"], json!([]));
        env.refused(&["clean", "--task", "99"], 4, "task_not_found");
    }
}

#[test]
fn l8_a_switch_makes_it_a_no_op_even_with_apply() {
    let env = repository();
    let path = abandoned(&env, "a", "sealed");
    let before = env.weald(&["events"]).stdout;
    for (variable, value, config) in [
        ("WEALD_CLEAN_DISABLE", "1", ""),
        ("JKZ_WORKTREE_CLEANUP_DISABLE", "true", "profile=jkz"),
        (
            "MY_SWITCH",
            "no-clean",
            "clean.kill_switches=MY_SWITCH=no-clean",
        ),
    ] {
        let mut args = vec!["clean", "--apply", "--min-age", "0", "--json"];
        if !config.is_empty() {
            args.extend(["--set", config]);
        }
        let mut command = env.weald_command(&args);
        command.env(variable, value);
        let answer = weald_testkit::Answer::of(command.output().unwrap());
        assert_eq!(answer.code, 0, "{answer:#?}");
        assert_eq!(answer.json()["disabled"], variable);
        assert_eq!(answer.json()["removed"], json!([]));
        assert!(answer.stderr.contains(variable), "{answer:#?}");
        assert!(path.is_dir());
    }
    assert_eq!(env.weald(&["events"]).stdout, before);
    // The switch of the sweep is another one, and a switch that says no is off.
    for (variable, value) in [("WEALD_SWEEP_DISABLE", "1"), ("WEALD_CLEAN_DISABLE", "0")] {
        let mut command = env.weald_command(&["clean", "--min-age", "0", "--json"]);
        command.env(variable, value);
        let answer = weald_testkit::Answer::of(command.output().unwrap());
        assert_eq!(candidates(&answer.json()).len(), 1, "{answer:#?}");
    }
}

#[test]
fn l13_what_nobody_touched_is_reported_and_stays() {
    let env = repository();
    grow(&env, "new", "sealed");
    grow(&env, "old", "sealed");
    let hours_ago = |hours: i64| {
        let mut command = env.command("date");
        command.args(["-u", "+%Y-%m-%dT%H:%M:%SZ", "-d"]);
        let output = command.arg(format!("{hours} hours ago")).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    grow_old(&env, "old", &hours_ago(5));
    let stale = |args: &[&str]| {
        let report = env.ok(&[&["clean", "--apply"], args].concat());
        let found = named(&report, "stale", "last_used_at").into_iter();
        found.map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert!(stale(&[]).is_empty());
    assert_eq!(stale(&["--set", "clean.stale_after=4h"]), ["old"]);
    grow_old(&env, "old", &hours_ago(24 * 8));
    assert_eq!(stale(&[]), ["old"]);
    assert!(env.root().join("app.weald/old").is_dir());
    let told = env.weald(&["clean"]).stdout;
    assert!(told.contains("old (8d)"), "{told}");
}

#[test]
fn l6_fetched_work_counts_and_a_remote_that_is_gone_loosens_nothing() {
    let env = repository();
    let remote = env.root().join("remote.git");
    git_in(
        &env,
        env.root(),
        &["clone", "-q", "--bare", "app", "remote.git"],
    );
    env.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
    env.git(&["fetch", "-q", "origin"]);
    let path = grow(&env, "a", "sealed");
    commit(&env, &path, "new", "new");
    env.ok(&["status", "a"]);
    env.git(&["push", "-q", "origin", "wt/a:refs/heads/main"]);
    env.git(&["update-ref", "refs/remotes/origin/main", "main"]);
    let clean = ["clean", "--min-age", "0"];
    assert_eq!(
        blockers(&env.ok(&clean))["a"],
        ["branch_not_merged", "not_done"]
    );
    fs::rename(&remote, env.root().join("away.git")).unwrap();
    let report = env.ok(&[&clean[..], &["--fetch"]].concat());
    assert_eq!(blockers(&report)["a"], ["branch_not_merged", "not_done"]);
    assert_eq!(report["warnings"].as_array().unwrap().len(), 1);
    fs::rename(env.root().join("away.git"), &remote).unwrap();
    let report = env.ok(&[&clean[..], &["--fetch", "--apply"]].concat());
    assert_eq!(
        named(&report, "removed", "outcome"),
        [pair("a", "trashed")],
        "{report:#}"
    );
}
