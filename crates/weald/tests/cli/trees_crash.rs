//! Nothing is lost: kills at any moment, and three histories under a looping gc.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use weald_testkit::{TestEnv, full_scale};

use crate::env;
use crate::sandbox::say;
use crate::trees_hostile::assert_no_process;

/// Every file below a directory: kind, mode and content.
fn manifest(root: &Path, skip: &[&str]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if skip.iter().any(|skip| name.starts_with(skip)) {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            let content = if meta.is_dir() {
                open.push(path);
                b"directory".to_vec()
            } else if meta.is_symlink() {
                fs::read_link(&path)
                    .unwrap()
                    .as_os_str()
                    .as_bytes()
                    .to_vec()
            } else {
                let mut content = meta.permissions().mode().to_be_bytes().to_vec();
                content.extend(fs::read(&path).unwrap());
                content
            };
            found.insert(name, content);
        }
    }
    found
}

/// Waits until no process of this environment runs any more: what a killed weald had started ends by itself.
pub fn settle(env: &TestEnv) {
    assert_no_process(env, "the kill");
}

fn identity(env: &TestEnv) {
    env.git(&["config", "user.name", "Test"]);
    env.git(&["config", "user.email", "test@example.com"]);
}

fn git_in(env: &TestEnv, directory: &Path, args: &[&str]) -> String {
    let output = env
        .command("git")
        .arg("-C")
        .arg(directory)
        .args(args)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {args:?}: {told}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What `doctor` finds, besides what it always tells.
fn findings(answer: &Value) -> Vec<Value> {
    let all = answer["findings"].as_array().unwrap();
    all.iter()
        .filter(|finding| finding["code"] != "sandbox_level")
        .cloned()
        .collect()
}

/// One repair mends everything, a second finds nothing, and plain git works.
fn heal(env: &TestEnv, what: &str) {
    settle(env);
    let first = env.weald(&["doctor", "--fix", "--json"]);
    assert_eq!(first.code, 0, "{what}: {first:#?}");
    let second = env.ok(&["doctor", "--fix"]);
    assert_eq!(
        findings(&second),
        Vec::<Value>::new(),
        "{what}, after {first:#?}"
    );
    env.git(&["worktree", "list", "--porcelain"]);
    env.git(&["status", "--porcelain"]);
    env.git(&["rev-list", "--objects", "--all", "--quiet"]);
}

/// Starts a command, kills it after `delay`, waits for its end.
fn killed(env: &TestEnv, args: &[&str], delay: Duration) {
    use std::process::Stdio;
    let mut child = env
        .weald_command(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    thread::sleep(delay);
    let _ = child.kill();
    child.wait().unwrap();
}

/// A reproducible choice of moments.
struct Moments(u64);

impl Moments {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % below
    }
}

fn kill_storm(kind: &str, rounds: u64, seed: u64) {
    say(&format!("seed {seed}, {rounds} kills, {kind}"));
    let env = env();
    identity(&env);
    fs::write(env.repo().join("file"), "one\n").unwrap();
    fs::write(env.repo().join(".gitignore"), "*.log\n").unwrap();
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "files"]);
    env.ok(&["new", "work", "--kind", kind]);
    let tree = env.root().join("app.weald/work");
    fs::write(tree.join("untracked"), "mine\n").unwrap();
    fs::write(tree.join("ignored.log"), "mine, too\n").unwrap();
    fs::write(tree.join("staged"), "staged\n").unwrap();
    git_in(&env, &tree, &["add", "staged"]);
    let mut moments = Moments(seed);
    let mut tips = Vec::new();
    for round in 0..rounds {
        let delay = Duration::from_micros(500 * moments.next(180));
        let expected = manifest(&tree, &[".git"]);
        let head = git_in(&env, &tree, &["rev-parse", "HEAD"])
            .trim()
            .to_owned();
        let what = format!("round {round}, {delay:?}");
        match round % 4 {
            0 => {
                let name = format!("new{round}");
                killed(&env, &["new", &name, "--kind", kind], delay);
                heal(&env, &format!("new, {what}"));
                let again = env.weald(&["ensure", &name, "--kind", kind, "--json"]);
                assert_eq!(again.code, 0, "{what}: {again:#?}");
                env.ok(&["rm", &name]);
            }
            1 => {
                let text = format!("commit {round}");
                git_in(
                    &env,
                    &tree,
                    &["commit", "-q", "--only", "--allow-empty", "-m", &text],
                );
                killed(&env, &["status", "work"], delay);
                heal(&env, &format!("import, {what}"));
                env.ok(&["status", "work"]);
                tips.push(
                    git_in(&env, &tree, &["rev-parse", "HEAD"])
                        .trim()
                        .to_owned(),
                );
            }
            _ => {
                killed(&env, &["rm", "work", "--discard"], delay);
                heal(&env, &format!("rm, {what}"));
                if !tree.exists() {
                    let delay = Duration::from_micros(500 * moments.next(120));
                    killed(&env, &["trash", "restore", "work"], delay);
                    heal(&env, &format!("restore, {what}, {delay:?}"));
                }
                if !tree.exists() {
                    env.ok(&["trash", "restore", "work"]);
                }
                assert_eq!(
                    git_in(&env, &tree, &["rev-parse", "HEAD"]).trim(),
                    head,
                    "{what}"
                );
            }
        }
        assert_eq!(manifest(&tree, &[".git"]), expected, "{what}");
        assert_eq!(
            git_in(&env, &tree, &["diff", "--cached", "--name-only"]),
            "staged\n"
        );
    }
    for tip in tips {
        env.git(&["merge-base", "--is-ancestor", &tip, "wt/work"]);
    }
}

