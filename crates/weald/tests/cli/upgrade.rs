//! Repositories that earlier versions made, kept in the test kit (`scripts/make-fixture`): this version works on them, and
//! nothing of them is lost.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv, full_scale, skipped};

use crate::trees_create::git_in;
use crate::trees_trash::manifest;

/// Versions, oldest first, by the commit they were built from.
const VERSIONS: [&str; 3] = ["e603bbb", "6882eb1", "6e7be8a"];

/// Live trees of a fixture.
const LIVE: [&str; 10] = [
    "approved",
    "conflicting-work",
    "failed-work",
    "linked-ahead",
    "linked-clean",
    "linked-dirty",
    "parked-work",
    "sealed-ahead",
    "sealed-clean",
    "sealed-dirty",
];

/// Unpacks the repository of a version: at its new place, and with the directories that are there now on record.
fn repository_of(version: &str) -> TestEnv {
    let env = TestEnv::without_repository(env!("CARGO_BIN_EXE_weald"));
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../weald-testkit/fixtures");
    let mut tar = env.command("tar");
    tar.arg("-C").arg(env.root()).arg("-xzf");
    let done = tar.arg(fixtures.join(format!("{version}.tar.gz"))).status();
    assert!(done.unwrap().success());
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for file in files(env.root()) {
        let bytes = fs::read(&file).unwrap();
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        let root = env.root().to_str().unwrap();
        let placed = text.replace("@ROOT@", root).replace("@HOST@", host.trim());
        let placed = identified(&placed, env.root());
        if placed != text {
            fs::write(&file, placed).unwrap();
        }
    }
    let dump = env.private().join("weald.sql");
    let database = rusqlite::Connection::open(env.private().join("weald.db")).unwrap();
    database.pragma_update(None, "journal_mode", "WAL").unwrap();
    database
        .execute_batch(&fs::read_to_string(&dump).unwrap())
        .unwrap();
    fs::remove_file(dump).unwrap();
    env
}

/// Puts in what directories are, where a text has marks for them.
fn identified(text: &str, root: &Path) -> String {
    let mut placed = text.to_owned();
    while let Some(start) = placed.find("\"@IDENTITY:") {
        let end = start + placed[start..].find("@\":0").unwrap();
        let name = &placed[start + "\"@IDENTITY:".len()..end];
        let found = root.join(name).metadata().unwrap();
        let born = found.created().unwrap().duration_since(UNIX_EPOCH).unwrap();
        let identity = format!(
            "\"device\":{},\"inode\":{},\"born\":{}",
            found.dev(),
            found.ino(),
            born.as_nanos()
        );
        placed.replace_range(start..end + "@\":0".len(), &identity);
    }
    placed
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => found.extend(files(&entry.path())),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

/// Whether everything that was said then is said now; more may be.
#[track_caller]
fn assert_still_said(then: &Value, now: &Value, at: &str) {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            // How large something is depends on how long its path is.
            for (key, value) in then.iter().filter(|(key, _)| *key != "bytes") {
                let now = now.get(key).unwrap_or(&Value::Null);
                assert_still_said(value, now, &format!("{at}.{key}"));
            }
        }
        (Value::Array(then), Value::Array(now)) => {
            assert_eq!(then.len(), now.len(), "{at}");
            for (number, (then, now)) in then.iter().zip(now).enumerate() {
                assert_still_said(then, now, &format!("{at}[{number}]"));
            }
        }
        _ => assert_eq!(then, now, "{at}"),
    }
}

fn said(env: &TestEnv, file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(env.root().join(file)).unwrap()).unwrap()
}

/// Every byte of the trees and of the trash, but for what a look may refresh.
fn bytes(env: &TestEnv) -> Vec<(PathBuf, (u32, String))> {
    let mut found = manifest(&env.root().join("app.weald"));
    found.retain(|path, _| !path.ends_with(".git/index") && !path.starts_with("approved/.git"));
    found.retain(|path, _| !path.to_str().unwrap().contains(".git/"));
    found.into_iter().collect()
}

