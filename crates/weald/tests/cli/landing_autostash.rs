//! Changes of the user's that a landing took out of the checkout: they come back, or every face says where they are.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use weald_testkit::{Answer, TestEnv};

use crate::landing_moving::{nothing_left, sh};
use crate::landing_races::Stopped;
use crate::trees_crash::settle;
use crate::trees_remove::repository;

/// A tracked file that the user changed, with `landing.autostash` on, and a task for somebody who changes the same line.
fn edited() -> TestEnv {
    let env = repository();
    sh(
        &env,
        &env.repo(),
        "seq 5 >n; git add n; git commit -q -m n; sed -i 1s/.*/MINE/ n",
    );
    env.ok(&["config", "set", "landing.autostash", "true"]);
    env.ok(&["task", "add", "their edit"]);
    env
}

const THEIRS: [&str; 5] = ["--", "sed", "-i", "1s/.*/THEIRS/", "n"];

/// The needs of the board that are about changes of the user's.
fn kept(env: &TestEnv) -> Vec<Value> {
    let board = env.ok(&[]);
    let needs = board["needs"].as_array().unwrap().iter().cloned();
    needs
        .filter(|need| need["kind"] == "kept_changes")
        .collect()
}

/// Record, event and board name the stash until its entry is gone.
#[track_caller]
fn assert_named(env: &TestEnv, face: &str) {
    let repo = env.repo().display().to_string();
    assert_eq!(env.git(&["show", "stash@{0}:n"]), "MINE\n2\n3\n4\n5\n");
    let events = env.weald(&["events", "--limit", "200"]).stdout;
    assert!(events.contains("landing.kept_changes"), "{face}: {events}");
    let needs = kept(env);
    assert_eq!(needs.len(), 1, "{face}: {needs:#?}");
    let what = needs[0]["what"].as_str().unwrap();
    assert!(what.contains("stash@{0}") && what.contains(&repo), "{what}");
    let plain = env.weald(&[]).stdout;
    assert!(
        plain.contains("needs you") && plain.contains("stash@{0}"),
        "{face}: {plain}"
    );
    // It keeps its commit when somebody pushes another entry on top.
    sh(env, &env.repo(), "echo other >other; git stash -q -u");
    let command = kept(env)[0]["command"].as_str().unwrap().to_owned();
    assert!(command.ends_with("stash pop stash@{1}"), "{command}");
    // The command that is named brings it back, conflict and all; then nothing is left to say.
    let popped = env.command("sh").args(["-c", &command]).output().unwrap();
    assert_eq!(popped.status.code(), Some(1), "{popped:?}");
    let text = fs::read_to_string(env.repo().join("n")).unwrap();
    assert!(text.contains("MINE") && text.contains("THEIRS"), "{text}");
    env.git(&["stash", "drop", "-q", "stash@{1}"]);
    assert_eq!(kept(env), Vec::<Value>::new(), "{face}");
}

#[track_caller]
fn assert_said(face: &str, answer: &Answer) {
    assert_eq!(answer.code, 0, "{face}: {answer:#?}");
    let said = &answer.stdout;
    assert!(
        said.contains("stash@{0}") && said.contains("stash pop"),
        "{face}: {answer:#?}"
    );
}

#[test]
fn y2_a_stash_that_does_not_fit_is_named_by_every_face() {
    for face in [
        "land",
        "work",
        "work --json",
        "worker",
        "worker --json",
        "spawn",
    ] {
        let env = edited();
        let (words, json) = match face.split_once(' ') {
            Some((words, _)) => (words, vec!["--json"]),
            None => (face, vec![]),
        };
        match words {
            "land" => {
                let tree = crate::trees_remove::grow(&env, "t", "sealed");
                sh(
                    &env,
                    &tree,
                    "sed -i 1s/.*/THEIRS/ n; git commit -qam theirs",
                );
                assert_said(face, &env.weald(&["land", "t"]));
                // A later question about the landing gets the same answer.
                let queue = env.ok(&["queue", "status", "--all"]).to_string();
                assert!(queue.contains("kept_changes"), "{queue}");
            }
            "spawn" => {
                env.ok(&[&["agent", "spawn", "1"][..], &THEIRS].concat());
                env.ok(&["agent", "wait", "a1"]);
            }
            "worker" => {
                let args = ["worker", "--max", "1", "--idle-timeout", "1s"];
                assert_said(face, &env.weald(&[&args[..], &json, &THEIRS].concat()));
            }
            _ => assert_said(
                face,
                &env.weald(&[&["work", "1"][..], &json, &THEIRS].concat()),
            ),
        }
        assert_named(&env, face);
    }
}

