//! The log and its journal.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::Arc;

use serde_json::{Value, json};
use weald_app::SystemClock;
use weald_core::Timestamp;
use weald_core::id::TreeId;
use weald_core::store::Clock;
use weald_core::store::{Durability, Store};
use weald_core::tree::{Base, DirectoryIdentity, Trash, Tree};
use weald_core::tree_rules::{self, TreeInput};
use weald_store::SqliteStore;
use weald_testkit::TestEnv;

use crate::env;

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Every event stands in the journal once, in order, word for word as `weald events` prints it.
pub fn assert_journal_is_the_log(env: &TestEnv) {
    // A kill in the middle of a line leaves it torn; its event stands again behind it.
    let text = fs::read_to_string(env.private().join("events.jsonl")).unwrap();
    let journal: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let mut log = Vec::new();
    loop {
        let since = log.len().to_string();
        let page = lines(
            &env.weald(&["events", "--json", "--limit", "200", "--since", &since])
                .stdout,
        );
        if page.is_empty() {
            break;
        }
        log.extend(page);
    }
    assert_eq!(journal, log);
    let places: Vec<_> = log
        .iter()
        .map(|event| event["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(places, (1..=log.len() as u64).collect::<Vec<_>>());
}

#[test]
fn p6_twenty_writers_make_one_line_an_event() {
    let env = env();
    let writers: Vec<_> = (0..20)
        .map(|writer| {
            let script = format!(
                "for i in 1 2 3 4; do \"$WEALD\" task add \"w{writer} $i\" || exit 1; done"
            );
            let mut command = env.command("sh");
            command
                .args(["-c", &script])
                .env("WEALD", env!("CARGO_BIN_EXE_weald"))
                .stdout(Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    assert_eq!(
        lines(&fs::read_to_string(env.private().join("events.jsonl")).unwrap()).len(),
        80
    );
    assert_journal_is_the_log(&env);
}

#[test]
fn p6_the_limit_is_twenty_and_at_most_two_hundred() {
    let env = env();
    let tasks: String = (0..250)
        .map(|n| format!("{{\"subject\":\"{n}\"}}\n"))
        .collect();
    env.weald_with_input(&["task", "import"], tasks.as_bytes());
    let printed = |args: &[&str]| lines(&env.weald(&[&["events", "--json"], args].concat()).stdout);
    assert_eq!(printed(&[]).len(), 20);
    assert_eq!(printed(&[]).last().unwrap()["sequence"], 250);
    assert_eq!(printed(&["--limit", "999"]).len(), 200);
    assert_eq!(printed(&["--since", "3", "--limit", "2"])[0]["sequence"], 4);
    assert_eq!(printed(&["--task", "7"]).len(), 1);
    assert_eq!(env.weald(&["events", "--limit", "0"]).code, 2);
}

#[test]
fn p6_a_torn_line_is_shown_as_parse_error_and_the_journal_goes_on() {
    let env = env();
    env.ok(&["task", "add", "one"]);
    let journal = env.private().join("events.jsonl");
    let mut file = fs::OpenOptions::new().append(true).open(&journal).unwrap();
    file.write_all(b"{\"specversion\":\"1.0\",\"sequ").unwrap();
    env.ok(&["task", "add", "two"]);
    let text = fs::read_to_string(&journal).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.lines().nth(2).unwrap().contains("\"sequence\":2"));
    for args in [
        vec!["events", "--json"],
        vec!["events", "--json", "--file", journal.to_str().unwrap()],
    ] {
        let answer = env.weald(&args);
        assert_eq!(answer.code, 0);
        let found = lines(&answer.stdout);
        assert_eq!(
            found
                .iter()
                .filter(|line| line["type"] == "dev.weald.parse_error")
                .count(),
            1,
            "{answer:?}"
        );
        assert_eq!(
            found
                .iter()
                .filter(|line| line["type"] == "dev.weald.task.created")
                .count(),
            2
        );
    }
    // A journal that is gone, or behind, is made good by the next command.
    fs::remove_file(&journal).unwrap();
    env.ok(&["task", "add", "three"]);
    assert_journal_is_the_log(&env);
}

#[test]
fn p6_events_are_cloudevents() {
    let env = env();
    env.ok(&["task", "add", "one", "--session", "alice"]);
    let event = lines(&env.weald(&["events", "--json"]).stdout).remove(0);
    assert_eq!(event["specversion"], "1.0");
    assert_eq!(event["type"], "dev.weald.task.created");
    assert_eq!(event["id"], "1");
    assert_eq!(event["sequence"], 1);
    assert_eq!(event["subject"], "task/1");
    assert!(event["source"].as_str().unwrap().starts_with("file:///"));
    assert_eq!(event["data"]["actor"], "alice");
    assert_eq!(event["data"]["after"]["task"]["subject"], "one");
}

#[test]
fn events_can_be_followed() {
    let env = env();
    env.ok(&["task", "add", "before"]);
    let mut command = env.weald_command(&["events", "--follow", "--json", "--since", "0"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&reader.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["data"]["after"]["task"]["subject"], "before");
    env.ok(&["task", "add", "after"]);
    assert_eq!(next()["data"]["after"]["task"]["subject"], "after");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn records(env: &TestEnv, now: Timestamp) -> (Tree, DirectoryIdentity, Trash) {
    let base = Base {
        reference: "main".into(),
        commit: "0".repeat(40),
    };
    let record = Tree {
        task: Some("1".parse().unwrap()),
        ..Tree::new(
            TreeId(1),
            "fix".parse().unwrap(),
            env.root().join("fix"),
            base,
            now,
        )
    };
    let identity = DirectoryIdentity {
        device: 1,
        inode: 1,
        born: None,
    };
    let trash = Trash {
        path: env.root().join(".trash/fix"),
        at: now,
        tip: None,
        branch_tip: None,
        snapshot: None,
        task: None,
        head: None,
        ports: None,
        status: None,
    };
    (record, identity, trash)
}

/// The whole life of a tree, recorded as the engine records it, read back on the command line.
#[test]
fn p8_the_life_of_a_tree_can_be_read_back() {
    let env = env();
    env.ok(&["task", "add", "t"]);
    let store = SqliteStore::open(&env.private(), Arc::new(SystemClock)).unwrap();
    let now = SystemClock.now();
    let (record, identity, trash) = records(&env, now);
    let (mut tree, change) = tree_rules::announce(record);
    let mut changes = vec![change];
    let failed = TreeInput::RemoveFailed {
        error: "it is locked".into(),
    };
    let life = [
        TreeInput::Created {
            identity,
            registration: "fix".into(),
        },
        TreeInput::Keep,
        TreeInput::RemoveBegins { worker: None },
        failed,
        TreeInput::RemoveBegins { worker: None },
        TreeInput::Trashed(Box::new(trash)),
        TreeInput::Restored {
            identity,
            registration: "fix".into(),
            task: None,
            landed: None,
        },
    ];
    for input in life {
        let (next, change) = tree_rules::decide(&tree, input, now).unwrap();
        tree = next;
        changes.push(change);
    }
    for change in changes {
        let mut tx = store.write(Durability::Power).unwrap();
        tx.record(None, change).unwrap();
        tx.commit().unwrap();
    }
    let told = lines(&env.weald(&["events", "--tree", "fix", "--json"]).stdout);
    let kinds: Vec<_> = told
        .iter()
        .map(|event| {
            event["type"]
                .as_str()
                .unwrap()
                .trim_start_matches("dev.weald.tree.")
        })
        .collect();
    let expected = [
        "create.before",
        "create.after",
        "kept",
        "remove.before",
        "remove.failed",
        "remove.before",
        "trashed",
        "restored",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(told[4]["data"]["error"], "it is locked");
    assert_eq!(told[7]["data"]["after"]["tree"]["status"], "kept");
    assert_eq!(told[0]["data"]["task"], json!(1));
}
