//! Working in trees: run, status, enter and exit, paths, diff, list, short-lived trees.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::trees_remove::{
    KINDS, commit, events, git_in, grow, has_event, repository, try_git, weald_in,
};

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn w1_a_run_is_in_the_tree_and_passes_everything_on() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let answer = env.weald(&["run", "a", "--", "pwd"]);
        assert_eq!(
            (answer.code, answer.stdout.trim()),
            (0, path.to_str().unwrap())
        );
        let script = "echo out; echo err >&2; cat; exit 7";
        let answer = env.weald_with_input(&["run", "a", "--", "sh", "-c", script], b"in\n");
        assert_eq!(answer.code, 7, "{answer:#?}");
        assert_eq!(answer.stdout, "out\nin\n");
        assert!(answer.stderr.contains("err\n"), "{answer:#?}");
        let failed = |args: &[&str]| {
            let answer = env.weald(&[&["--json", "run"], args].concat());
            (answer.code, answer.error_code())
        };
        assert_eq!(
            failed(&["nobody", "--", "true"]),
            (125, "tree_not_found".to_owned())
        );
        assert_eq!(failed(&["a", "--", "no-such-program"]).0, 127);
        fs::remove_dir_all(&path).unwrap();
        assert_eq!(
            failed(&["a", "--", "true"]),
            (125, "tree_missing".to_owned())
        );
    }
}

/// Whether any process has this word on its command line.
pub fn is_running(word: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| {
            line.split(|byte| *byte == 0)
                .any(|found| found == word.as_bytes())
        })
}

#[test]
fn w2_a_timeout_ends_the_whole_group() {
    for (kind, length) in KINDS.into_iter().zip(["71.0625", "72.0625"]) {
        let env = repository();
        grow(&env, "a", kind);
        let script = format!("sleep {length} & setsid sleep {length} & sleep {length}");
        let begun = Instant::now();
        let answer = env.weald(&["run", "a", "--timeout", "1s", "--", "sh", "-c", &script]);
        assert_eq!(answer.code, 124, "{answer:#?}");
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert!(!is_running(length), "{kind}: a sleep is left");
        assert!(has_event(&env, "a", "tree.run.timeout"));
        assert_eq!(env.ok(&["show", "a"])["tree"]["runs"], json!(null));
    }
}

#[test]
fn w2_output_is_capped_and_that_is_said() {
    let env = repository();
    grow(&env, "a", "sealed");
    let script = "head -c 100000 /dev/zero | tr '\\0' x";
    let run = ["run", "a", "--max-output", "1000", "--", "sh", "-c", script];
    let answer = env.weald(&run);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let passed = answer.stdout.bytes().filter(|byte| *byte == b'x').count();
    assert!((1..=1000).contains(&passed), "{passed}");
    assert!(
        answer.stderr.contains("the rest was dropped"),
        "{}",
        answer.stderr
    );
}

#[test]
fn w3_status_counts_what_changed() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let clean = env.weald(&["status", "a"]);
        assert!(
            clean.stdout.lines().any(|line| line.trim() == "clean"),
            "{clean:#?}"
        );
        let tree = &env.ok(&["status", "a"])["tree"];
        assert_eq!(
            (&tree["dirty"], &tree["branch"]),
            (&json!(false), &json!("wt/a"))
        );
        commit(&env, &path, "one", "1\n");
        commit(&env, &path, "two", "2\n");
        env.git(&["commit", "-q", "--allow-empty", "-m", "main goes on"]);
        fs::write(path.join("staged"), "").unwrap();
        git_in(&env, &path, &["add", "staged"]);
        fs::write(path.join("config.py"), "changed\n").unwrap();
        for name in ["u1", "u2", "u3"] {
            fs::write(path.join(name), "").unwrap();
        }
        let tree = &env.ok(&["status", "a"])["tree"];
        for (field, value) in [
            ("dirty", json!(true)),
            ("staged", json!(1)),
            ("unstaged", json!(1)),
            ("untracked", json!(3)),
            ("conflicted", json!(0)),
            ("ahead", json!(2)),
            ("behind", json!(1)),
        ] {
            assert_eq!(tree[field], value, "{kind} {field}");
        }
        let said = env.weald(&["status", "a"]).stdout;
        assert!(
            said.contains("1 staged, 1 unstaged, 3 untracked, 0 conflicted"),
            "{said}"
        );
        assert!(said.contains("2 ahead of its base"), "{said}");
        assert!(said.contains("1 behind main"), "{said}");
    }
}

