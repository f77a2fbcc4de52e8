//! A lost database: told, made again from its log, and nothing of any tree touched.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use serde_json::{Value, json};
use weald_app::SystemClock;
use weald_core::store::Store;
use weald_store::SqliteStore;
use weald_testkit::{TestEnv, assert_log_explains_state};

use crate::trees_remove::{commit, grow, repository};
use crate::trees_trash::manifest;

/// What a registry tells people.
pub fn told(env: &TestEnv) -> Value {
    let listed = env.ok(&["list"]);
    let of = |tree: &Value| {
        let known = ["id", "name", "path", "branch", "base", "status", "task"];
        known.map(|key| tree[key].clone())
    };
    let trees: Vec<_> = listed["trees"].as_array().unwrap().iter().map(of).collect();
    json!({
        "trees": trees,
        "trash": env.ok(&["trash", "list"])["trash"],
        "tasks": env.ok(&["task", "list"])["tasks"],
        "queue": env.ok(&["queue", "status", "--all"])["landings"],
    })
}

/// One tree each: dirty, with commits, bound to a task, set aside, landed, in the trash.
pub fn world(env: &TestEnv, kind: &str) {
    let dirty = grow(env, "dirty", kind);
    fs::write(dirty.join("config.py"), "changed\n").unwrap();
    fs::write(dirty.join("draft"), "mine").unwrap();
    let ahead = grow(env, "ahead", kind);
    commit(env, &ahead, "new.txt", "work\n");
    env.ok(&["sync", "ahead"]);
    env.ok(&["task", "add", "something"]);
    env.ok(&["task", "bind", "1", "ahead"]);
    env.ok(&["task", "add", "else"]);
    env.ok(&["keep", "dirty"]);
    let landed = grow(env, "landed", kind);
    commit(env, &landed, "landed.txt", "landed\n");
    env.ok(&["land", "landed"]);
    let gone = grow(env, "gone", kind);
    fs::write(gone.join("draft"), "in the trash").unwrap();
    env.ok(&["rm", "gone", "--discard"]);
}

/// Every byte of every tree and of the trash, but for what a look at them may refresh.
fn bytes(env: &TestEnv) -> Vec<(PathBuf, (u32, String))> {
    let mut found = manifest(&env.root().join("app.weald"));
    found.retain(|path, _| !path.ends_with(".git/index"));
    found.into_iter().collect()
}

fn database(env: &TestEnv, suffix: &str) -> PathBuf {
    env.private().join(format!("weald.db{suffix}"))
}

pub fn lose_database(env: &TestEnv) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(database(env, suffix));
    }
}

#[track_caller]
pub fn assert_whole(env: &TestEnv) {
    let store = SqliteStore::open(&env.private(), Arc::new(SystemClock)).unwrap();
    assert_log_explains_state(store.read().unwrap().as_ref());
    drop(store);
    let doctor = env.ok(&["doctor"]);
    let findings = doctor["findings"].as_array().unwrap();
    let open: Vec<_> = findings
        .iter()
        .filter(|f| f["severity"] != "info")
        .collect();
    assert!(open.is_empty(), "{open:?}");
    let again = env.ok(&["doctor", "--rebuild"]);
    assert_eq!(again["rebuild"]["agrees"], true, "{again}");
    crate::events::assert_journal_is_the_log(env);
}

#[test]
fn p9_a_deleted_database_is_told_and_made_again() {
    for kind in ["sealed", "linked"] {
        let env = repository();
        world(&env, kind);
        let (before, content) = (told(&env), bytes(&env));
        let same = env.ok(&["doctor", "--rebuild", "--fix"]);
        assert_eq!(same["rebuild"]["agrees"], true, "{same}");
        assert_eq!(same["applied"], false);
        lose_database(&env);
        for args in [&["list"][..], &["task", "add", "x"]] {
            let refused = env.refused(args, 1, "registry_lost");
            let hint = refused["error"]["hint"].as_str().unwrap();
            assert!(hint.contains("weald doctor --rebuild --fix"), "{hint}");
        }
        let looked = env.weald(&["--json", "doctor"]).json()["findings"].to_string();
        assert!(looked.contains("database_missing"), "{looked}");
        assert!(looked.contains("weald doctor --rebuild --fix"), "{looked}");
        assert!(!database(&env, "").exists(), "nothing was made silently");
        let answer = env.weald(&["--json", "doctor", "--rebuild"]);
        assert_eq!(answer.code, 1, "{answer:?}");
        assert!(!database(&env, "").exists(), "a look changes nothing");
        assert!(!env.private().join("rebuilt").exists());
        let done = env.ok(&["doctor", "--rebuild", "--fix"]);
        assert_eq!(done["applied"], true);
        assert_eq!(done["rebuild"]["lost_events"], 0);
        assert_eq!(done["rebuild"]["recovered"], json!([]), "{done}");
        assert_eq!(told(&env), before, "{kind}");
        assert_eq!(bytes(&env), content, "{kind}");
        assert_whole(&env);
        env.ok(&["trash", "restore", "gone"]);
        assert_eq!(env.ok(&["task", "add", "next"])["task"]["id"], 3);
    }
}

