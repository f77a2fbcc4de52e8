//! Snapshots: on a timer while a command runs, before risky steps, bounded, thinned, and put back.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_remove::{KINDS, commit, git_in, grow, repository};

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path.as_ref()).unwrap_or_else(|error| format!("{error}"))
}

fn snapshots(env: &TestEnv) -> Vec<Value> {
    let listed = env.ok(&["snapshot", "list", "a"]);
    listed["snapshots"].as_array().unwrap().clone()
}

fn reasons(env: &TestEnv) -> Vec<String> {
    let listed = snapshots(env);
    let reasons = listed.iter().map(|one| one["reason"].as_str().unwrap());
    reasons.map(str::to_owned).collect()
}

/// Waits until something is so; the test fails if it never is.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A script that runs in a tree with a short timer, and says and hears lines.
struct Script(Child, std::io::Lines<BufReader<std::process::ChildStdout>>);

impl Script {
    fn start(env: &TestEnv, script: &str) -> Self {
        Self::spawn(Self::command(env, script))
    }

    fn command(env: &TestEnv, script: &str) -> Command {
        let args = [
            "--set",
            "snapshot.every=100ms",
            "run",
            "a",
            "--",
            "sh",
            "-c",
        ];
        env.weald_command(&[&args[..], &[script]].concat())
    }

    fn spawn(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap()).lines();
        Self(child, out)
    }

    #[track_caller]
    fn says(&mut self, line: &str) {
        assert_eq!(self.1.next().unwrap().unwrap(), line);
    }

    fn hears(&mut self) {
        self.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// Its exit code, and what weald said.
    fn ends(mut self) -> (Option<i32>, String) {
        drop(self.0.stdin.take());
        let ended = self.0.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        (ended.status.code(), said)
    }
}

/// A git that counts how often the host starts it.
struct CountedGit(PathBuf);

impl CountedGit {
    fn new(env: &TestEnv) -> Self {
        let tools = env.root().join("tools");
        fs::create_dir(&tools).unwrap();
        let log = tools.join("starts");
        fs::write(&log, "").unwrap();
        let real = env
            .command("sh")
            .args(["-c", "command -v git"])
            .output()
            .unwrap();
        let real = String::from_utf8(real.stdout).unwrap();
        // In a sandbox there is nothing to write.
        let script = format!(
            "#!/bin/sh\n{{ echo >> {}; }} 2>/dev/null\nexec {} \"$@\"\n",
            log.display(),
            real.trim()
        );
        fs::write(tools.join("git"), script).unwrap();
        fs::set_permissions(tools.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        Self(tools)
    }

    fn search_path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.0.display())
    }

    fn count(&self) -> usize {
        text(self.0.join("starts")).lines().count()
    }
}

#[test]
fn z4_a_reset_and_a_deletion_lose_nothing_that_is_older_than_the_timer() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let script = "echo changed > config.py; mkdir -p deep/er; echo new > deep/er/new; \
                      echo staged > staged; git add staged; echo up; read line; \
                      git reset -q --hard; rm -rf deep config.py; echo lost; read line";
        let mut run = Script::start(&env, script);
        run.says("up");
        let holds = |file: &str| {
            let listed = snapshots(&env);
            let vault = env.repo().join(".git/weald/vault");
            let last = listed
                .last()
                .map(|one| one["commit"].as_str().unwrap().to_owned());
            last.is_some_and(|commit| {
                let name = format!("{commit}:files/{file}");
                crate::trees_remove::try_git(&env, &vault, &["cat-file", "-e", &name]).0
            })
        };
        until("a snapshot", || holds("staged"));
        let kept = snapshots(&env).last().unwrap()["id"].as_u64().unwrap();
        run.hears();
        run.says("lost");
        assert!(!path.join("deep").exists() && !path.join("staged").exists());
        run.hears();
        assert_eq!(run.ends(), (Some(0), said_about(kind)), "{kind}");
        assert!(reasons(&env).iter().all(|reason| reason == "timer"));
        let back = env.ok(&["snapshot", "restore", "a", &kept.to_string()]);
        assert_eq!(back["before"]["reason"], "before restore");
        assert_eq!(text(path.join("config.py")), "changed\n");
        assert_eq!(text(path.join("deep/er/new")), "new\n");
        assert_eq!(text(path.join("staged")), "staged\n");
        let status = git_in(&env, &path, &["status", "--porcelain"]);
        assert_eq!(status, " M config.py\nA  staged\n?? deep/\n", "{kind}");
    }
}

