//! The home inside a sandbox: it can be written, nothing of it reaches the host, and secrets are not in it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use weald_core::secrets::hidden_paths;
use weald_testkit::TestEnv;

use crate::sandbox::{as_user, ordinary_home};
use crate::trees_remove::{KINDS, commit, git_in, grow, repository};

pub const SECRET: &str = "hunter2";

pub fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A file in every store of secrets that weald knows.
fn secrets_in(home: &Path) -> Vec<PathBuf> {
    let files = hidden_paths(&[]).map(|path| {
        // Stores are files or directories; here every other directory-like one has a file in it.
        let is_file = [
            ".json",
            ".toml",
            ".xml",
            ".properties",
            "rc",
            "_history",
            "credentials",
        ]
        .iter()
        .any(|end| path.ends_with(end));
        match is_file {
            true => home.join(path),
            false => home.join(path).join("key"),
        }
    });
    let files: Vec<_> = files.collect();
    for file in &files {
        write(file, SECRET);
    }
    files
}

/// A script that prints what it can read of these files.
fn reading(files: &[PathBuf]) -> String {
    let names = files.iter().map(|file| format!("'{}'", file.display()));
    format!(
        "cat {} 2>/dev/null; true",
        names.collect::<Vec<_>>().join(" ")
    )
}

fn run(env: &TestEnv, name: &str, script: &str) -> String {
    let answer = env.weald(&["run", name, "--", "sh", "-c", script]);
    assert_eq!(answer.code, 0, "{script}: {answer:#?}");
    answer.stdout
}

#[test]
fn i1_the_home_can_be_written_and_nothing_of_it_reaches_the_host() {
    for kind in KINDS {
        let env = repository();
        grow(&env, "a", kind);
        let home = env.home();
        write(&home.join(".config/tool/settings"), "host\n");
        write(&home.join(".gitconfig"), "[user]\n\tname = Host\n");
        let before = manifest(&home);
        let script = "set -e; echo x > ~/.newrc; mkdir -p ~/.cargo/bin ~/.cache/deep/er; echo b > ~/.cargo/bin/tool; \
            echo changed > ~/.config/tool/settings; git config --global alias.st status; rm -f ~/.gitconfig.gone; \
            mv ~/.newrc ~/.renamed; echo c > ~/.cache/deep/er/file; chmod 700 ~/.config/tool; cat ~/.config/tool/settings";
        assert_eq!(run(&env, "a", script), "changed\n", "{kind}");
        assert_eq!(
            manifest(&home),
            before,
            "{kind}: the host's home is as it was"
        );
        // It is there in the next run of this worktree, and in no other.
        let look = "cat ~/.renamed ~/.cargo/bin/tool ~/.config/tool/settings 2>/dev/null; git config --global alias.st; true";
        assert_eq!(run(&env, "a", look), "x\nb\nchanged\nstatus\n", "{kind}");
        // Whatever the program is called.
        let file = home.join(".renamed");
        let read = env.weald(&["run", "a", "--", "cat", file.to_str().unwrap()]);
        assert_eq!(read.stdout, "x\n", "{kind}: {read:#?}");
        grow(&env, "b", kind);
        assert_eq!(run(&env, "b", look), "host\n", "{kind}");
        // What the host changed since is seen, unless the run has changed it itself.
        write(&home.join(".config/tool/settings"), "newer\n");
        write(&home.join(".config/tool/other"), "other\n");
        let again = "cat ~/.config/tool/settings ~/.config/tool/other";
        assert_eq!(run(&env, "b", again), "newer\nother\n", "{kind}");
        assert_eq!(run(&env, "a", again), "changed\nother\n", "{kind}");
    }
}