#[test]
fn w3_status_tells_conflicts_and_what_is_going_on() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        git_in(&env, &path, &["checkout", "-q", "-b", "theirs"]);
        commit(&env, &path, "config.py", "theirs\n");
        git_in(&env, &path, &["checkout", "-q", "wt/a"]);
        commit(&env, &path, "config.py", "ours\n");
        assert!(!try_git(&env, &path, &["merge", "theirs"]).0);
        let tree = &env.ok(&["status", "a"])["tree"];
        assert_eq!(
            (&tree["conflicted"], &tree["operation"]),
            (&json!(1), &json!("merge"))
        );
        let said = env.weald(&["status", "a"]).stdout;
        assert!(
            said.contains("1 conflicted") && said.contains("a merge is in progress"),
            "{said}"
        );
    }
}

/// Runs a script in a real bash that finds weald; answers its lines.
fn bash(env: &TestEnv, script: &str) -> Vec<String> {
    let binary = Path::new(env!("CARGO_BIN_EXE_weald"));
    let output = env
        .command("bash")
        .args(["--norc", "-c", r#"PATH="$1:$PATH"; eval "$2""#, "bash"])
        .arg(binary.parent().unwrap())
        .arg(script)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let lines = String::from_utf8_lossy(&output.stdout);
    lines.lines().map(str::to_owned).collect()
}

#[test]
fn w5_enter_and_exit_change_the_directory_of_a_shell() {
    for kind in KINDS {
        let env = repository();
        env.ok(&["task", "add", "work"]);
        let path = grow(&env, "a", kind);
        env.ok(&["task", "bind", "1", "a"]);
        let start = env.repo().join("it's here");
        fs::create_dir(&start).unwrap();
        let script = r#"
            cd "it's here"
            eval "$(weald enter a)"; pwd; echo "$WEALD_TREE $WEALD_TASK $WEALD_TREE_PATH $WEALD_MAIN"
            eval "$(weald exit --keep)"; pwd; echo "${WEALD_TREE-unset}"
            eval "$(weald enter a)"; echo dirty > config.py
            eval "$(weald exit --remove 2>/dev/null)"; pwd
            weald exit --remove >/dev/null 2>&1; echo "$?"
            eval "$(weald exit --remove --discard)"; pwd; echo "${WEALD_BACK-unset}""#;
        let (tree, start) = (path.display().to_string(), start.display().to_string());
        let variables = format!("a 1 {tree} {}", env.repo().display());
        let expected = [
            &tree, &variables, &start, "unset", &tree, "1", &start, "unset",
        ];
        assert_eq!(bash(&env, script), expected, "{kind}");
        assert!(!path.exists());
        let told = events(&env, "a");
        for kind in [
            "tree.entered",
            "tree.kept",
            "tree.remove.failed",
            "tree.trashed",
        ] {
            assert!(told.iter().any(|(known, _)| known == kind), "{kind}");
        }
        let restored = env.ok(&["trash", "restore", "a"]);
        assert!(restored["tree"]["last_entered_at"].is_string());
        assert_eq!(text(&path.join("config.py")), "dirty\n");
    }
}

#[test]
fn w5_shell_init_makes_enter_and_exit_work_by_themselves() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let other = grow(&env, "b", kind);
        let script = r#"
            eval "$(weald shell-init bash)"
            weald enter a; pwd
            weald enter b; pwd
            weald exit; pwd
            weald enter nobody 2>/dev/null; echo "$?"; pwd
            weald enter a; echo x > new; weald exit --remove 2>/dev/null; echo "$?"; pwd
            weald exit --remove --discard; pwd
            weald path b"#;
        let (tree, other) = (path.display().to_string(), other.display().to_string());
        let main = env.repo().display().to_string();
        let expected = [&tree, &other, &main, "4", &main, "1", &tree, &main, &other];
        assert_eq!(bash(&env, script), expected, "{kind}");
    }
}

