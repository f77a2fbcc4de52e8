//! A repository with work of every kind in it, and the checks that nothing of it was lost.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::ledger::{Ledger, Work, content, files_in, missing};
use crate::TestEnv;

/// How long what a killed process had started may go on.
const PATIENCE: Duration = Duration::from_secs(60);

/// What main holds before anything happens.
const BASE: &str = r#"
echo base > file; echo base > target; echo base > moved; printf '*.log\n' > .gitignore
mkdir -p dir/deep; for i in 1 2 3 4 5 6; do echo $i > dir/deep/f$i; done
printf '#!/bin/sh\n' > run; chmod +x run; ln -s run link
git add -A; git commit -qm base"#;

/// Work in a directory. $1 is its name, $2 says of what kind: a commit, something stashed, staged, changed, lying about.
const FILL: &str = r#"
set -e
case $2 in *commit*) echo "$1" > "committed-$1"; git add "committed-$1"; git commit -qm "work of $1";; esac
case $2 in *landing*) echo "$1" > target; echo "$1" > "landed-$1"; git add -A; git commit -qm "change of $1";; esac
case $2 in *stash*) echo "stashed by $1" > file; git stash -q;; esac
case $2 in *staged*) echo "staged by $1" > "staged-$1"; git add "staged-$1";; esac
case $2 in *changed*) echo "changed by $1" >> file;; esac
case $2 in *loose*)
  echo "untracked of $1" > "untracked \"q\" é
line"; mkdir -p "new dir/deep"; echo "$1" > "new dir/deep/file"
  printf '#!/bin/sh\necho %s\n' "$1" > tool; chmod 755 tool
  ln -s ../nowhere dangling; ln -s tool to-tool
  git init -q nested; (cd nested; echo "nested in $1" > n; git add n; git commit -qm nested; echo more > u);;
esac
echo "ignored of $1" > build.log; mkdir -p logs; echo "$1" > logs/x.log"#;

/// A repository, its trees, and what must not be lost of them.
pub struct World {
    env: TestEnv,
    pub(super) ledger: Mutex<Ledger>,
}