/// Every file below a folder but weald's own, with its content and mode.
fn manifest(home: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let (mut open, mut found) = (vec![home.to_owned()], Vec::new());
    while let Some(path) = open.pop() {
        let entry = fs::symlink_metadata(&path).unwrap();
        if path.ends_with(".cache/weald") || path.ends_with(".local/state/weald") {
            continue;
        }
        if entry.is_dir() {
            open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        // weald's own folders bring their parents along.
        if entry.is_file() {
            found.push((
                path.clone(),
                entry.permissions().mode(),
                fs::read(&path).unwrap(),
            ));
        }
    }
    found.sort();
    found
}

#[test]
fn x26_a_new_worktree_of_the_same_name_starts_with_a_clean_home() {
    let env = repository();
    grow(&env, "a", "sealed");
    run(&env, "a", "mkdir -p ~/.npm && echo poison > ~/.npm/cached");
    env.ok(&["rm", "a"]);
    let layers = env.home().join(".cache/weald/layers");
    assert_eq!(
        fs::read_dir(&layers).unwrap().count(),
        1,
        "a restored worktree finds it again"
    );
    env.ok(&["trash", "purge", "--older-than", "0", "--apply"]);
    assert_eq!(
        fs::read_dir(&layers).unwrap().count(),
        0,
        "it goes with the worktree"
    );
    grow(&env, "a", "sealed");
    assert_eq!(run(&env, "a", "cat ~/.npm/cached 2>/dev/null; true"), "");
}

#[test]
fn x30_secrets_are_hidden_in_runs_visits_set_up_and_gates() {
    let env = repository();
    let files = secrets_in(&env.home());
    let read = reading(&files);
    // The test of the test.
    let free = env.command("sh").args(["-c", &read]).output().unwrap();
    let free = String::from_utf8(free.stdout).unwrap();
    assert_eq!(free.matches(SECRET).count(), files.len());
    env.ok(&[
        "config",
        "set",
        "sandbox.write",
        env.root().join("out").to_str().unwrap(),
    ]);
    fs::create_dir(env.root().join("out")).unwrap();
    let out = env.root().join("out/leaked");
    let collect = format!(
        "( {read} ) >> {}; echo looked >> {}",
        out.display(),
        out.display()
    );
    env.ok(&["config", "set", "setup.commands", &collect]);
    env.ok(&["config", "set", "gate.command", &collect]);
    let tree = grow(&env, "a", "sealed");
    assert_eq!(run(&env, "a", &read), "");
    // A filter of the worktree's own runs when weald looks at it.
    git_in(
        &env,
        &tree,
        &[
            "config",
            "filter.leak.clean",
            &format!("( {read} ); echo looked; cat >/dev/null"),
        ],
    );
    fs::write(tree.join(".git/info/attributes"), "*.x filter=leak\n").unwrap();
    commit(&env, &tree, "file.x", "x\n");
    let cleaned = git_in(&env, &tree, &["show", "HEAD:file.x"]);
    assert!(
        cleaned.contains(SECRET),
        "the filter reads when the user runs it"
    );
    fs::write(tree.join("new.x"), "y\n").unwrap();
    env.ok(&["snapshot", "create", "a"]);
    env.ok(&["land", "a", "--commit=all"]);
    let landed = env.git(&["show", "main:new.x"]);
    assert_eq!(landed, "looked\n", "the commit that weald makes");
    let seen = fs::read_to_string(&out).unwrap();
    assert!(
        !seen.contains(SECRET) && seen.matches("looked").count() >= 2,
        "{seen}"
    );
}

#[test]
fn x30_secrets_are_hidden_at_level_landlock_and_as_an_ordinary_user() {
    let Some(home) = ordinary_home("x30-user") else {
        return;
    };
    let user_home = home.join("home");
    let files = secrets_in(&user_home);
    write(&user_home.join("plain"), "plain\n");
    write(&user_home.join(".config/plain/file"), "plain\n");
    let (tree, tmp) = (home.join("tree"), home.join("tmp"));
    for folder in [&tree, &tmp] {
        fs::create_dir_all(folder).unwrap();
    }
    std::process::Command::new("chmod")
        .args(["-R", "a+rwX"])
        .arg(&home)
        .status()
        .unwrap();
    let script = format!("{}; cat ~/plain ~/.config/plain/file", reading(&files));
    for level in ["full", "landlock"] {
        let mut command = std::process::Command::new(home.join("weald"));
        command.env("HOME", &user_home).env("TMPDIR", &tmp);
        command.current_dir(&home);
        command
            .args(["sandbox", "exec", "--level", level, "--write"])
            .arg(&tree);
        command.args(["--", "sh", "-c", &script]);
        let output = as_user(&mut command).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(said, "plain\nplain\n", "{level}: {output:?}");
    }
}

#[test]
fn x30_variables_that_look_like_secrets_stay_out_and_the_user_reveals_by_name() {
    let env = repository();
    grow(&env, "a", "sealed");
    write(&env.home().join(".aws/credentials"), SECRET);
    let run = |command: &[&str]| {
        let args = [&["run", "a", "--"], command].concat();
        let is_whole = command[0] == "run";
        let mut command = env.weald_command(if is_whole { command } else { &args });
        for name in [
            "GITHUB_TOKEN",
            "AWS_ACCESS_KEY_ID",
            "MY_SERVICE_KEY",
            "ANTHROPIC_API_KEY",
        ] {
            command.env(name, SECRET);
        }
        let output = command.env("EDITOR", "vi").output().unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned())
    };
    let shown = ["sh", "-c", "env; cat ~/.aws/credentials"];
    let [stdout, stderr] = run(&shown);
    assert!(
        stdout.contains("EDITOR=vi") && !stdout.contains(SECRET),
        "{stdout}"
    );
    // The first run says so, in one line, and how to change it.
    let line = stderr
        .lines()
        .find(|line| line.contains("can't see"))
        .expect("a line");
    for name in [
        "aws",
        "GITHUB_TOKEN",
        "AWS_ACCESS_KEY_ID",
        "weald config set sandbox.reveal",
    ] {
        assert!(line.contains(name), "{line}");
    }
    let [_, stderr] = run(&shown);
    assert!(!stderr.contains("can't see"), "said once: {stderr}");
    grow(&env, "b", "sealed");
    let [_, stderr] = run(&["run", "b", "--", "true"]);
    assert!(
        !stderr.contains("can't see"),
        "nor for each worktree: {stderr}"
    );
    let explained = env.ok(&["sandbox", "explain", "a"]);
    let told = env.weald(&["sandbox", "explain", "a"]).stdout;
    let unseen = told.lines().skip_while(|line| *line != "does not see");
    let unseen: Vec<_> = unseen
        .skip(1)
        .take_while(|line| line.starts_with(' '))
        .collect();
    let once: std::collections::BTreeSet<_> = unseen.iter().collect();
    assert_eq!(unseen.len(), once.len(), "each is named once: {told}");
    assert_eq!(
        explained["sandbox"]["hidden_secrets"][0], "aws",
        "{explained}"
    );
    env.ok(&["config", "set", "sandbox.reveal", "aws,MY_SERVICE_KEY"]);
    let [stdout, _] = run(&shown);
    assert_eq!(
        stdout.matches(SECRET).count(),
        3,
        "the store, its variable, and the one named: {stdout}"
    );
    assert!(!stdout.contains("GITHUB_TOKEN"), "{stdout}");
    // A repository can't reveal anything.
    env.ok(&["config", "unset", "sandbox.reveal"]);
    commit(
        &env,
        &env.repo(),
        "weald.toml",
        "[sandbox]\nreveal = [\"aws\"]\n",
    );
    let [stdout, _] = run(&shown);
    assert!(!stdout.contains(SECRET), "{stdout}");
}