/// What fits comes back by itself, and nothing is said.
#[test]
fn y2_changes_that_fit_are_back_in_the_checkout() {
    let env = edited();
    let theirs = "sed -i 5s/.*/THEIRS/ n";
    let answer = env.weald(&["work", "1", "--json", "--", "sh", "-c", theirs]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert_eq!(answer.json()["landing"].get("kept_changes"), None);
    let text = fs::read_to_string(env.repo().join("n")).unwrap();
    assert_eq!(text, "MINE\n2\n3\n4\nTHEIRS\n");
    assert_eq!(env.git(&["stash", "list"]), "");
    assert_eq!(kept(&env), Vec::<Value>::new());
}

/// A landing that is killed between the stash and its return is ended by the next one, which names the stash.
#[test]
fn y2_a_killed_landing_names_its_stash_too() {
    let env = edited();
    let tree = crate::trees_remove::grow(&env, "t", "sealed");
    sh(
        &env,
        &tree,
        "sed -i 1s/.*/THEIRS/ n; git commit -qam theirs",
    );
    let mut command = env.weald_command(&["land", "t"]);
    command.env("WEALD_STEP", "kill:land.planned");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    assert!(!command.status().unwrap().success());
    settle(&env);
    let answer = env.weald(&["land", "t"]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert!(answer.stderr.contains("stash pop stash@{0}"), "{answer:#?}");
    assert_named(&env, "land after a kill");
}

/// A worktree `t` whose commit changes another line of `n` than the user did.
fn their_commit(env: &TestEnv, more: &str) {
    let tree = crate::trees_remove::grow(env, "t", "sealed");
    let script = format!("sed -i 5s/.*/THEIRS/ n; {more} git add -A; git commit -qm theirs");
    sh(env, &tree, &script);
}

/// The refusal of a checkout that a stash would not bring back whole; nothing in it changed.
#[track_caller]
fn refusal(env: &TestEnv, path: &str) -> Value {
    let before = env.git(&["rev-parse", "main"]);
    let (code, landings) = crate::landing::land(env, &["t"]);
    let reason = landings[0]["reason"].clone();
    assert_eq!(
        (code, &reason["code"]),
        (1, &"target_dirty".into()),
        "{reason}"
    );
    assert_eq!(reason["paths"], serde_json::json!([path]), "{reason}");
    assert_eq!(env.git(&["rev-parse", "main"]), before);
    assert_eq!(env.git(&["stash", "list"]), "");
    let text = fs::read_to_string(env.repo().join("n")).unwrap();
    assert_eq!(text, "MINE\n2\n3\n4\n5\n");
    reason
}

#[test]
fn y2_a_change_that_git_is_told_to_ignore_is_not_lost_in_a_stash() {
    for bit in ["assume-unchanged", "skip-worktree"] {
        let env = edited();
        their_commit(&env, "");
        env.git(&["update-index", &format!("--{bit}"), "config.py"]);
        let file = env.repo().join("config.py");
        fs::write(&file, "local\n").unwrap();
        let reason = refusal(&env, "config.py");
        assert_eq!(fs::read_to_string(&file).unwrap(), "local\n", "{bit}");
        // The command that it names is all that is needed.
        let hint = reason["hint"].as_str().unwrap();
        let command = hint.strip_suffix(", then land again").unwrap();
        assert!(command.contains(&format!("--no-{bit}")), "{command}");
        sh(&env, env.root(), command);
        crate::landing::landed(&env, &["t"]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "local\n", "{bit}");
        let text = fs::read_to_string(env.repo().join("n")).unwrap();
        assert_eq!(text, "MINE\n2\n3\n4\nTHEIRS\n", "{bit}");
    }
}

#[test]
fn y2_a_stash_takes_no_untracked_file_that_is_not_in_the_way() {
    let env = edited();
    their_commit(&env, "");
    sh(
        &env,
        &env.repo(),
        "printf '*.dat text eol=lf\\n' >.git/info/attributes; mkdir -p empty/er keep; mkfifo keep/fifo; \
         for i in $(seq 10001); do printf 'a\\r\\n' >keep/$i.dat; done",
    );
    crate::landing::landed(&env, &["t"]);
    assert!(env.repo().join("empty/er").is_dir());
    assert!(env.repo().join("keep/fifo").exists());
    for number in 1..=10_001 {
        let bytes = fs::read(env.repo().join(format!("keep/{number}.dat"))).unwrap();
        assert_eq!(bytes, b"a\r\n", "{number}");
    }
}

#[test]
fn y2_what_a_stash_does_not_keep_refuses_it() {
    for (mine, path) in [
        ("mkdir keep; mkfifo keep/fifo", "keep/fifo"),
        ("mkdir -p empty/er", "empty/er"),
        (
            "rm config.py; mkdir config.py; echo >config.py/mine",
            "config.py/mine",
        ),
    ] {
        let env = edited();
        their_commit(&env, "echo theirs >taken;");
        sh(&env, &env.repo(), &format!("echo mine >taken; {mine}"));
        refusal(&env, path);
        assert!(env.repo().join(path).exists(), "{path}");
        assert_eq!(fs::read(env.repo().join("taken")).unwrap(), b"mine\n");
    }
}

#[test]
fn y2_a_repository_does_not_switch_stashing_on() {
    let env = edited();
    env.ok(&["config", "unset", "landing.autostash"]);
    let text = "landing.autostash = true\n";
    fs::write(env.repo().join("weald.toml"), text).unwrap();
    sh(
        &env,
        &env.repo(),
        "git add weald.toml; git commit -qm settings",
    );
    their_commit(&env, "");
    refusal(&env, "n");
}

/// A change in the way, and files beside it that a stash does not bring back as they are: their modes are odd.
fn with_odd_files() -> TestEnv {
    let env = edited();
    sh(
        &env,
        &env.repo(),
        "for f in o p q; do echo 1 >$f; done; git add o p q; git commit -q -m odd -- o p q
         for f in o p q; do echo mine >$f; chmod 600 $f; done",
    );
    their_commit(&env, "");
    env
}

fn read(env: &TestEnv, file: &str) -> String {
    fs::read_to_string(env.repo().join(file)).unwrap_or_default()
}

fn inode(env: &TestEnv, file: &str) -> u64 {
    fs::metadata(env.repo().join(file)).unwrap().ino()
}

/// What is kept of the user's files, sorted.
fn rescued(env: &TestEnv) -> Vec<(PathBuf, String)> {
    let folder = env.private().join("rescued/landing-1");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let text = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path, text)
    };
    let mut all: Vec<_> = entries.map(|entry| text(entry.path())).collect();
    all.sort();
    all
}