/// What a run says without being asked.
fn said_about(kind: &str) -> String {
    match kind {
        "linked" => {
            "warning: a is a linked worktree: the run can write the repository's shared .git\n"
        }
        _ => "",
    }
    .to_owned()
}

#[test]
fn z4_what_did_not_change_is_not_taken_again() {
    // Most of it is waiting for what must not happen, so both kinds wait at once.
    std::thread::scope(|scope| {
        for kind in KINDS {
            scope.spawn(move || takes_only_what_changed(kind));
        }
    });
}

fn takes_only_what_changed(kind: &str) {
    let env = repository();
    let path = grow(&env, "a", kind);
    let long = "for i in 1 2 3 4 5 6 7 8; do echo $i > churn.log; git status -s >/dev/null; sleep 0.2; done";
    let run = |script: &str| Script::start(&env, script).ends();
    // Until something was kept, however long that takes.
    let keeps = |count: usize| {
        let mut run = Script::start(&env, "echo up; read line");
        run.says("up");
        until("a snapshot", || snapshots(&env).len() == count);
        run.hears();
        assert_eq!(run.ends().0, Some(0));
    };
    assert_eq!(run(long).0, Some(0));
    assert_eq!(snapshots(&env), [] as [Value; 0], "{kind}: nothing to keep");
    fs::write(path.join("config.py"), "changed\n").unwrap();
    keeps(1);
    assert_eq!(reasons(&env), ["timer"], "{kind}");
    // The next run begins with what the last one left.
    assert_eq!(run(long).0, Some(0));
    assert_eq!(snapshots(&env).len(), 1, "{kind}");
    // The same files, but not the same index.
    git_in(&env, &path, &["add", "config.py"]);
    keeps(2);
    let off = ["--set", "snapshot.every=none", "run", "a", "--", "sh", "-c"];
    let more = "echo 2 > config.py; sleep 0.5";
    assert_eq!(env.weald(&[&off[..], &[more]].concat()).code, 0);
    assert_eq!(snapshots(&env).len(), 2, "{kind}: switched off");
}

#[test]
fn z4_a_tree_that_is_left_alone_starts_no_git() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    fs::write(path.join("config.py"), "changed\n").unwrap();
    let starts = CountedGit::new(&env);
    let mut command = Script::command(&env, "echo up; read line");
    command.env("PATH", starts.search_path());
    let mut run = Script::spawn(command);
    run.says("up");
    until("a snapshot", || snapshots(&env).len() == 1);
    // Times of files are believed when they are some seconds old; then a second is worth ten ticks.
    until("a second without git", || {
        let before = starts.count();
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_millis(50));
        }
        starts.count() == before
    });
    fs::write(path.join("config.py"), "again\n").unwrap();
    until("a second one", || snapshots(&env).len() == 2);
    run.hears();
    assert_eq!(run.ends().0, Some(0));
}

#[test]
fn z4_a_snapshot_that_fails_does_not_disturb_the_run() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    let script = "mv .git hidden; echo up; read line; mv hidden .git; echo back; read line; exit 7";
    let mut run = Script::start(&env, script);
    run.says("up");
    // Each tick makes it anew: the second one proves that a whole one saw no repository.
    let turn = env.private().join("workshop/snapshot-1");
    for _ in 0..2 {
        let _ = fs::remove_file(&turn);
        until("a tick", || turn.exists());
    }
    run.hears();
    run.says("back");
    fs::write(path.join("later"), "l\n").unwrap();
    until("the next one", || !snapshots(&env).is_empty());
    run.hears();
    let (code, said) = run.ends();
    assert_eq!(code, Some(7), "{said}");
    assert!(said.contains("could not take a snapshot of"), "{said}");
}