#[test]
fn p9_every_way_to_lose_a_database_ends_in_the_same_registry() {
    let env = repository();
    env.ok(&["task", "add", "first"]);
    let backup = env.root().join("backup");
    fs::create_dir(&backup).unwrap();
    for suffix in ["", "-wal"] {
        let from = database(&env, suffix);
        fs::copy(&from, backup.join(from.file_name().unwrap())).unwrap();
    }
    world(&env, "sealed");
    let before = told(&env);
    let (kept, log) = (database(&env, ""), database(&env, "-wal"));
    let ways: [(&str, &dyn Fn()); 5] = [
        ("without its log", &|| drop(fs::remove_file(&log))),
        ("emptied", &|| fs::write(&kept, "").unwrap()),
        ("garbage", &|| fs::write(&kept, "x".repeat(9000)).unwrap()),
        ("cut", &|| {
            let bytes = fs::read(&kept).unwrap();
            fs::write(&kept, &bytes[..bytes.len().min(5000)]).unwrap();
        }),
        ("from a backup", &|| {
            lose_database(&env);
            for suffix in ["", "-wal"] {
                let to = database(&env, suffix);
                fs::copy(backup.join(to.file_name().unwrap()), &to).unwrap();
            }
        }),
    ];
    for (way, lose) in ways {
        lose();
        let refused = env.weald(&["--json", "new", "other"]);
        assert_eq!(refused.code, 1, "{way}: {refused:?}");
        let done = env.ok(&["doctor", "--rebuild", "--fix"]);
        assert_eq!(done["applied"], true, "{way}: {done}");
        assert!(PathBuf::from(done["kept"].as_str().unwrap()).is_file());
        assert_eq!(told(&env), before, "{way}");
        assert_whole(&env);
    }
}

#[test]
fn p9_what_is_said_to_be_kept_of_the_old_database_is_there() {
    for (left, words) in [
        (
            "-wal",
            "only its log was left of the old database, and is kept: ",
        ),
        ("", "the old database is kept: "),
    ] {
        let env = repository();
        env.ok(&["task", "add", "something"]);
        lose_database(&env);
        fs::write(database(&env, left), "damaged").unwrap();
        let told = env.weald(&["doctor", "--rebuild", "--fix"]).stdout;
        let line = told.lines().find_map(|line| line.strip_prefix(words));
        let kept = PathBuf::from(line.unwrap_or_else(|| panic!("{told}")));
        assert_eq!(fs::read_to_string(&kept).unwrap(), "damaged", "{told}");
        // The next one does not take its place.
        lose_database(&env);
        fs::write(database(&env, left), "again").unwrap();
        env.ok(&["doctor", "--rebuild", "--fix"]);
        assert_eq!(fs::read_to_string(&kept).unwrap(), "damaged", "{told}");
        assert_eq!(env.ok(&["task", "list"])["tasks"][0]["id"], 1);
    }
}