#[test]
fn v1_what_an_earlier_version_recorded_is_read_as_it_was() {
    for version in VERSIONS {
        let env = repository_of(version);
        let before = bytes(&env);
        for (file, args) in [
            ("list.json", &["list"][..]),
            ("tasks.json", &["task", "list"]),
            ("trash.json", &["trash", "list"]),
            ("queue.json", &["queue", "status", "--all"]),
            ("inbox.json", &["msg", "inbox", "--session", "bob"]),
            ("agents.json", &["agent", "list", "--all"]),
        ] {
            let mut then = said(&env, file);
            then.as_object_mut().unwrap().remove("schema_version");
            assert_still_said(&then, &env.ok(args), file);
        }
        let names = env.ok(&["status", "--all"])["trees"].clone();
        let names = names.as_array().unwrap().iter();
        let mut names: Vec<_> = names.map(|tree| tree["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, LIVE);
        for tree in LIVE {
            let shown = env.ok(&["show", tree])["tree"].clone();
            assert_eq!(shown["exists"], true, "{shown:#}");
            assert_eq!(shown.get("problem"), None, "{shown:#}");
            assert_eq!(
                shown["dirty"],
                json!(tree.ends_with("dirty") || tree == "failed-work"),
                "{tree}"
            );
            env.ok(&["diff", tree]);
            env.ok(&["path", tree]);
        }
        for args in [
            &["session", "list"][..],
            &["task", "show", "1"],
            &["ports"],
            &["conflicts"],
            &["vault", "status"],
            &["vault", "list"],
            &["snapshot", "list", "sealed-dirty"],
            &["usage"],
            &["config", "show"],
            &["clean"],
        ] {
            env.ok(args);
        }
        let log = env.weald(&["events", "--json", "--limit", "1000"]);
        assert!(log.stdout.contains("tree.create.before"), "{log:#?}");
        let board = env.weald(&[]);
        assert_eq!(board.code, 0, "{board:#?}");
        assert_eq!(bytes(&env), before, "{version}: reading changed a worktree");
        let rebuilt = env.ok(&["doctor", "--rebuild"]);
        assert_eq!(rebuilt["rebuild"]["agrees"], true, "{rebuilt:#}");
        let found = env.weald(&["doctor", "--fix", "--json"]);
        assert_eq!(found.code, 0, "{found:#?}");
        assert_eq!(bytes(&env), before, "{version}: doctor changed a worktree");
    }
}

#[test]
fn v1_work_of_an_earlier_version_is_continued_landed_restored_and_removed() {
    for version in VERSIONS {
        let env = repository_of(version);
        let trees = env.root().join("app.weald");
        for tree in LIVE {
            let run = env.weald(&["run", tree, "--", "git", "status"]);
            assert_eq!(run.code, 0, "{tree}: {run:#?}");
        }
        // What was queued lands once the queue goes on, and so does what was approved.
        env.ok(&["queue", "resume"]);
        env.ok(&["land"]);
        env.ok(&["land", "sealed-ahead"]);
        env.ok(&["land", "approved", "--set", "policy.gate=human"]);
        for (file, text) in [
            ("linked.txt", "linked"),
            ("sealed.txt", "sealed"),
            ("approved.txt", "yes"),
        ] {
            assert_eq!(env.git(&["show", &format!("main:{file}")]).trim(), text);
        }
        for kind in ["sealed", "linked"] {
            let (dirty, gone) = (format!("{kind}-dirty"), format!("{kind}-gone"));
            env.ok(&["trash", "restore", &gone]);
            assert_eq!(
                fs::read_to_string(trees.join(&gone).join("waste")).unwrap(),
                "waste\n"
            );
            env.refused(&["rm", &dirty], 1, "tree_dirty");
            env.ok(&["rm", &dirty, "--discard"]);
            env.ok(&["trash", "restore", &dirty]);
            assert_eq!(
                fs::read_to_string(trees.join(&dirty).join("draft")).unwrap(),
                "draft\n"
            );
            env.ok(&["new", &format!("{kind}-new"), "--kind", kind]);
        }
        env.ok(&["snapshot", "restore", "sealed-dirty"]);
        env.ok(&["task", "release", "1", "--token", "1", "--session", "bob"]);
        assert_eq!(
            env.ok(&["task", "show", "3"])["task"]["status"],
            "completed"
        );
        let again = env.weald(&["resume", "5", "--", "sh", "-c", "echo whole > partial.txt"]);
        assert_eq!(again.code, 0, "{again:#?}");
        assert_eq!(env.git(&["show", "main:partial.txt"]).trim(), "whole");
        let fresh = env.weald(&["work", "fresh work", "--", "sh", "-c", "echo new > new.txt"]);
        assert_eq!(fresh.code, 0, "{fresh:#?}");
        let merging = trees.join("conflicting-work");
        assert_eq!(
            fs::read_to_string(merging.join("file")).unwrap().trim(),
            "theirs"
        );
        assert!(git_in(&env, &merging, &["log", "-1", "--format=%s"]).contains("conflicting"));
        env.ok(&[
            "trash",
            "purge",
            "--older-than",
            "0s",
            "--apply",
            "--discard",
        ]);
        let healthy = env.weald(&["doctor", "--fix"]);
        assert_eq!(healthy.code, 0, "{healthy:#?}");
    }
}

#[test]
fn v1_a_store_of_a_newer_version_is_refused_by_name() {
    let env = repository_of(VERSIONS[0]);
    let before = bytes(&env);
    let database = rusqlite::Connection::open(env.private().join("weald.db")).unwrap();
    let later = "INSERT INTO schema_versions VALUES (999, 'later')";
    database.execute(later, []).unwrap();
    drop(database);
    for args in [
        &["list"][..],
        &["new", "x"],
        &["rm", "sealed-dirty", "--discard"],
        &["land"],
        &["trash", "purge", "--apply"],
        &["task", "add", "x"],
        &["sweep"],
    ] {
        env.refused(args, 1, "newer_schema");
    }
    let found = env.weald(&["doctor", "--fix", "--json"]);
    assert!(found.stdout.contains("database_newer"), "{found:#?}");
    assert_eq!(bytes(&env), before);
}

/// The program of an earlier version, built from history once; `None` where the history is missing.
fn program_of(version: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let place = root.join("target/upgrade").join(version);
    let program = place.join("debug/weald");
    if program.exists() {
        return Some(program);
    }
    // A clone of its own: whoever runs the tests finds no worktree in their repository.
    let source = tempfile::tempdir().unwrap();
    let run = |command: &mut Command| command.status().is_ok_and(|status| status.success());
    let mut clone = Command::new("git");
    clone.args(["clone", "--quiet", "--shared", "--no-checkout"]);
    let mut switch = Command::new("git");
    switch.arg("-C").arg(source.path());
    switch.args(["checkout", "--quiet", "--detach", version]);
    if !run(clone.arg(&root).arg(source.path())) || !run(&mut switch) {
        return None;
    }
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "-p", "weald", "--target-dir"]);
    let built = run(build.arg(&place).current_dir(source.path()));
    assert!(built, "{version} does not build any more");
    Some(program)
}