#[test]
fn y2_what_is_saved_while_changes_come_back_stays() {
    for step in ["stash.popped", "stash.restoring"] {
        let env = with_odd_files();
        let own = inode(&env, "p");
        let stopped = Stopped::at(&env, step);
        sh(&env, &env.repo(), "echo newer >o; echo newer >q~; mv q~ q");
        let (code, landing, told) = stopped.go_on();
        assert_eq!(code, 0, "{step}: {told}");
        assert_eq!(read(&env, "n"), "MINE\n2\n3\n4\nTHEIRS\n", "{step}");
        for file in ["o", "q"] {
            assert_eq!(read(&env, file), "newer\n", "{step}: {file}");
        }
        // Nobody saved this one: it is the same file again.
        assert_eq!(inode(&env, "p"), own, "{step}");
        // What the others were before is kept, and the landing says where.
        let kept = rescued(&env);
        assert_eq!(kept.len(), 2, "{step}: {kept:?}");
        for (path, text) in kept {
            assert_eq!(text, "mine\n", "{step}");
            let name = path.to_str().unwrap();
            assert!(landing["kept_changes"].to_string().contains(name));
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{step}");
        }
        nothing_left(&env);
    }
}

#[test]
fn y2_a_program_that_writes_on_into_stashed_files_loses_nothing() {
    // In the first case all of it comes back; in the second the stash does not fit and stays.
    for more in ["", "echo theirs >taken;"] {
        let env = edited();
        their_commit(&env, more);
        sh(
            &env,
            &env.repo(),
            "echo 1 >o; git add o; git commit -q -m o -- o; echo mine >o; echo mine >taken",
        );
        let open = |file: &str| {
            let options = fs::OpenOptions::new()
                .append(true)
                .open(env.repo().join(file));
            options.unwrap()
        };
        let files = ["n", "o", "taken"];
        let mut handles = files.map(open);
        let stopped = Stopped::at(&env, "stash.pushed");
        for handle in &mut handles {
            handle.write_all(b"late\n").unwrap();
        }
        let (code, landing, told) = stopped.go_on();
        assert_eq!(code, 0, "{more}: {told}");
        let kept = landing["kept_changes"].to_string();
        let all: Vec<_> = rescued(&env);
        for file in files {
            let is_here = read(&env, file).ends_with("late\n");
            let found = all.iter().find(|(path, text)| {
                let name = path.to_string_lossy().into_owned();
                name.ends_with(&format!("-{file}")) && text.ends_with("late\n")
            });
            let is_kept = found.is_some_and(|(path, _)| kept.contains(path.to_str().unwrap()));
            assert!(is_here || is_kept, "{more} {file}: {told} {all:?}");
        }
        nothing_left(&env);
    }
}

