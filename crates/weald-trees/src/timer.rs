//! Snapshots while a command runs: every `snapshot.every`, and only if something changed.
//!
//! A snapshot that fails never disturbs the run; what went wrong is told at its end. Whether anything changed is told
//! from times and sizes first, without git (`inside/fingerprint`), then by comparing with the last snapshot.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use weald_core::tree::Tree;

use super::inside::{Fingerprint, Unless};
use super::site::Site;
use super::{TreeError, Trees};

/// Files that changed this long ago can't change again without their times showing it; some file systems count in
/// steps of two seconds.
const SETTLED: Duration = Duration::from_secs(3);

/// What is known since the last tick.
#[derive(Default)]
struct Watch {
    fingerprint: Option<u64>,
    ignored: Vec<String>,
}

impl Trees<'_> {
    /// Does `work`, and meanwhile takes a snapshot of the tree every `snapshot.every`, the first after one interval.
    /// Answers, besides, what to tell about those that failed.
    pub fn with_snapshots<T>(&self, tree: &Tree, work: impl FnOnce() -> T) -> (T, Option<String>) {
        let Some(every) = self.config.snapshot_every else {
            return (work(), None);
        };
        thread::scope(|scope| {
            let (end, ended) = mpsc::channel::<()>();
            let timer = scope.spawn(move || {
                let (mut watch, mut failed) = (Watch::default(), None);
                while ended.recv_timeout(every.unsigned_abs()) == Err(RecvTimeoutError::Timeout) {
                    if let Err(error) = self.tick(tree, &mut watch) {
                        failed = Some(format!(
                            "could not take a snapshot of {}: {error}",
                            tree.name
                        ));
                    }
                }
                failed
            });
            let done = work();
            drop(end);
            // One that is being taken is waited for: it ends by itself.
            let failed = timer.join().unwrap_or_default();
            self.snapshot_turns(tree).forget();
            (done, failed)
        })
    }

    fn tick(&self, tree: &Tree, watch: &mut Watch) -> Result<(), TreeError> {
        let Some(turn) = self.snapshot_turns(tree).take()? else {
            return Ok(());
        };
        let site = self.site(tree)?;
        let mut unless = self.unless(watch.ignored.clone())?;
        if watch.fingerprint.is_some()
            && self.fingerprint(tree, &site, &unless)? == watch.fingerprint
        {
            return Ok(());
        }
        // What can't be kept now is tried again as a whole.
        watch.fingerprint = None;
        unless.like = self.numbered(tree)?.pop_last().map(|(_, commit)| commit);
        let (_, reply) = self.snapshot_unless(tree, &site, "timer", Some(unless))?;
        *watch = Watch {
            fingerprint: reply.fingerprint,
            ignored: reply.ignored,
        };
        drop(turn);
        Ok(())
    }

    /// What a look is compared with: nothing yet but what was ignored, and the time.
    pub fn unless(&self, ignored: Vec<String>) -> Result<Unless, TreeError> {
        let now = i64::try_from(self.now()?.as_nanosecond()).unwrap_or(i64::MAX);
        let settled = i64::try_from(SETTLED.as_nanos()).unwrap_or(i64::MAX);
        Ok(Unless {
            like: None,
            ignored,
            settled_before: now.saturating_sub(settled),
        })
    }

    /// What the times and sizes in a tree come to; `None` if something changed just now.
    pub fn fingerprint(
        &self,
        tree: &Tree,
        site: &Site,
        unless: &Unless,
    ) -> Result<Option<u64>, TreeError> {
        let job = Fingerprint(unless.clone());
        Ok(self.visit(tree.name.as_str(), site, job)?.0)
    }
}