#[test]
fn z1_random_kills_of_new_import_rm_and_restore_lose_nothing() {
    let rounds = if full_scale() { 140 } else { 28 };
    kill_storm("sealed", rounds, 11);
}

#[test]
fn z1_random_kills_lose_nothing_of_linked_trees() {
    let rounds = if full_scale() { 60 } else { 12 };
    kill_storm("linked", rounds, 23);
}

/// A history with files that people really have: links, programs, other line ends, odd names, many commits.
fn history(env: &TestEnv, files: usize, commits: usize) {
    let repo = env.repo();
    let seven = "#!/bin/sh\necho 7\n";
    fs::write(repo.join("run.sh"), seven).unwrap();
    fs::set_permissions(repo.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("run.sh", repo.join("link")).unwrap();
    std::os::unix::fs::symlink("/nowhere", repo.join("dangling")).unwrap();
    fs::write(
        repo.join(".gitattributes"),
        "*.txt text eol=crlf\n*.bin -text\n",
    )
    .unwrap();
    fs::write(repo.join("dos.txt"), "a\r\nb\r\n").unwrap();
    fs::write(repo.join("bytes.bin"), [0, 13, 10, 255]).unwrap();
    fs::write(repo.join("na\u{ef}ve \"q\" \t name"), "odd\n").unwrap();
    for number in 0..files {
        let directory = repo.join(format!("d{}/e{}", number % 17, number % 5));
        fs::create_dir_all(&directory).unwrap();
        fs::write(
            directory.join(format!("f{number}.rs")),
            format!("// {number}\n").repeat(20),
        )
        .unwrap();
    }
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "files"]);
    for number in 0..commits {
        fs::write(repo.join("counter"), number.to_string()).unwrap();
        env.git(&["add", "counter"]);
        env.git(&["commit", "-qm", &format!("c{number}")]);
        if number % 10 == 0 {
            env.git(&["tag", "-a", &format!("v{number}"), "-m", "tag"]);
        }
    }
}

/// Ends a looping thread, also when the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The whole life of a tree, compared with what `git worktree add` makes, while main is packed over and over.
fn life_under_gc(kind: &str, files: usize, commits: usize) {
    let env = env();
    identity(&env);
    history(&env, files, commits);
    env.git(&["worktree", "add", "-q", "../plain", "-b", "plain"]);
    let plain = manifest(&env.root().join("plain"), &[".git"]);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _end = Ends(&stop);
        scope.spawn(|| {
            // A linked tree writes main's own objects, where plain git is not safe from its own gc.
            while kind == "sealed" && !stop.load(Ordering::Relaxed) {
                env.git(&["repack", "-adq"]);
                env.git(&["gc", "-q", "--prune=now"]);
            }
        });
        let lives = if full_scale() { 6 } else { 2 };
        for number in 0..lives {
            let name = format!("t{number}");
            env.ok(&["new", &name, "--kind", kind]);
            let tree = env.root().join("app.weald").join(&name);
            assert_eq!(manifest(&tree, &[".git"]), plain, "as git makes it");
            assert_eq!(git_in(&env, &tree, &["status", "--porcelain"]), "");
            let work =
                "echo more >> counter && git commit -qam more && echo new > new && git stash -qu";
            let run = env.weald(&["run", &name, "--", "sh", "-c", work]);
            assert_eq!(run.code, 0, "{run:#?}");
            env.ok(&["snapshot", "create", &name]);
            fs::write(tree.join("late"), "late").unwrap();
            let before = manifest(&tree, &[".git"]);
            env.ok(&["rm", &name, "--discard"]);
            env.ok(&["trash", "restore", &name]);
            assert_eq!(manifest(&tree, &[".git"]), before);
            let head = git_in(&env, &tree, &["rev-parse", "HEAD"]);
            env.git(&[
                "merge-base",
                "--is-ancestor",
                head.trim(),
                &format!("wt/{name}"),
            ]);
            git_in(&env, &tree, &["rev-list", "--objects", "--all", "--quiet"]);
        }
    });
    env.git(&["fsck", "--connectivity-only"]);
    env.git(&[
        "--git-dir",
        ".git/weald/vault",
        "rev-list",
        "--objects",
        "--all",
        "--quiet",
    ]);
    assert_eq!(findings(&env.ok(&["doctor"])), Vec::<Value>::new());
}

#[test]
fn x4_a_small_history_lives_through_gc() {
    life_under_gc("sealed", 10, 3);
}

#[test]
fn x4_a_middle_history_lives_through_gc() {
    life_under_gc("sealed", 400, 40);
    life_under_gc("linked", 100, 12);
}

#[test]
fn x4_a_larger_history_lives_through_gc() {
    life_under_gc("sealed", if full_scale() { 10_000 } else { 2_000 }, 60);
}