#[test]
fn w6_paths_stay_in_the_tree() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let other = grow(&env, "b", kind);
        fs::create_dir(path.join("sub")).unwrap();
        symlink("/etc", path.join("etc")).unwrap();
        symlink("/nowhere/at/all", path.join("dangling")).unwrap();
        symlink("..", path.join("sub/up")).unwrap();
        symlink("../..", path.join("sub/out")).unwrap();
        let main = env.repo();
        let inside = |asked: &Path, found: &str| {
            let answer = env.weald(&["path", "a", "--check", asked.to_str().unwrap()]);
            assert_eq!(answer.code, 0, "{}: {answer:#?}", asked.display());
            let found = path.join(found).display().to_string();
            assert_eq!(answer.stdout.trim(), found, "{kind} {}", asked.display());
        };
        inside(Path::new("config.py"), "config.py");
        inside(Path::new("not/there/yet"), "not/there/yet");
        inside(&main.join("config.py"), "config.py");
        inside(&main.join("not/there/yet"), "not/there/yet");
        inside(&path.join("sub/new"), "sub/new");
        inside(Path::new("sub/up/config.py"), "sub/up/config.py");
        let refused = [
            PathBuf::from("../../etc/passwd"),
            PathBuf::from("sub/../../b/config.py"),
            PathBuf::from("not/there/../../../b"),
            PathBuf::from("etc/passwd"),
            PathBuf::from("dangling"),
            PathBuf::from("dangling/below"),
            PathBuf::from("sub/out/b/config.py"),
            PathBuf::from("/etc/passwd"),
            other.join("config.py"),
            path.join("../b/config.py"),
            main.join("../outside"),
            main.join(".git/config"),
            env.root().join("app.weald/a2/x"),
            PathBuf::from("new/".repeat(1025)),
        ];
        for asked in &refused {
            let args = ["path", "a", "--check", asked.to_str().unwrap()];
            env.refused(&args, 1, "outside_tree");
        }
        fs::remove_dir_all(&path).unwrap();
        for args in [
            &["path", "a"][..],
            &["path", "a", "--check", "config.py"],
            &[
                "path",
                "a",
                "--check",
                main.join("config.py").to_str().unwrap(),
            ],
        ] {
            env.refused(args, 4, "tree_missing");
        }
    }
}

#[test]
fn w7_one_file_three_contents() {
    let env = repository();
    let trees = KINDS.map(|kind| grow(&env, kind, kind));
    for (path, kind) in trees.iter().zip(KINDS) {
        let script = format!("echo {kind} > config.py; echo > only-{kind}");
        assert_eq!(env.weald(&["run", kind, "--", "sh", "-c", &script]).code, 0);
        assert_eq!(text(&path.join("config.py")), format!("{kind}\n"));
    }
    fs::write(env.repo().join("config.py"), "main\n").unwrap();
    let said = |path: &Path| git_in(&env, path, &["status", "--porcelain"]);
    assert_eq!(said(&env.repo()), " M config.py\n");
    for (path, kind) in trees.iter().zip(KINDS) {
        assert_eq!(text(&path.join("config.py")), format!("{kind}\n"));
        assert_eq!(said(path), format!(" M config.py\n?? only-{kind}\n"));
    }
    assert_eq!(text(&env.repo().join("config.py")), "main\n");
}

