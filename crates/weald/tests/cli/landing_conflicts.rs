//! Conflicts before anyone lands: what is found, what is not touched, who is told.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_remove::{KINDS, git_in, grow, repository};
use crate::trees_trash::manifest;

/// A repository with a file of ten lines, and a folder.
fn field() -> TestEnv {
    let env = repository();
    fs::create_dir(env.repo().join("lib")).unwrap();
    for name in ["app.txt", "lib/one", "lib/two", "lib/three"] {
        fs::write(env.repo().join(name), ten(name)).unwrap();
    }
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "lines"]);
    env
}

fn ten(name: &str) -> String {
    (1..=10)
        .map(|number| format!("{name} {number}\n"))
        .collect()
}

/// Writes another line; nothing is committed.
fn edit(root: &Path, file: &str, line: usize, text: &str) {
    let path = root.join(file);
    let before = fs::read_to_string(&path).unwrap();
    let lines = before
        .lines()
        .enumerate()
        .map(|(place, old)| match place + 1 == line {
            true => format!("{text}\n"),
            false => format!("{old}\n"),
        });
    let after: String = lines.collect();
    fs::write(path, after).unwrap();
}

fn edit_and_commit(env: &TestEnv, root: &Path, file: &str, line: usize, text: &str) {
    edit(root, file, line, text);
    git_in(env, root, &["commit", "-q", "-a", "-m", text]);
}

/// Who clashes with whom, and where.
fn clashes(radar: &Value) -> Vec<String> {
    let mut found: Vec<String> = radar["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| {
            let text = |key: &str| pair[key].as_str().unwrap().to_owned();
            let paths: Vec<_> = pair["paths"].as_array().unwrap().iter().collect();
            let paths: Vec<_> = paths.iter().map(|path| path.as_str().unwrap()).collect();
            let mark = if pair["uncommitted"] == true { "*" } else { "" };
            let target = if pair["with_target"] == true { "!" } else { "" };
            format!(
                "{} {target}{}{mark}: {}",
                text("a"),
                text("b"),
                paths.join(" ")
            )
        })
        .collect();
    found.sort();
    found
}

#[test]
fn m4_conflicts_are_seen_before_anyone_lands_committed_or_not() {
    for kind in KINDS {
        let env = field();
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| grow(&env, name, kind));
        edit_and_commit(&env, &a, "app.txt", 5, "from a");
        edit(&b, "app.txt", 5, "from b");
        git_in(&env, &c, &["mv", "lib", "moved"]);
        git_in(&env, &c, &["commit", "-q", "-m", "moved"]);
        fs::write(d.join("lib/new"), "nobody committed this\n").unwrap();
        edit(&d, "app.txt", 9, "far from the others");
        edit_and_commit(&env, &env.repo(), "app.txt", 5, "from main");
        let before = [&a, &b, &c, &d].map(|path| manifest(path));
        let refs = env.git(&["for-each-ref"]);
        let radar = env.ok(&["conflicts"]);
        assert_eq!(
            clashes(&radar),
            [
                "a !main: app.txt",
                "a b*: app.txt",
                "b !main*: app.txt",
                "c d*: lib/new moved/new",
            ],
            "{kind}: {radar:#}"
        );
        let hunk = &radar["pairs"][0]["conflicts"][0]["hunks"][0];
        assert_eq!(hunk["line"], 5, "{radar:#}");
        assert_eq!(
            (&hunk["a"], &hunk["b"]),
            (&json!(["from a"]), &json!(["from main"]))
        );
        assert_eq!(
            (&radar["checked"], &radar["unknown"]),
            (&json!(10), &json!([]))
        );
        // It only looks.
        assert_eq!(
            [&a, &b, &c, &d].map(|path| manifest(path)),
            before,
            "{kind}"
        );
        assert_eq!(env.git(&["for-each-ref"]), refs);
        assert_eq!(env.ok(&["snapshot", "list", "b"])["snapshots"], json!([]));
        // A report, unless somebody wants to know it from the exit code.
        let plain = env.weald(&["conflicts"]);
        assert_eq!(plain.code, 0);
        for part in [
            "a and b conflict (including uncommitted work)",
            "< from a",
            "> from b",
        ] {
            assert!(plain.stdout.contains(part), "{part}: {}", plain.stdout);
        }
        assert_eq!(env.weald(&["conflicts", "--exit-code"]).code, 3);
        assert_eq!(
            clashes(&env.ok(&["conflicts", "d"])),
            ["c d*: lib/new moved/new"]
        );
        assert_eq!(env.weald(&["conflicts", "nobody"]).code, 4);
    }
}

