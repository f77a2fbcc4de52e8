//! A transaction of refs that stays open: prepared first, committed when everything else is in place.
//!
//! Between the two git holds the lock of every ref in it. Whoever started it and dies closes git's input, and git takes
//! its locks away and changes nothing.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::process::{Git, GitError, drain, stop};
use crate::ref_name::is_readable;
use crate::reference::Commit;

/// How long git may take to answer, hooks included.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Whether the repository's hooks run.
#[derive(Debug, Clone, Copy)]
pub enum Hooks<'h> {
    Off,
    /// Those that the user's own configuration names, for this home.
    Run(Option<&'h Path>),
}

/// How a transaction in a linked worktree names a root ref of main.
pub const OF_MAIN: &str = "main-worktree/";

/// One part of a transaction.
#[derive(Debug, Clone, Copy)]
pub enum RefStep<'r> {
    /// The ref must hold this.
    Verify { name: &'r str, holds: &'r str },
    Update {
        name: &'r str,
        new: &'r str,
        /// What it must hold before; `None` is anything.
        old: Option<&'r str>,
    },
}

impl RefStep<'_> {
    fn write(self, to: &mut Vec<u8>) -> Result<(), GitError> {
        let (name, ids) = match self {
            Self::Verify { name, holds } => (name, [Some(holds), None]),
            Self::Update { name, new, old } => (name, [Some(new), old]),
        };
        let are_ids = ids
            .into_iter()
            .flatten()
            .all(|id| Commit::parse(id).is_some());
        let name = name.strip_prefix(OF_MAIN).unwrap_or(name);
        if !are_ids || !is_readable(name) {
            return Err(GitError::unexpected("update-ref", format!("{self:?}")));
        }
        let text = match self {
            Self::Verify { name, holds } => format!("verify {name}\0{holds}\0"),
            Self::Update { name, new, old } => {
                format!("update {name}\0{new}\0{}\0", old.unwrap_or_default())
            }
        };
        to.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// A prepared transaction. Dropped without a commit it changes nothing.
#[derive(Debug)]
pub struct RefTransaction {
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<String>,
    errors: Option<JoinHandle<String>>,
}

impl RefTransaction {
    /// Locks every ref of `steps` and checks what each must hold. The reflog will say `message`.
    pub fn prepare(
        git_dir: &Path,
        steps: &[RefStep<'_>],
        message: &str,
        hooks: Hooks<'_>,
    ) -> Result<Self, GitError> {
        let mut request = Vec::from(&b"start\0"[..]);
        for step in steps {
            step.write(&mut request)?;
        }
        request.extend_from_slice(b"prepare\0");
        let git = match hooks {
            Hooks::Off => Git::new(git_dir, "update-ref"),
            Hooks::Run(home) => Git::with_own_config(git_dir, "update-ref")
                .with_user_config(home)
                .config("core.fsync", "all"),
        };
        let mut child = git
            .args(["-m", message, "--no-deref", "--stdin", "-z"])
            .env("GIT_COMMITTER_NAME", "weald")
            .env("GIT_COMMITTER_EMAIL", "weald@localhost")
            .start()?;
        let stdin = child.stdin.take();
        let stderr = child.stderr.take().expect("piped");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            let lines = stdout.lines().map_while(Result::ok);
            // Nobody may be left to read it.
            let _ = lines.map(|line| sender.send(line)).all(|sent| sent.is_ok());
        });
        let mut transaction = Self {
            child,
            stdin,
            answers,
            errors: Some(thread::spawn(move || drain(stderr))),
        };
        transaction.send(&request);
        transaction.expect_answer("start: ok")?;
        transaction.expect_answer("prepare: ok")?;
        Ok(transaction)
    }

    /// The number of git's process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Makes the changes. After an error the refs have to be looked at: git may have ended on either side of it.
    pub fn commit(mut self) -> Result<(), GitError> {
        self.send(b"commit\0");
        self.expect_answer("commit: ok")?;
        self.stdin = None;
        self.wait();
        Ok(())
    }

    /// Gives the locks back and changes nothing.
    pub fn abort(self) {}

    /// A git that has ended says why in its answer.
    fn send(&mut self, text: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(text).and_then(|()| stdin.flush());
        }
    }

    fn expect_answer(&mut self, wanted: &str) -> Result<(), GitError> {
        match self.answers.recv_timeout(TIME_LIMIT) {
            Ok(line) if line == wanted => Ok(()),
            Ok(line) => Err(GitError::unexpected("update-ref", line)),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                stop(&mut self.child);
                Err(GitError::TimedOut {
                    command: "update-ref".to_owned(),
                    limit: TIME_LIMIT,
                })
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let code = self.child.wait().ok().and_then(|status| status.code());
                let said = self.errors.take().and_then(|errors| errors.join().ok());
                Err(GitError::Failed {
                    command: "update-ref".to_owned(),
                    code,
                    stderr: said.unwrap_or_default(),
                })
            }
        }
    }

    fn wait(&mut self) {
        let deadline = Instant::now() + TIME_LIMIT;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                return stop(&mut self.child);
            }
            thread::sleep(Duration::from_micros(200));
        }
    }
}