#[test]
fn z4_large_files_are_left_out_named_and_never_overwritten() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let (small, large) = ("s".repeat(900), "L".repeat(5000));
        fs::write(path.join("small"), &small).unwrap();
        fs::write(path.join("large"), &large).unwrap();
        fs::write(path.join("config.py"), &large).unwrap();
        env.ok(&["config", "set", "snapshot.file_limit", "1K"]);
        let taken = env.ok(&["snapshot", "create", "a"]);
        let left_out = json!(["config.py", "large"]);
        assert_eq!(taken["snapshot"]["left_out"], left_out, "{kind}");
        assert_eq!(snapshots(&env)[0]["left_out"], left_out, "in the list, too");
        let said = env.weald(&["snapshot", "list", "a"]).stdout;
        assert!(said.contains("left out: config.py"), "{said}");
        fs::remove_file(path.join("small")).unwrap();
        env.ok(&["snapshot", "restore", "a", "1"]);
        assert_eq!(text(path.join("small")), small);
        assert_eq!(text(path.join("large")), large, "not touched");
        // HEAD's version is in its place; what no snapshot holds is beside it.
        assert_eq!(text(path.join("config.py")), "base\n");
        assert_eq!(text(path.join("config.py.before-restore")), large);
    }
}

#[test]
fn z4_a_snapshot_is_bounded_as_a_whole() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    for number in 0..10 {
        fs::write(path.join(format!("f{number}")), "x".repeat(1000)).unwrap();
    }
    env.ok(&["config", "set", "snapshot.limit", "4K"]);
    let taken = env.ok(&["snapshot", "create", "a"]);
    let left_out = taken["snapshot"]["left_out"].as_array().unwrap();
    assert!((5..=8).contains(&left_out.len()), "{taken}");
    assert_eq!(
        &snapshots(&env)[0]["left_out"],
        &taken["snapshot"]["left_out"]
    );
}

#[test]
fn z4_older_snapshots_are_thinned_and_the_vault_prunes_nothing() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    for number in 1..=26 {
        fs::write(path.join("config.py"), format!("{number}\n")).unwrap();
        let taken = env.ok(&["snapshot", "create", "a"]);
        assert_eq!(taken["snapshot"]["id"], number, "numbers go on");
        if number == 1 {
            let commit = taken["snapshot"]["commit"].as_str().unwrap().to_owned();
            fs::write(env.root().join("first"), commit).unwrap();
        }
    }
    let ids: Vec<_> = snapshots(&env)
        .iter()
        .map(|one| one["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids[ids.len() - 20..], (7..=26).collect::<Vec<_>>());
    // One an hour of the rest; the hour may have ended meanwhile.
    assert!((21..=22).contains(&ids.len()), "{ids:?}");
    let vault = env.repo().join(".git/weald/vault");
    let first = text(env.root().join("first"));
    git_in(&env, &vault, &["cat-file", "-e", &first]);
    env.refused(&["snapshot", "restore", "a", "2"], 4, "no_snapshot");
    env.ok(&["snapshot", "restore", "a", "7"]);
    assert_eq!(text(path.join("config.py")), "7\n");
}

#[test]
fn z4_one_is_taken_before_each_risky_step_and_only_then() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        fs::write(path.join("draft"), "d\n").unwrap();
        assert_eq!(env.ok(&["sync", "a"])["outcome"], "up_to_date");
        assert_eq!(snapshots(&env).len(), 0, "{kind}: there was nothing to do");
        commit(&env, &env.repo(), "more", "m\n");
        assert_eq!(env.ok(&["sync", "a"])["outcome"], "merged");
        assert_eq!(reasons(&env), ["before sync"], "{kind}");
        env.ok(&["snapshot", "restore", "a", "1"]);
        assert_eq!(reasons(&env), ["before sync", "before restore"], "{kind}");
        let gone = env.ok(&["rm", "a", "--discard"]);
        let kept = gone["tree"]["trash"]["snapshot"]
            .as_str()
            .unwrap()
            .to_owned();
        env.ok(&["trash", "restore", "a"]);
        let last = snapshots(&env).last().unwrap().clone();
        assert_eq!(
            (&last["reason"], &last["commit"]),
            (&json!("before removal"), &json!(kept))
        );
    }
}

