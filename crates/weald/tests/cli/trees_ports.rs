//! Ports of trees: nobody shares them, and they come back.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_crash::settle;
use crate::trees_remove::{events, git_in, repository};

/// Where leases lie.
fn leases(env: &TestEnv) -> PathBuf {
    env.home().join(".local/state/weald/ports")
}

/// The cells that are held.
fn held(env: &TestEnv) -> Vec<String> {
    let entries = fs::read_dir(leases(env)).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name != "turn.lock").collect()
}

/// One block for all.
const ONE: [&str; 4] = ["--set", "ports.first=21000", "--set", "ports.last=21009"];

fn new(env: &TestEnv, name: &str, range: &[&str]) -> Value {
    env.ok(&[&["new", name], range].concat())["tree"].clone()
}

fn first(tree: &Value) -> u64 {
    tree["ports"]["first"].as_u64().unwrap()
}

#[test]
fn k14_a_tree_has_ports_of_its_own_until_it_is_removed() {
    let env = repository();
    let tree = new(&env, "a", &[]);
    let port = first(&tree);
    assert_eq!(tree["ports"]["count"], 10);
    assert!((20_000..32_000).contains(&port));
    let told = env.weald(&[
        "run",
        "a",
        "--",
        "sh",
        "-c",
        "echo $WEALD_PORT $WEALD_PORTS",
    ]);
    assert_eq!(told.stdout, format!("{port} {port}-{}\n", port + 9));
    let entered = env.ok(&["enter", "a"]);
    assert_eq!(entered["env"]["WEALD_PORT"], port.to_string());
    let listed = env.ok(&["ports"]);
    let block = json!({"tree": "a", "first": port, "count": 10, "last": port + 9});
    assert_eq!(listed["ports"]["blocks"], json!([block]));
    assert_eq!(env.ok(&["ports", "a"])["ports"], listed["ports"]);
    env.refused(&["ports", "b"], 4, "tree_not_found");
    env.ok(&["rm", "a"]);
    assert_eq!(held(&env), Vec::<String>::new());
    assert_eq!(env.ok(&["ports"])["ports"]["blocks"], json!([]));
    let back = env.ok(&["trash", "restore", "a"]);
    assert_eq!(first(&back["tree"]), port, "nobody took it");
    assert!(env.ok(&["doctor"])["findings"].as_array().unwrap().len() == 1);
}

#[test]
fn k14_a_restored_tree_gets_other_ports_if_its_own_are_taken() {
    let env = repository();
    let two = ["--set", "ports.first=21000", "--set", "ports.last=21019"];
    new(&env, "a", &ONE);
    env.ok(&["rm", "a"]);
    new(&env, "b", &ONE);
    let back = env.ok(&[&["trash", "restore", "a"], &two[..]].concat());
    assert_eq!(back["tree"]["ports"]["first"], 21_010);
    assert!(
        events(&env, "a")
            .iter()
            .any(|(kind, _)| kind == "tree.ports")
    );
    env.ok(&["rm", "a"]);
    let back = env.weald(&[&["trash", "restore", "a", "--json"], &ONE[..]].concat());
    assert_eq!(back.code, 0, "{back:#?}");
    // The block it had is free, though out of the range by now.
    assert_eq!(first(&back.json()["tree"]), 21_010);
}

#[test]
fn k14_without_a_free_block_the_tree_is_made_and_that_is_said() {
    let env = repository();
    new(&env, "a", &ONE);
    let answer = env.weald(&[&["new", "b", "--json"], &ONE[..]].concat());
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert!(
        answer
            .stderr
            .contains("no 10 free ports from 21000 to 21009"),
        "{answer:#?}"
    );
    assert_eq!(answer.json()["tree"]["ports"], json!(null));
    let told = env.weald(&["run", "b", "--", "sh", "-c", "echo [$WEALD_PORT]"]);
    assert_eq!(told.stdout, "[]\n");
    let none = new(&env, "c", &["--set", "ports.count=0"]);
    assert_eq!(none["ports"], json!(null));
}

