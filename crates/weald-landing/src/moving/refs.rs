//! The ref's part of a move: a transaction that verifies the fence and the old tip, and the lock files it holds.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use weald_core::config::HooksPolicy;

use serde::{Deserialize, Serialize};
use weald_git::{GitError, Hooks, OF_MAIN, RefName, RefStep, RefTransaction};

use super::super::LandError;
use super::Move;
use super::checkout::Checkout;
use super::fence::FENCE;
use crate::Landings;
use crate::refusal::Refusal;

/// How often a ref that somebody holds is tried again.
const PAUSE: Duration = Duration::from_millis(50);

/// A lock file that git held, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LockNote {
    pub path: PathBuf,
    pub inode: u64,
    /// When it was written.
    pub modified: (i64, i64),
}

impl LockNote {
    fn of(path: &Path) -> Option<Self> {
        let found = path.symlink_metadata().ok()?;
        Some(Self {
            path: path.to_owned(),
            inode: found.ino(),
            modified: (found.mtime(), found.mtime_nsec()),
        })
    }

    /// Takes the lock away if it is still the one that was noted. Only for a git that is gone.
    pub(super) fn clear(&self) {
        if Self::of(&self.path).as_ref() == Some(self) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Lock files that moving `target` through `git_dir` takes.
pub(super) fn lock_files(common: &Path, git_dir: &Path, target: &str) -> Vec<PathBuf> {
    let mut locks = vec![
        common.join(format!("{FENCE}.lock")),
        git_dir.join("HEAD.lock"),
        git_dir.join("ORIG_HEAD.lock"),
    ];
    locks.extend(RefName::branch(target).map(|branch| branch.lock_in(common)));
    locks.push(common.join("reftable/tables.list.lock"));
    if git_dir != common {
        locks.push(git_dir.join("reftable/tables.list.lock"));
    }
    locks
}

/// A prepared move of the ref.
#[derive(Debug)]
pub(super) struct OpenRefs {
    transaction: RefTransaction,
    pub locks: Vec<LockNote>,
}

impl OpenRefs {
    /// The process that holds the target.
    pub(super) fn process(&self) -> u32 {
        self.transaction.process()
    }

    fn commit(self) -> Result<(), GitError> {
        let committed = self.transaction.commit();
        committed.inspect_err(|_| self.locks.iter().for_each(LockNote::clear))
    }

    /// Changes nothing, and leaves no lock.
    pub(super) fn abort(self) {
        self.transaction.abort();
        self.locks.iter().for_each(LockNote::clear);
    }
}

impl Landings<'_> {
    /// Locks the ref and the fence, and checks both.
    pub(super) fn prepare_refs(
        &self,
        wanted: &Move,
        checkout: Option<&Checkout>,
    ) -> Result<OpenRefs, LandError> {
        let deadline = Instant::now() + self.lock_wait();
        loop {
            let error = match self.try_refs(wanted, checkout) {
                Ok(open) => return Ok(open),
                Err(error) => error,
            };
            self.require_tip(wanted)?;
            let GitError::Failed { stderr, .. } = &error else {
                return Err(error.into());
            };
            if stderr.contains("hook") {
                return Err(Refusal::HookRefused(stderr.clone()).into());
            }
            if !error.says_locked() {
                return Err(error.into());
            }
            if Instant::now() > deadline {
                return Err(Refusal::RefLocked(wanted.target.clone(), stderr.clone()).into());
            }
            thread::sleep(PAUSE);
        }
    }

    fn try_refs(&self, wanted: &Move, checkout: Option<&Checkout>) -> Result<OpenRefs, GitError> {
        let common = self.trees.place.repository().common_dir();
        let git_dir = checkout.map_or(common, |checkout| checkout.git_dir.as_path());
        let name = format!("refs/heads/{}", wanted.target);
        let message = format!("weald: land {}", wanted.landing);
        // A linked checkout's transaction may not verify a ref of the main one, but move it to where it is. One transaction
        // has both: refs in tables share one lock.
        let fence_of_main = format!("{OF_MAIN}{FENCE}");
        let mut steps = vec![match git_dir == common {
            true => RefStep::Verify {
                name: FENCE,
                holds: &wanted.fence,
            },
            false => RefStep::Update {
                name: &fence_of_main,
                new: &wanted.fence,
                old: Some(&wanted.fence),
            },
        }];
        steps.push(RefStep::Update {
            name: &name,
            new: &wanted.new,
            old: Some(&wanted.old),
        });
        if checkout.is_some() {
            steps.push(RefStep::Update {
                name: "ORIG_HEAD",
                new: &wanted.old,
                old: None,
            });
        }
        let hooks = match self.trees.config.landing_hooks {
            HooksPolicy::Run => Hooks::Run(self.trees.host.home.as_deref()),
            HooksPolicy::Off => Hooks::Off,
        };
        let transaction = RefTransaction::prepare(git_dir, &steps, &message, hooks)?;
        let files = lock_files(common, git_dir, &wanted.target);
        Ok(OpenRefs {
            transaction,
            locks: files.iter().filter_map(|path| LockNote::of(path)).collect(),
        })
    }

    /// Moves the target. A git that dies on the way is followed by another one.
    pub(super) fn commit_refs(
        &self,
        wanted: &Move,
        checkout: Option<&Checkout>,
        open: OpenRefs,
    ) -> Result<(), LandError> {
        let mut result = open.commit();
        for _ in 0..2 {
            match result {
                Ok(()) => return Ok(()),
                Err(_) if self.tip_of(&wanted.target)?.as_deref() == Some(&wanted.new) => {
                    return Ok(());
                }
                Err(_) => result = self.prepare_refs(wanted, checkout)?.commit(),
            }
        }
        Ok(result?)
    }

    /// The target and the fence are where they were; otherwise somebody was faster.
    pub(super) fn require_tip(&self, wanted: &Move) -> Result<(), LandError> {
        if self.tip_of(&wanted.target)?.as_deref() != Some(&wanted.old) {
            return Err(LandError::Outrun(wanted.target.clone()));
        }
        match self.fence()?.as_deref() == Some(&wanted.fence) {
            true => Ok(()),
            false => Err(LandError::Outrun("the queue".to_owned())),
        }
    }

    /// Where a branch is.
    pub(super) fn tip_of(&self, target: &str) -> Result<Option<String>, LandError> {
        let tip = self
            .trees
            .place
            .repository()
            .resolve(&format!("refs/heads/{target}"))?;
        Ok(tip.map(|tip| tip.as_str().to_owned()))
    }

    pub(super) fn lock_wait(&self) -> Duration {
        self.trees.config.landing_lock_wait.unsigned_abs()
    }
}