impl Drop for RefTransaction {
    fn drop(&mut self) {
        self.stdin = None;
        self.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn repository() -> (tempfile::TempDir, PathBuf, [String; 2]) {
        let home = tempfile::tempdir().unwrap();
        Git::outside(home.path(), "init")
            .args(["-q", "--bare", "-b", "main", "."])
            .run()
            .unwrap();
        let path = home.path().to_owned();
        let tree = Git::new(&path, "mktree").run().unwrap();
        let tree = String::from_utf8(tree).unwrap();
        let commit = |message: &str| {
            let made = Git::new(&path, "commit-tree")
                .args([tree.trim(), "-m", message])
                .env("GIT_AUTHOR_NAME", "a")
                .env("GIT_AUTHOR_EMAIL", "a@b")
                .env("GIT_COMMITTER_NAME", "a")
                .env("GIT_COMMITTER_EMAIL", "a@b")
                .run()
                .unwrap();
            String::from_utf8(made).unwrap().trim().to_owned()
        };
        let commits = [commit("1"), commit("2")];
        Git::new(&path, "update-ref")
            .args(["refs/heads/main", &commits[0]])
            .run()
            .unwrap();
        (home, path, commits)
    }

    fn prepare(path: &Path, old: &str, new: &str) -> Result<RefTransaction, GitError> {
        let name = "refs/heads/main";
        let step = RefStep::Update {
            name,
            new,
            old: Some(old),
        };
        RefTransaction::prepare(path, &[step], "weald: test", Hooks::Off)
    }

    fn tip(path: &Path) -> String {
        let tip = std::fs::read_to_string(path.join("refs/heads/main")).unwrap();
        tip.trim().to_owned()
    }

    #[test]
    fn a_prepared_transaction_holds_the_ref_until_its_end() {
        let (_home, path, [one, two]) = repository();
        let lock = path.join("refs/heads/main.lock");
        let open = prepare(&path, &one, &two).unwrap();
        assert!(lock.exists());
        assert!(prepare(&path, &one, &two).is_err(), "it is locked");
        open.abort();
        assert!(!lock.exists());
        assert_eq!(tip(&path), one);
        assert!(prepare(&path, &two, &one).is_err(), "it holds another");
        prepare(&path, &one, &two).unwrap().commit().unwrap();
        assert_eq!(tip(&path), two);
        assert!(!lock.exists());
    }

    #[test]
    fn a_git_that_was_killed_commits_nothing() {
        let (_home, path, [one, two]) = repository();
        let open = prepare(&path, &one, &two).unwrap();
        let pid = rustix::process::Pid::from_raw(open.process() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        assert!(open.commit().is_err());
        assert_eq!(tip(&path), one);
    }
}