#[test]
fn p9_a_journal_with_holes_and_strangers_loses_only_what_stood_there() {
    let env = repository();
    world(&env, "sealed");
    let before = told(&env);
    let journal = env.private().join("events.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let mut torn: Vec<String> = Vec::new();
    for line in &lines {
        // The creation of the second task is cut off in the middle.
        match line.contains("task.created") && line.contains("\"else\"") {
            true => torn.push(line[..line.len() / 2].to_owned()),
            false => torn.push((*line).to_owned()),
        }
    }
    torn.insert(3, "{\"somebody\": \"else\"}".to_owned());
    torn.insert(5, "not even JSON".to_owned());
    fs::write(&journal, torn.join("\n") + "\n").unwrap();
    lose_database(&env);
    let done = env.ok(&["doctor", "--rebuild", "--fix"]);
    assert_eq!(done["rebuild"]["lost_events"], 1, "{done}");
    assert_eq!(done["rebuild"]["torn_lines"], 3, "{done}");
    let after = told(&env);
    assert_eq!(after["trees"], before["trees"]);
    assert_eq!(after["trash"], before["trash"]);
    let store = SqliteStore::open(&env.private(), Arc::new(SystemClock)).unwrap();
    assert_log_explains_state(store.read().unwrap().as_ref());
    drop(store);
    // The number of the lost task may be in somebody's hands.
    assert_eq!(env.ok(&["task", "add", "next"])["task"]["id"], 3);
    // And a token of the first one, if the lost event was a claim.
    let claimed = env.ok(&["task", "claim", "1"]);
    assert!(claimed["task"]["token"].as_u64().unwrap() > 1, "{claimed}");
}

#[test]
fn p9_a_fork_gives_back_what_only_the_journal_set_aside_has() {
    let env = repository();
    env.ok(&["task", "add", "shared"]);
    let backup = env.root().join("old.db");
    let old_log = env.root().join("old.wal");
    fs::copy(database(&env, ""), &backup).unwrap();
    fs::copy(database(&env, "-wal"), &old_log).unwrap();
    let lost = grow(&env, "lost", "sealed");
    commit(&env, &lost, "new.txt", "work\n");
    env.ok(&["task", "add", "only there"]);
    // Somebody brings the backup back, moves the journal away, and works on.
    lose_database(&env);
    fs::copy(&backup, database(&env, "")).unwrap();
    fs::copy(&old_log, database(&env, "-wal")).unwrap();
    env.refused(&["task", "list"], 1, "registry_lost");
    let journal = env.private().join("events.jsonl");
    fs::rename(&journal, env.private().join("events.jsonl.1")).unwrap();
    env.ok(&["session", "register", "me"]);
    let done = env.ok(&["doctor", "--rebuild", "--fix"]);
    assert_eq!(done["applied"], true, "{done}");
    let listed = env.ok(&["list"]);
    assert_eq!(listed["trees"][0]["name"], "lost", "{listed}");
    assert_eq!(env.ok(&["task", "list"])["total"], 2);
    assert_whole(&env);
    env.ok(&["land", "lost"]);
}

#[test]
fn p9_a_kill_at_any_step_leaves_a_registry_that_can_be_made_again() {
    let env = repository();
    world(&env, "sealed");
    let before = told(&env);
    for step in [
        "rebuild.replayed",
        "rebuild.recovered",
        "rebuild.built",
        "rebuild.sealed",
        "rebuild.set_aside",
        "rebuild.in_place",
    ] {
        fs::write(database(&env, ""), "garbage, of course").unwrap();
        let mut killed = env.weald_command(&["doctor", "--rebuild", "--fix"]);
        let status = killed
            .env("WEALD_STEP", format!("kill:{step}"))
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.code().is_none(), "{step}: it was not killed");
        if step != "rebuild.in_place" {
            let refused = env.weald(&["list"]);
            assert_eq!(refused.code, 1, "{step}");
            env.ok(&["doctor", "--rebuild", "--fix"]);
        }
        assert_eq!(told(&env), before, "{step}");
        assert!(!env.private().join("rebuilt").join("weald.db").exists());
    }
    env.ok(&["task", "add", "the journal goes on"]);
    assert_whole(&env);
}

#[test]
fn p9_nothing_is_put_in_place_under_a_process_at_work() {
    let env = repository();
    grow(&env, "a", "sealed");
    let mut run = env
        .weald_command(&["run", "a", "--", "sh", "-c", "echo up; read line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut up = [0; 3];
    std::io::Read::read_exact(run.stdout.as_mut().unwrap(), &mut up).unwrap();
    fs::write(database(&env, ""), "garbage, of course").unwrap();
    let _ = fs::remove_file(database(&env, "-wal"));
    let refused = env.refused(&["doctor", "--rebuild", "--fix"], 5, "busy");
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("tree a")
    );
    assert_eq!(fs::read(database(&env, "")).unwrap(), b"garbage, of course");
    drop(run.stdin.take());
    run.wait().unwrap();
    env.ok(&["doctor", "--rebuild", "--fix"]);
    assert_eq!(env.ok(&["list"])["trees"][0]["name"], "a");
}

#[test]
fn p9_claims_and_the_queue_go_on_and_stale_holders_stay_refused() {
    let env = repository();
    env.ok(&["task", "add", "held"]);
    let old = env.ok(&["task", "claim", "1", "--session", "first"])["task"]["token"].to_string();
    env.ok(&[
        "task",
        "release",
        "1",
        "--token",
        &old,
        "--session",
        "first",
    ]);
    let token = env.ok(&["task", "claim", "1", "--session", "second"])["task"]["token"].to_string();
    let tree = grow(&env, "a", "sealed");
    commit(&env, &tree, "new.txt", "work\n");
    env.ok(&["land", "a"]);
    // The queue's last lease is in git, but in no event any more.
    let journal = env.private().join("events.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let kept: Vec<_> = text
        .lines()
        .filter(|line| !line.contains("queue."))
        .collect();
    fs::write(&journal, kept.join("\n") + "\n").unwrap();
    lose_database(&env);
    env.ok(&["doctor", "--rebuild", "--fix"]);
    let stale = ["task", "done", "1", "--token", &old, "--session", "first"];
    assert_ne!(env.weald(&stale).code, 0);
    env.ok(&[
        "task",
        "done",
        "1",
        "--token",
        &token,
        "--session",
        "second",
    ]);
    let next = grow(&env, "b", "sealed");
    commit(&env, &next, "more.txt", "work\n");
    env.ok(&["land", "b"]);
}