/// Leaves a tree from inside of it.
fn leave(env: &TestEnv, path: &Path) -> Value {
    let answer: Answer = weald_in(env, path, &["exit", "--json"]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    answer.json()
}

#[test]
fn s21_two_writers_share_a_task_by_scratch_trees() {
    for kind in KINDS {
        let env = repository();
        env.ok(&["task", "add", "work"]);
        let path = grow(&env, "a", kind);
        env.ok(&["task", "bind", "1", "a"]);
        let tip = commit(&env, &path, "shared", "of the task\n");
        let scratch = |name: &str| {
            let args = ["new", name, "--scratch", "--for", "a", "--kind", kind];
            let tree = env.ok(&args)["tree"].clone();
            assert_eq!(tree["base"]["commit"], json!(tip), "{kind} {name}");
            assert_eq!(tree["target"], "wt/a", "{kind} {name}");
            assert_eq!(tree["scratch_for"], "a");
            let path = PathBuf::from(tree["path"].as_str().unwrap());
            assert_eq!(text(&path.join("shared")), "of the task\n");
            path
        };
        let (one, two) = (scratch("one"), scratch("two"));
        let gone = leave(&env, &one);
        assert_eq!(gone["outcome"], "removed", "{kind}: {gone}");
        assert!(!one.exists());
        assert!(env.git(&["branch", "--list", "wt/one"]).is_empty());
        commit(&env, &two, "part", "of writer two\n");
        let stays = leave(&env, &two);
        assert_eq!(stays["outcome"], "left", "{kind}: {stays}");
        assert_eq!(stays["path"], json!(two));
        assert_eq!(stays["branch"], "wt/two");
        assert!(two.join("part").is_file());
        env.refused(&["rm", "two"], 1, "tree_unlanded");
        // It is gone without a word once the task's tree has its work.
        git_in(
            &env,
            &path,
            &["pull", "-q", "--ff-only", two.to_str().unwrap(), "wt/two"],
        );
        env.ok(&["status", "a"]);
        assert_eq!(env.ok(&["rm", "two"])["branch"], "deleted", "{kind}");
    }
}

#[test]
fn x8_the_level_is_told_by_doctor_and_by_every_run() {
    let env = repository();
    grow(&env, "a", "sealed");
    let findings = env.ok(&["doctor"]);
    let level = &findings["findings"][0];
    assert_eq!(level["code"], "sandbox_level");
    assert_eq!(level["what"], "the sandbox works at level full");
    let would = level["would"].as_str().unwrap();
    assert!(would.contains("does not cover: "), "{would}");
    let said = env.weald(&["doctor"]).stdout;
    assert!(
        said.contains("level full") && said.contains("does not cover"),
        "{said}"
    );
    for level in ["full", "landlock", "off"] {
        let answer = env.weald(&["run", "a", "--sandbox", level, "--", "true"]);
        assert_eq!(answer.code, 0, "{answer:#?}");
        let told = events(&env, "a");
        let (_, begun) = told
            .iter()
            .rfind(|(kind, _)| kind == "tree.run.before")
            .unwrap();
        let tree = &begun["data"]["after"]["tree"];
        assert_eq!(tree["runs"][0]["level"], level);
        assert_eq!(tree["runs"][0]["program"], "true");
        assert_eq!(env.ok(&["show", "a"])["tree"]["sandbox"], level);
        let shown = env.weald(&["show", "a"]).stdout;
        assert!(
            shown.contains("sandbox") && shown.contains(level),
            "{shown}"
        );
        match level {
            "landlock" => assert!(answer.stderr.contains("landlock does not cover: ")),
            "off" => assert!(
                answer.stderr.contains("running without a sandbox"),
                "{answer:#?}"
            ),
            _ => {}
        }
    }
    assert!(env.weald(&["list"]).stdout.contains("sandbox off"));
}

#[test]
fn x11_a_vanished_tree_never_answers_for_main() {
    for kind in KINDS {
        let env = repository();
        // Inside the main checkout git would find main by looking upward.
        env.ok(&["config", "set", "tree.path", "{repo}/.worktrees/{name}"]);
        env.ok(&["new", "a", "--kind", kind]);
        let path = env.repo().join(".worktrees/a");
        let script = "echo up; read line; git status; echo $?; git log; echo $?; git rev-parse HEAD; echo $?";
        let run = ["run", "a", "--", "sh", "-c", script];
        let mut command = env.weald_command(&run);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(out.next().unwrap().unwrap(), "up");
        fs::remove_dir_all(&path).unwrap();
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let said: Vec<_> = out.map(Result::unwrap).collect();
        assert_eq!(said, ["128", "128", "128"], "{kind}: git answered");
        child.wait().unwrap();
        let answer = env.weald(&["--json", "run", "a", "--", "git", "status"]);
        assert_eq!(
            (answer.code, answer.error_code().as_str()),
            (125, "tree_missing")
        );
        env.refused(&["diff", "a"], 4, "tree_missing");
        env.refused(&["path", "a"], 4, "tree_missing");
        env.refused(&["snapshot", "create", "a"], 4, "tree_missing");
        let shown = &env.ok(&["status", "a"])["tree"];
        assert_eq!(
            (&shown["exists"], &shown["dirty"]),
            (&json!(false), &json!("unknown"))
        );
    }
}

#[test]
fn x11_a_tree_without_its_repository_never_answers_for_main() {
    for kind in KINDS {
        let env = repository();
        env.ok(&["config", "set", "tree.path", "{repo}/.worktrees/{name}"]);
        env.ok(&["new", "a", "--kind", kind]);
        let path = env.repo().join(".worktrees/a");
        let script = "rm -rf .git; git status; echo $?; git rev-parse --show-toplevel; echo $?";
        let answer = env.weald(&["run", "a", "--", "sh", "-c", script]);
        assert_eq!(answer.stdout, "128\n128\n", "{kind}: {answer:#?}");
        let shown = &env.ok(&["status", "a"])["tree"];
        assert_eq!(shown["dirty"], "unknown", "{kind}");
        env.refused(&["rm", "a"], 1, "tree_unknown");
        assert_ne!(env.weald(&["diff", "a"]).code, 0);
        let run = env.weald(&["run", "a", "--", "git", "status"]);
        assert_ne!(run.code, 0, "{kind}: {run:#?}");
        assert!(!run.stdout.contains("On branch"), "{kind}: {run:#?}");
        let inside = weald_in(&env, &path, &["status", "--json"]);
        assert!(!inside.stdout.contains("\"clean\""), "{inside:#?}");
        assert!(path.join("config.py").is_file());
    }
}