#[test]
fn m4_nothing_clashes_where_lines_are_far_apart_and_filters_count() {
    let env = repository();
    fs::write(env.repo().join(".gitattributes"), "*.txt text eol=crlf\n").unwrap();
    fs::write(env.repo().join("app.txt"), ten("app")).unwrap();
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "lines"]);
    let [a, b] = ["a", "b"].map(|name| grow(&env, name, "sealed"));
    for (path, place) in [(&a, 2), (&b, 8)] {
        let text = fs::read_to_string(path.join("app.txt")).unwrap();
        assert!(text.contains("\r\n"));
        let old = format!("app {place}\r\n");
        fs::write(path.join("app.txt"), text.replace(&old, "other\r\n")).unwrap();
    }
    let radar = env.ok(&["conflicts"]);
    assert_eq!(clashes(&radar), [""; 0], "{radar:#}");
    assert_eq!(radar["merged"], 1);
    assert_eq!(env.weald(&["conflicts", "--exit-code"]).code, 0);
}

#[test]
fn x6_a_tree_that_can_not_be_looked_into_hides_no_other() {
    let env = field();
    let [a, b, broken, gone] = ["a", "b", "broken", "gone"].map(|name| grow(&env, name, "sealed"));
    edit(&a, "app.txt", 5, "from a");
    edit(&b, "app.txt", 5, "from b");
    fs::write(broken.join(".git/HEAD"), format!("{}\n", "1".repeat(40))).unwrap();
    fs::remove_dir_all(&gone).unwrap();
    let radar = env.ok(&["conflicts"]);
    assert_eq!(clashes(&radar), ["a b*: app.txt"], "{radar:#}");
    let unknown: Vec<_> = radar["unknown"].as_array().unwrap().iter().collect();
    let names: Vec<_> = unknown
        .iter()
        .map(|one| one["tree"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["broken", "gone"], "{radar:#}");
    assert!(
        unknown
            .iter()
            .all(|one| one["reason"].as_str().is_some_and(|why| !why.is_empty()))
    );
    assert!(env.weald(&["conflicts"]).stdout.contains("unknown: broken"));
    assert_eq!(env.weald(&["conflicts", "--exit-code"]).code, 3);
    let alone = env.weald(&["conflicts", "broken", "--exit-code"]);
    assert_eq!(alone.code, 1, "{alone:#?}");
}

#[test]
fn m4_what_is_known_is_not_merged_again_and_only_exact_keys_count() {
    let env = field();
    let [a, b] = ["a", "b"].map(|name| grow(&env, name, "sealed"));
    edit(&a, "app.txt", 5, "from a");
    edit(&b, "app.txt", 5, "from b");
    let look = || {
        let radar = env.ok(&["conflicts"]);
        (clashes(&radar), radar["merged"].as_u64().unwrap())
    };
    let found = vec!["a b*: app.txt".to_owned()];
    assert_eq!(look(), (found.clone(), 1));
    assert_eq!(look(), (found.clone(), 0));
    // The same in another form: committed.
    git_in(&env, &b, &["commit", "-q", "-a", "-m", "b"]);
    assert_eq!(look(), (found.clone(), 1));
    edit(&b, "app.txt", 5, "app.txt 5");
    // It changes nothing any more, so there is nothing to merge.
    assert_eq!(look(), (Vec::new(), 0));
    edit(&b, "app.txt", 5, "from b again");
    assert_eq!(look(), (found.clone(), 1));
    // Nothing of it is needed.
    fs::write(env.private().join("conflicts.json"), "{\"pairs\": 7").unwrap();
    assert_eq!(look(), (found.clone(), 1));
    fs::remove_dir_all(env.private().join("radar.git")).unwrap();
    assert_eq!(look().0, found);
    fs::remove_dir_all(env.private().join("radar.git/objects/info")).unwrap();
    look();
    fs::remove_dir_all(env.private().join("radar.git")).unwrap();
    assert_eq!(look().0, found);
}

#[test]
fn m23_a_tree_that_landed_before_does_not_clash_with_itself() {
    let env = field();
    let a = grow(&env, "a", "sealed");
    edit_and_commit(&env, &a, "app.txt", 5, "first");
    env.ok(&["land", "a", "--keep"]);
    assert_eq!(clashes(&env.ok(&["conflicts"])), [""; 0]);
    edit(&a, "app.txt", 5, "second");
    assert_eq!(clashes(&env.ok(&["conflicts"])), [""; 0]);
    // What somebody else did there since does count.
    edit_and_commit(&env, &env.repo(), "app.txt", 5, "from main");
    assert_eq!(clashes(&env.ok(&["conflicts"])), ["a !main*: app.txt"]);
}

fn inbox(env: &TestEnv, session: &str) -> Vec<String> {
    let read = env.ok(&["msg", "inbox", "--session", session]);
    let list = read["messages"].as_array().unwrap().clone();
    list.iter()
        .map(|one| one["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn s7_owners_are_told_once_and_only_when_asked() {
    let env = field();
    for (name, session) in [("a", "alice"), ("b", "bob")] {
        env.ok(&["session", "register", session]);
        env.ok(&["task", "add", name]);
        env.ok(&["task", "claim", "--session", session]);
    }
    for (name, task) in [("a", "1"), ("b", "2")] {
        env.ok(&["new", name, "--task", task]);
        edit(&env.root().join("app.weald").join(name), "app.txt", 5, name);
    }
    env.ok(&["conflicts"]);
    assert_eq!(inbox(&env, "alice"), [""; 0]);
    let told = env.ok(&["conflicts", "--tell"]);
    assert_eq!(told["told"].as_array().unwrap().len(), 2, "{told:#}");
    for (session, words) in [
        ("alice", "a conflicts with b"),
        ("bob", "b conflicts with a"),
    ] {
        let read = inbox(&env, session);
        assert_eq!(read.len(), 1, "{read:?}");
        assert!(
            read[0].contains(words) && read[0].contains("app.txt"),
            "{read:?}"
        );
    }
    // The same conflict is not told again, another one is.
    edit(&env.root().join("app.weald/a"), "app.txt", 5, "still");
    assert_eq!(env.ok(&["conflicts", "--tell"])["told"], json!([]));
    for name in ["a", "b"] {
        edit(&env.root().join("app.weald").join(name), "lib/one", 1, name);
    }
    let told = env.ok(&["conflicts", "--tell"]);
    assert_eq!(told["told"].as_array().unwrap().len(), 2, "{told:#}");
}

#[test]
fn m4_watching_prints_what_changes_until_it_is_interrupted() {
    use std::os::unix::process::ExitStatusExt;
    let env = field();
    let [a, b] = ["a", "b"].map(|name| grow(&env, name, "sealed"));
    let mut child = env
        .weald_command(&["conflicts", "--watch", "--every", "200ms"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert!(next().starts_with("no conflicts: 2 worktrees"));
    edit(&a, "app.txt", 5, "from a");
    edit(&b, "app.txt", 5, "from b");
    assert_eq!(
        next(),
        "new: a and b conflict (including uncommitted work): app.txt"
    );
    edit(&a, "app.txt", 5, "app.txt 5");
    assert_eq!(
        next(),
        "gone: a and b conflict (including uncommitted work): app.txt"
    );
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = child.wait().unwrap();
    assert_eq!(
        ended.signal().map(|signal| 128 + signal).or(ended.code()),
        Some(130)
    );
}