#[test]
fn k14_forty_at_once_get_forty_blocks() {
    let env = repository();
    let start = |number: usize| {
        let name = format!("t{number}");
        let mut command = env.weald_command(&["new", &name, "--json"]);
        command.args(["--set", "ports.first=21000", "--set", "ports.last=21399"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let children: Vec<_> = (0..40).map(start).collect();
    let mut blocks = HashSet::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(blocks.insert(first(&answer["tree"])), "{answer}");
    }
    assert_eq!((blocks.len(), held(&env).len()), (40, 40));
}

#[test]
fn k14_two_repositories_and_other_sizes_do_not_clash() {
    let env = repository();
    let other = env.root().join("other");
    fs::create_dir(&other).unwrap();
    git_in(&env, &other, &["init", "-q", "-b", "main"]);
    git_in(
        &env,
        &other,
        &["commit", "-q", "--allow-empty", "-m", "first"],
    );
    let other = other.to_str().unwrap();
    let range = ["--set", "ports.first=21000", "--set", "ports.last=21039"];
    let large = ["--set", "ports.count=15"];
    let mut ports: HashSet<u64> = HashSet::new();
    let mut take = |tree: &Value| {
        let count = tree["ports"]["count"].as_u64().unwrap();
        (first(tree)..first(tree) + count).all(|port| ports.insert(port))
    };
    assert!(take(&new(&env, "a", &[&range[..], &large].concat())));
    assert!(take(&new(
        &env,
        "b",
        &[&range[..], &["-C", other]].concat()
    )));
    assert!(take(&new(
        &env,
        "c",
        &[&range[..], &["-C", other]].concat()
    )));
    let none = new(&env, "d", &range);
    assert_eq!(none["ports"], json!(null));
    // A repository that is deleted with its trees holds nothing.
    fs::remove_dir_all(other).unwrap();
    assert!(first(&new(&env, "e", &range)) >= 21_000);
}

#[test]
fn k14_a_lease_of_a_killed_creation_is_free() {
    let env = repository();
    new(&env, "a", &ONE);
    let text = fs::read_link(leases(&env).join("2100")).unwrap();
    env.ok(&["rm", "a"]);
    // As a kill between the lease and the record leaves it: the process has ended, no record knows the tree.
    let orphan = text
        .to_str()
        .unwrap()
        .replace("\"tree\":1,", "\"tree\":999,");
    symlink(orphan, leases(&env).join("2100")).unwrap();
    let found = env.weald(&["doctor", "--json"]).json();
    assert_eq!(found["findings"][1]["code"], "ports_stale", "{found}");
    assert_eq!(first(&new(&env, "b", &ONE)), 21_000);
    // And really killed, at any moment after the lease.
    env.ok(&["rm", "b"]);
    for round in 0..8 {
        let name = format!("k{round}");
        let mut command = env.weald_command(&[&["new", &name], &ONE[..]].concat());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while held(&env).is_empty() {
            assert!(Instant::now() < deadline);
        }
        std::thread::sleep(Duration::from_micros(200 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        settle(&env);
        env.weald(&["doctor", "--fix"]);
        env.weald(&["rm", &name]);
        let next = format!("n{round}");
        assert_eq!(first(&new(&env, &next, &ONE)), 21_000, "round {round}");
        env.ok(&["rm", &next]);
    }
}

#[test]
fn k14_a_lost_lease_is_taken_again() {
    let env = repository();
    let port = first(&new(&env, "a", &[]));
    let file = leases(&env).join((port / 10).to_string());
    fs::remove_file(&file).unwrap();
    let found = env.weald(&["doctor", "--json"]).json();
    assert_eq!(found["findings"][1]["code"], "ports_lost", "{found}");
    assert_eq!(env.weald(&["run", "a", "--", "true"]).code, 0);
    assert!(file.is_symlink(), "the run took it again");
    fs::remove_file(&file).unwrap();
    assert_eq!(env.weald(&["doctor", "--fix"]).code, 0);
    assert!(file.is_symlink());
}