impl World {
    /// A new one, with work in its main checkout.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self::of(TestEnv::new(binary))
    }

    /// The same in a repository that is there.
    pub fn of(env: TestEnv) -> Self {
        env.git(&["config", "user.name", "Test"]);
        env.git(&["config", "user.email", "test@example.com"]);
        let world = Self {
            env,
            ledger: Mutex::default(),
        };
        let repo = world.env.repo();
        world.shell(&repo, BASE, &[]);
        world.fill("main", &repo, "staged changed loose");
        world
    }

    /// The environment that it is in.
    pub fn env(&self) -> &TestEnv {
        &self.env
    }

    /// Where a tree is when it is at its place.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.env.root().join("app.weald").join(name)
    }

    pub(super) fn shell(&self, directory: &Path, script: &str, args: &[&str]) -> String {
        let mut command = self.env.command("sh");
        command.current_dir(directory).args(["-c", script, "sh"]);
        let output = command.args(args).output().expect("sh starts");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            self.fail(&format!("{script}\n{told}"));
        }
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Makes a tree and works in it.
    pub(super) fn grow(&self, name: &str, kind: &str, dirt: &str) -> PathBuf {
        self.env.ok(&["new", name, "--kind", kind]);
        let path = self.place(name);
        self.fill(name, &path, dirt);
        path
    }

    /// Works in a directory, and notes everything of it.
    pub(super) fn fill(&self, name: &str, path: &Path, dirt: &str) {
        let before = files_in(path);
        self.shell(path, FILL, &[name, dirt]);
        let mut files = files_in(path);
        files.retain(|name, content| before.get(name) != Some(content));
        let work = Work {
            path: path.to_owned(),
            files,
            staged: dirt.contains("staged").then(|| format!("staged-{name}")),
            put_back: false,
        };
        self.ledger
            .lock()
            .expect("the ledger")
            .works
            .insert(name.to_owned(), work);
        self.note_commits(name, path);
    }

    /// Notes what HEAD and the stash of a directory hold now.
    pub(super) fn note_commits(&self, name: &str, path: &Path) {
        let script = "git rev-parse HEAD; git rev-parse -q --verify refs/stash || :";
        let told = self.shell(path, script, &[]);
        let mut ledger = self.ledger.lock().expect("the ledger");
        for commit in told.lines() {
            ledger
                .commits
                .entry(commit.to_owned())
                .or_insert(name.to_owned());
        }
    }

    /// Changes what is noted of a tree.
    pub(super) fn renote(&self, name: &str, change: impl FnOnce(&mut Work)) {
        let mut ledger = self.ledger.lock().expect("the ledger");
        change(ledger.works.get_mut(name).expect("it is noted"));
    }

    /// A tree whose files may go: somebody deletes them on purpose.
    pub(super) fn give_up(&self, name: &str) {
        self.ledger.lock().expect("the ledger").works.remove(name);
    }

    /// Runs a command that is killed at a step; panics if it never got there.
    pub(super) fn cut(&self, label: &str, args: &[&str], variables: &[(&str, &str)]) {
        let mark = self.env.root().join("mark");
        let _ = fs::remove_file(&mark);
        let mut command = self.env.weald_command(args);
        command
            .env("WEALD_STEP", format!("kill:{label}"))
            .env("WEALD_STEP_MARK", &mark)
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let output = command.output().expect("weald starts");
        self.settle();
        if fs::read_to_string(&mark).ok().as_deref() != Some(label) {
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            self.fail(&format!("{args:?} never came to {label}: {told}"));
        }
    }

    /// Waits until nothing runs here any more.
    pub fn settle(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let running = self.env.processes();
            if running.is_empty() {
                return;
            }
            if Instant::now() >= deadline {
                self.fail(&format!("these go on after the kill: {running:?}"));
            }
            thread::sleep(Duration::from_millis(3));
        }
    }

    /// One repair mends everything, a second finds nothing, and nothing was lost.
    pub fn heal(&self, what: &str) {
        self.settle();
        let first = self.env.weald(&["doctor", "--fix", "--json"]);
        if first.code != 0 {
            self.fail(&format!(
                "{what}: one repair does not mend it: {}{}",
                first.stdout, first.stderr
            ));
        }
        let second = self.env.weald(&["doctor", "--fix", "--json"]);
        let answer: Value = serde_json::from_str(&second.stdout).unwrap_or_default();
        let findings = answer["findings"].as_array().cloned().unwrap_or_default();
        let is_open = |finding: &&Value| finding["severity"] != "info" || finding["fixed"] == true;
        let open: Vec<_> = findings.iter().filter(is_open).collect();
        if second.code != 0 || !open.is_empty() {
            let before = first.stdout;
            self.fail(&format!(
                "{what}: a second repair finds {open:#?}, after {before}"
            ));
        }
        self.check(what);
    }

    /// Panics if something of the ledger is nowhere, or git can't read what is there.
    pub fn check(&self, what: &str) {
        let repo = self.env.repo();
        let vault = repo.join(".git/weald/vault");
        self.shell(&repo, "git status --porcelain >/dev/null", &[]);
        for repository in [&repo, &vault].into_iter().filter(|path| path.exists()) {
            let script = "git fsck --connectivity-only --no-dangling >/dev/null";
            self.shell(repository, script, &[]);
        }
        let ledger = self.ledger.lock().expect("the ledger");
        let reachable = self.reachable();
        for (commit, whose) in &ledger.commits {
            if !reachable.contains(commit) {
                self.fail(&format!("{what}: commit {commit} of {whose} is lost"));
            }
        }
        for (name, work) in &ledger.works {
            if let Some(lost) = self.lost(name, work) {
                self.fail(&format!("{what}: {name} lost {lost}"));
            }
        }
    }

    /// What of a work is neither at its place nor in the trash.
    fn lost(&self, name: &str, work: &Work) -> Option<String> {
        let places = self.places(name, work);
        let least = places
            .iter()
            .map(|place| (missing(work, place), place))
            .min_by_key(|(missing, _)| missing.len());
        let Some((missing, place)) = least else {
            return Some("everything".to_owned());
        };
        let is_kept = work.put_back && self.vault_has(work, &missing);
        if !missing.is_empty() && !is_kept {
            return Some(format!("{missing:?}; best of {places:?}: {place:?}"));
        }
        let staged = work.staged.as_ref().filter(|_| *place == work.path)?;
        let told = self.shell(place, "git diff --cached --name-only", &[]);
        match told.lines().any(|line| line == staged) {
            true => None,
            false => Some(format!("what was staged ({staged})")),
        }
    }

    /// Where a work may be: its place, and what the trash has of its name.
    fn places(&self, name: &str, work: &Work) -> Vec<PathBuf> {
        let trash = fs::read_dir(self.place(".trash")).into_iter().flatten();
        let is_it = |path: &PathBuf| {
            let found = path.file_name().unwrap_or_default().to_string_lossy();
            found.starts_with(&format!("{name}-2"))
        };
        let trashed = trash.flatten().map(|entry| entry.path()).filter(is_it);
        let place = Some(work.path.clone()).filter(|path| path.is_dir());
        place.into_iter().chain(trashed).collect()
    }

    fn vault_has(&self, work: &Work, names: &[PathBuf]) -> bool {
        let vault = self.env.repo().join(".git/weald/vault");
        let script = "git rev-list --objects --all --no-object-names";
        let held = self.shell(&vault, script, &[]);
        let held: BTreeSet<_> = held.lines().collect();
        names.iter().all(|name| {
            let wanted = &work.files[name];
            // What is kept is the content; the mode stands before it.
            let text = match wanted.iter().position(|byte| *byte == b' ') {
                Some(end) if wanted.starts_with(b"100") => &wanted[end + 1..],
                _ => wanted,
            };
            let scratch = self.env.root().join("scratch");
            fs::write(&scratch, text).expect("a file");
            let args = [scratch.to_str().expect("a plain path")];
            let id = self.shell(&vault, "git hash-object --no-filters \"$1\"", &args);
            held.contains(id.trim())
        })
    }

    /// Every commit that some ref holds: of main, of the vault, of a tree, also in the trash.
    fn reachable(&self) -> BTreeSet<String> {
        let repo = self.env.repo();
        let vault = repo.join(".git/weald/vault/objects");
        let mut repositories = vec![repo.clone(), repo.join(".git/weald/vault")];
        for folder in [self.place(""), self.place(".trash")] {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let sealed = entries
                .map(|entry| entry.path())
                .filter(|path| path.join(".git").is_dir());
            repositories.extend(sealed);
        }
        let mut found = BTreeSet::new();
        for repository in repositories.into_iter().filter(|path| path.exists()) {
            // A sealed tree in the trash lies deeper than its way to the vault says.
            let script = "GIT_ALTERNATE_OBJECT_DIRECTORIES=$1 git rev-list --all";
            let told = self.shell(&repository, script, &[vault.to_str().expect("a path")]);
            found.extend(told.lines().map(str::to_owned));
        }
        found
    }

    /// Ends a storm in which something went wrong; its world is kept.
    pub(super) fn fail(&self, why: &str) -> ! {
        panic!("{why}\n  kept: {}", self.env.root().display())
    }

    /// What a file of a tree holds, as the ledger writes it.
    pub(super) fn now(&self, path: &Path) -> Vec<u8> {
        content(path).unwrap_or_else(|| self.fail(&format!("{} is gone", path.display())))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if thread::panicking() {
            self.env.keep();
        }
    }
}