#[test]
fn y2_killed_anywhere_between_stash_and_return_nothing_is_lost() {
    for step in ["stash.pushed", "stash.popped", "stash.restoring"] {
        let env = with_odd_files();
        let mut open = fs::OpenOptions::new()
            .append(true)
            .open(env.repo().join("n"))
            .unwrap();
        let mut command = env.weald_command(&["land", "t"]);
        command.env("WEALD_STEP", format!("kill:{step}"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        assert!(!command.status().unwrap().success(), "{step}");
        settle(&env);
        open.write_all(b"late\n").unwrap();
        let answer = env.weald(&["land", "t"]);
        let is_there = answer.code == 0 || !env.root().join("app.weald/t").exists();
        assert!(is_there, "{step}: {answer:#?}");
        assert!(env.git(&["show", "main:n"]).ends_with("THEIRS\n"), "{step}");
        if step == "stash.pushed" {
            assert!(answer.stderr.contains("stash pop stash@{0}"), "{answer:#?}");
            sh(&env, &env.repo(), "git stash pop -q");
        } else {
            // What was put back is as it was, modes and all.
            for file in ["o", "p", "q"] {
                let found = fs::metadata(env.repo().join(file)).unwrap();
                assert_eq!(found.permissions().mode() & 0o777, 0o600, "{step}");
            }
        }
        assert_eq!(env.git(&["stash", "list"]), "", "{step}");
        assert_eq!(read(&env, "n"), "MINE\n2\n3\n4\nTHEIRS\n", "{step}");
        for file in ["o", "p", "q"] {
            assert_eq!(read(&env, file), "mine\n", "{step}: {file}");
        }
        let kept = rescued(&env);
        assert_eq!(kept.len(), 1, "{step}: {kept:?}");
        assert_eq!(kept[0].1, "MINE\n2\n3\n4\n5\nlate\n", "{step}");
        nothing_left(&env);
    }
}

#[test]
fn y2_what_no_stash_takes_refuses_before_anything_is_stashed() {
    let ignored = "echo '*.dat' >>.git/info/exclude; echo mine >taken.dat";
    let other = "git init -q taken.dat; echo mine >taken.dat/in";
    let out = "echo mine >taken.dat; git rm -q --cached config.py; echo later >config.py";
    for (mine, path) in [
        (ignored, "taken.dat"),
        (other, "taken.dat/"),
        (out, "config.py"),
    ] {
        let env = edited();
        their_commit(&env, "echo theirs >taken.dat;");
        sh(&env, &env.repo(), mine);
        let state = || crate::landing_moving::state(&env, &env.repo());
        let before = state();
        let (code, landings) = crate::landing::land(&env, &["t"]);
        let reason = &landings[0]["reason"];
        assert_eq!(
            (code, &reason["code"]),
            (1, &"target_dirty".into()),
            "{reason}"
        );
        let named = reason["paths"][0].as_str().unwrap();
        assert!(named.starts_with(path), "{mine}: {reason}");
        assert_eq!(state(), before, "{mine}");
        assert_eq!(landings[0].get("kept_changes"), None, "{mine}");
        nothing_left(&env);
    }
}

/// Somebody saves into the checkout after it was stashed: the refusal does not say that nothing was changed.
#[test]
fn y2_a_refusal_after_a_stash_says_where_the_changes_are() {
    let env = edited();
    their_commit(&env, "");
    let stopped = Stopped::at(&env, "stash.pushed");
    sh(&env, &env.repo(), "sed -i 3s/.*/AGAIN/ n");
    let (code, landing, told) = stopped.go_on();
    assert_eq!(code, 1, "{told}");
    let message = landing["reason"]["message"].as_str().unwrap();
    assert!(message.contains("are kept in stash@{0}"), "{message}");
    assert!(!message.contains("nothing was changed"), "{message}");
    assert_eq!(read(&env, "n"), "1\n2\nAGAIN\n4\n5\n");
    assert_eq!(env.git(&["show", "stash@{0}:n"]), "MINE\n2\n3\n4\n5\n");
    nothing_left(&env);
}