/// One call of a tool over MCP.
fn call(server: &mut Child, answers: &mut impl BufRead, message: &Value) -> Value {
    writeln!(server.stdin.as_mut().unwrap(), "{message}").unwrap();
    let mut line = String::new();
    answers.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn v1_processes_of_an_earlier_version_finish_or_are_refused_by_name() {
    if !full_scale() {
        return skipped("earlier versions are built by ./scripts/test --all");
    }
    for version in VERSIONS {
        let Some(program) = program_of(version) else {
            skipped(&format!("{version} is not in this history"));
            continue;
        };
        let env = crate::trees_create::env_with_identity();
        let old = |args: &[&str]| Answer::of(env.command(&program).args(args).output().unwrap());
        let script = "until [ -e go ]; do sleep 0.02; done; echo done > done.txt";
        let started = old(&["work", "slow work", "--detach", "--", "sh", "-c", script]);
        assert_eq!(started.code, 0, "{started:#?}");
        let mut server = env.command(&program);
        server
            .arg("mcp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut server = server.spawn().unwrap();
        let mut answers = BufReader::new(server.stdout.take().unwrap());
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}});
        call(&mut server, &mut answers, &hello);
        // This version works beside both.
        env.ok(&["task", "add", "meanwhile"]);
        env.ok(&["new", "beside"]);
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "task_list", "arguments": {}}});
        let told = call(&mut server, &mut answers, &list).to_string();
        assert!(
            told.contains("meanwhile") || told.contains("newer_schema"),
            "{told}"
        );
        drop(server.stdin.take());
        server.wait().unwrap();
        fs::write(env.root().join("app.weald/slow-work/go"), "").unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let agent = loop {
            let agent = env.ok(&["agent", "list", "--all"])["agents"][0].clone();
            if agent["status"] == "exited" || Instant::now() > deadline {
                break agent;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let outcome = agent["end"]["outcome"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let is_refused = agent.to_string().contains("schema");
        assert!(outcome == "done" || is_refused, "{agent:#}");
        if outcome != "done" {
            // Its work was kept, and this version lands it.
            let resumed = env.weald(&["resume", "1"]);
            assert_eq!(resumed.code, 0, "{resumed:#?}");
        }
        assert_eq!(env.git(&["show", "main:done.txt"]).trim(), "done");
        let after = old(&["list", "--json"]);
        assert!(
            after.code == 0 || after.error_code() == "newer_schema",
            "{after:#?}"
        );
        assert_eq!(env.weald(&["doctor"]).code, 0);
    }
}
