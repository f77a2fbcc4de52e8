//! The fence: a root ref of main whose blob is the newest token of the queue.
//!
//! A transaction that begins in a linked worktree may not verify a root ref of main. But it may move it to where it is,
//! as `main-worktree/WEALD_FENCE`. So one transaction holds fence and target; where refs are in tables, two would block
//! each other.

use std::thread;
use std::time::{Duration, Instant};

use weald_core::id::Token;
use weald_core::landing::{Landing, LandingStatus};
use weald_git::{Commit, Git, Hooks, RefStep, RefTransaction, Reference, tabled_ref};

use super::super::LandError;
use super::recovery::{STALE, is_older};
use crate::Landings;
use weald_control::files::read_small;
use weald_trees::Trees;

/// Ends the landing that holds main's refs in tables though its lease has run out; true when they are free.
pub fn free_main(trees: &Trees<'_>) -> bool {
    Landings::new(trees).free_tables().unwrap_or_default()
}

pub const FENCE: &str = "WEALD_FENCE";

/// How often a lock of it is looked at.
const PAUSE: Duration = Duration::from_millis(50);

impl Landings<'_> {
    /// Moves the fence to `token`; answers what it holds then. One that holds a newer token outran us.
    pub(crate) fn move_fence(&self, token: Token) -> Result<String, LandError> {
        let common = self.trees.place.repository().common_dir();
        let outrun = || LandError::Outrun("the queue".to_owned());
        let held = self.fence()?;
        if let Some(held) = &held {
            match self.token_in(held)? {
                Some(newer) if newer > token.0 => return Err(outrun()),
                Some(same) if same == token.0 => return Ok(held.clone()),
                // A blob that was pruned is of an older one: nothing prunes what is young.
                _ => {}
            }
        }
        let made = Git::new(common, "hash-object")
            .args(["-w", "--stdin"])
            .input(format!("{}\n", token.0))
            .run()?;
        let blob = String::from_utf8_lossy(&made).trim().to_owned();
        let absent = "0".repeat(blob.len());
        let update = RefStep::Update {
            name: FENCE,
            new: &blob,
            old: Some(held.as_deref().unwrap_or(&absent)),
        };
        let deadline = Instant::now() + self.lock_wait();
        loop {
            let moved = RefTransaction::prepare(common, &[update], "weald: fence", Hooks::Off)
                .and_then(RefTransaction::commit);
            match moved {
                Ok(()) => return Ok(blob),
                Err(_) if self.fence()? != held => return Err(outrun()),
                Err(error) if error.says_locked() && Instant::now() < deadline => {
                    self.free_fence()?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Ends whoever holds the fence's lock: a process that lost the lease while it moved the target, or what is left of one.
    fn free_fence(&self) -> Result<(), LandError> {
        let open = self.queue()?.open;
        let moving = |landing: &&Landing| landing.status == LandingStatus::Moving;
        for landing in open.iter().filter(moving) {
            let worker = landing.intent.as_ref().map(|intent| &intent.worker);
            if worker.is_some_and(|worker| {
                self.trees.me().as_ref() != Some(worker) && self.trees.end_process(worker)
            }) {
                self.clear_locks_of(landing)?;
            }
        }
        // Nobody else has a reason to hold it for long. (The lock of refs in tables is everybody's.)
        let lock = self
            .trees
            .place
            .repository()
            .common_dir()
            .join(format!("{FENCE}.lock"));
        if is_older(&lock, STALE) {
            let _ = std::fs::remove_file(&lock);
        }
        thread::sleep(PAUSE);
        Ok(())
    }

    /// Ends the process that holds main's refs in tables, if its lease has run out; true when they are free.
    fn free_tables(&self) -> Result<bool, LandError> {
        let holder = self.queue()?.queue.holder;
        let now = self.trees.now()?;
        let is_over = holder.is_none_or(|holder| holder.expires_at <= now);
        if is_over && self.trees.place.repository().has_reftable() {
            self.free_fence()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Deletes the fence, which no landing needs any more.
    pub fn delete_fence(&self) -> Result<(), LandError> {
        let common = self.trees.place.repository().common_dir();
        if self.fence()?.is_some() {
            match self.trees.place.repository().has_reftable() {
                true => drop(Git::new(common, "update-ref").args(["-d", FENCE]).run()?),
                false => {
                    let path = common.join(FENCE);
                    std::fs::remove_file(&path).map_err(weald_trees::at(&path))?;
                }
            }
        }
        Ok(())
    }

    /// What the fence holds.
    pub(crate) fn fence(&self) -> Result<Option<String>, LandError> {
        let repository = self.trees.place.repository();
        let common = repository.common_dir();
        if repository.has_reftable() {
            return Ok(match tabled_ref(common, FENCE)? {
                Some(Reference::Direct(blob)) => Some(blob.as_str().to_owned()),
                _ => None,
            });
        }
        let text = read_small(&common.join(FENCE), 4096).ok().flatten();
        if let Some(id) = text.and_then(|text| Commit::parse(text.trim())) {
            return Ok(Some(id.as_str().to_owned()));
        }
        let asked = Git::new(common, "rev-parse")
            .args(["-q", "--verify", "--end-of-options", FENCE])
            .output()?;
        let text = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
        Ok(Commit::parse(&text).map(|id| id.as_str().to_owned()))
    }

    /// The newest token that git knows of.
    pub fn fence_token(&self) -> Result<Option<Token>, LandError> {
        let token = match self.fence()? {
            Some(blob) => self.token_in(&blob)?,
            None => None,
        };
        Ok(token.map(Token))
    }

    pub(crate) fn token_in(&self, blob: &str) -> Result<Option<u64>, LandError> {
        let common = self.trees.place.repository().common_dir();
        let read = Git::new(common, "cat-file").args(["blob", blob]).output()?;
        let text = String::from_utf8_lossy(&read.stdout).into_owned();
        Ok(text.trim().parse().ok().filter(|_| read.status.success()))
    }
}