#[test]
fn z4_repositories_in_a_tree_are_walked_without_what_they_ignore() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    let nested = path.join("tools/inner");
    fs::create_dir_all(nested.join("deeper")).unwrap();
    for repository in [&nested, &nested.join("deeper")] {
        git_in(&env, repository, &["init", "-q", "-b", "main"]);
        fs::write(repository.join(".gitignore"), "junk\n").unwrap();
        fs::write(repository.join("tracked"), "1\n").unwrap();
        git_in(&env, repository, &["add", "tracked"]);
        git_in(&env, repository, &["commit", "-q", "-m", "one"]);
        fs::write(repository.join("tracked"), "2\n").unwrap();
        fs::write(repository.join("untracked"), "u\n").unwrap();
        fs::write(repository.join("junk"), "j\n").unwrap();
    }
    let commit = env.ok(&["snapshot", "create", "a"])["snapshot"]["commit"].clone();
    let vault = env.repo().join(".git/weald/vault");
    let tree = format!("{}:files/tools", commit.as_str().unwrap());
    let held = git_in(&env, &vault, &["ls-tree", "-r", "--name-only", &tree]);
    let expected = [
        "deeper/.gitignore",
        "deeper/tracked",
        "deeper/untracked",
        "tracked",
        "untracked",
    ];
    let mut expected: Vec<_> = expected
        .iter()
        .map(|name| format!("inner/{name}"))
        .collect();
    expected.insert(0, "inner/.gitignore".to_owned());
    assert_eq!(held.lines().collect::<Vec<_>>(), expected);
    fs::remove_dir_all(path.join("tools")).unwrap();
    env.ok(&["snapshot", "restore", "a", "1"]);
    assert_eq!(text(nested.join("deeper/tracked")), "2\n");
    assert_eq!(text(nested.join("untracked")), "u\n");
}

#[test]
fn z4_the_difference_to_a_snapshot_and_between_two() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        env.refused(&["snapshot", "diff", "a"], 4, "no_snapshot");
        fs::write(path.join("new"), "1\n2\n").unwrap();
        env.ok(&["snapshot", "create", "a"]);
        let nothing = env.ok(&["snapshot", "diff", "a"]);
        assert_eq!(
            (&nothing["files"], &nothing["truncated"]),
            (&json!([]), &json!(false))
        );
        fs::write(path.join("new"), "1\n3\n3\n").unwrap();
        fs::remove_file(path.join("config.py")).unwrap();
        fs::write(path.join("ignored.log"), "x").unwrap();
        let file = |path: &str, status: &str, added: u64, deleted: u64| json!({"path": path, "status": status, "state": "snapshot", "added": added, "deleted": deleted});
        let changed = json!([
            file("config.py", "deleted", 0, 1),
            file("new", "modified", 2, 1)
        ]);
        assert_eq!(
            env.ok(&["snapshot", "diff", "a"])["files"],
            changed,
            "{kind}"
        );
        env.ok(&["snapshot", "create", "a"]);
        fs::write(path.join("later"), "x").unwrap();
        assert_eq!(
            env.ok(&["snapshot", "diff", "a", "1", "2"])["files"],
            changed
        );
        let back = env.weald(&["snapshot", "diff", "a", "2", "1"]).stdout;
        assert!(back.contains("+base\n") && back.contains("-3\n"), "{back}");
        let names = env.weald(&["snapshot", "diff", "a", "1", "--name-only"]);
        assert_eq!(names.stdout, "config.py\nlater\nnew\n");
        env.refused(&["snapshot", "diff", "a", "1", "9"], 4, "no_snapshot");
        assert_eq!(snapshots(&env).len(), 2, "a difference takes none");
    }
}

#[test]
fn z4_a_list_starts_as_many_processes_for_many_as_for_few() {
    let env = repository();
    grow(&env, "a", "sealed");
    let counted = CountedGit::new(&env);
    let starts = || {
        let before = counted.count();
        let mut command = env.weald_command(&["snapshot", "list", "a"]);
        command.env("PATH", counted.search_path());
        assert!(command.output().unwrap().status.success());
        counted.count() - before
    };
    env.ok(&["snapshot", "create", "a"]);
    let few = starts();
    for _ in 0..6 {
        env.ok(&["snapshot", "create", "a"]);
    }
    assert!(few > 0 && starts() == few, "{few}");
}