/// A run that does what the test says when it says so.
struct Going {
    child: Child,
    tree: PathBuf,
}

impl Going {
    /// Waits for `go`, then runs the script.
    fn start(env: &TestEnv, name: &str, script: &str) -> Self {
        let tree = env.root().join("app.weald").join(name);
        let script = format!("touch ready.log; until [ -e go.log ]; do sleep 0.02; done; {script}");
        let child = env
            .weald_command(&["run", name, "--", "sh", "-c", &script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !tree.join("ready.log").exists() {
            assert!(Instant::now() < deadline, "the run did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { child, tree }
    }

    fn finish(self) -> String {
        fs::write(self.tree.join("go.log"), "").unwrap();
        let output = self.child.wait_with_output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }
}

#[test]
fn x16_what_is_hidden_stays_hidden_when_the_host_replaces_moves_or_creates_it() {
    let env = repository();
    let (home, main) = (env.home(), env.repo());
    let places = [
        home.join("denied"),
        main.join("denied"),
        home.join("deep/er/denied"),
    ];
    for place in &places {
        write(&place.join("dir/key"), SECRET);
        write(&place.join("file"), SECRET);
        write(&place.join("open"), "plain\n");
    }
    write(&home.join(".ssh/id"), SECRET);
    let denied: Vec<_> = places
        .iter()
        .flat_map(|place| {
            ["dir", "file", "later"].map(|name| place.join(name).display().to_string())
        })
        .collect();
    env.ok(&["config", "set", "sandbox.read_deny", &denied.join(",")]);
    grow(&env, "a", "sealed");
    let [first, second, third] = places.map(|place| place.display().to_string());
    let home_text = home.display();
    let script = format!(
        "for p in {first} {second} {third}; do cat $p/file $p/dir/key $p/moved/key $p/renamed $p/later; done; \
         cat {home_text}/.ssh/id {home_text}/.ssh-moved/id {home_text}/.netrc; \
         cat {first}/open {second}/open {third}/open"
    );
    let going = Going::start(&env, "a", &script);
    for place in [&first, &second, &third].map(Path::new) {
        // Replaced by a rename, moved to another name and made anew, made for the first time.
        write(&place.join("new"), SECRET);
        fs::rename(place.join("file"), place.join("renamed")).unwrap();
        fs::rename(place.join("new"), place.join("file")).unwrap();
        fs::rename(place.join("dir"), place.join("moved")).unwrap();
        write(&place.join("dir/key"), SECRET);
        write(&place.join("later"), SECRET);
    }
    fs::rename(home.join(".ssh"), home.join(".ssh-moved")).unwrap();
    write(&home.join(".ssh/id"), SECRET);
    write(&home.join(".netrc"), SECRET);
    let said = going.finish();
    assert!(!said.contains(SECRET), "{said}");
    assert_eq!(said.matches("plain\n").count(), 3, "{said}");
}

#[test]
fn x16_no_run_sees_another_repositorys_state() {
    let env = repository();
    grow(&env, "a", "sealed");
    let other = env.home().join("other");
    let path = other.to_str().unwrap();
    env.git(&["init", "-q", "-b", "main", path]);
    env.git(&[
        "-C",
        path,
        "-c",
        "user.name=T",
        "-c",
        "user.email=t@e",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "1",
    ]);
    env.ok(&["-C", path, "task", "add", SECRET]);
    let private = other.join(".git/weald/private");
    let script = format!("ls -A {0}; cat {0}/events.jsonl; true", private.display());
    let said = run(&env, "a", &script);
    assert_eq!(said, "", "another repository's control plane");
}

#[test]
fn x17_what_a_run_writes_can_not_carry_privileges() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    let mounts = run(&env, "a", "cat /proc/self/mounts");
    for path in [&tree, &env.home()] {
        let path = path.canonicalize().unwrap();
        let line = mounts
            .lines()
            .find(|line| line.split(' ').nth(1) == path.to_str())
            .unwrap_or_else(|| panic!("{} is no mount in {mounts}", path.display()));
        let flags: Vec<_> = line.split(' ').nth(3).unwrap().split(',').collect();
        assert!(
            flags.contains(&"nosuid") && flags.contains(&"nodev"),
            "{line}"
        );
    }
}
