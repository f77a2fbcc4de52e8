//! Trees that git hangs in: every command that looks would wait for the whole limit again, so a look that took too long is
//! remembered, and the next ones get less time until it is forgotten.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Trees;
use super::site::Site;
use weald_control::files;
use weald_control::marker::hash_of;

/// How long one that hung gets after that.
const BRIEF: Duration = Duration::from_secs(2);

/// How long that lasts.
const MEMORY: Duration = Duration::from_secs(600);

/// How long others get shortly after one hung, so that many cost a command little more than one.
const AFTER_ONE: Duration = Duration::from_secs(10);

/// What counts as shortly after.
const SHORTLY: Duration = Duration::from_secs(30);

/// When a look of this process last took too long.
static LAST_HUNG: Mutex<Option<Instant>> = Mutex::new(None);

impl Trees<'_> {
    fn hung_file(&self, site: &Site) -> PathBuf {
        let name = format!("{:016x}", hash_of(&site.path));
        self.place.private().join("hung").join(name)
    }

    /// How long a look may take, at most `limit`.
    pub(super) fn patience_with(&self, site: &Site, limit: Duration) -> Duration {
        let file = self.hung_file(site);
        let age = file.metadata().and_then(|found| found.modified());
        let age = age.ok().and_then(|time| time.elapsed().ok());
        let is_known = age.is_some_and(|age| age < MEMORY) && {
            // Somebody who gives it more time wants it looked at.
            let text = files::read_small(&file, 64).ok().flatten();
            let before = text.and_then(|text| text.trim().parse().ok());
            before.is_some_and(|before| limit <= Duration::from_secs(before))
        };
        let last = *LAST_HUNG.lock().unwrap_or_else(PoisonError::into_inner);
        let one_hung = last.is_some_and(|last| last.elapsed() < SHORTLY);
        match (is_known, one_hung) {
            (true, _) => limit.min(BRIEF),
            (false, true) => limit.min(AFTER_ONE),
            (false, false) => limit,
        }
    }

    /// Remembers that a look took too long; answers it in words.
    pub(super) fn note_hanging(&self, site: &Site, limit: Duration) -> String {
        let whole = self.config.tree_look_limit.unsigned_abs();
        let file = self.hung_file(site);
        *LAST_HUNG.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        if limit >= whole {
            let folder = file.parent().map(fs::create_dir_all);
            // What can't be remembered is waited for again.
            let _ = folder.map(|_| files::replace(&file, &format!("{}\n", whole.as_secs())));
        }
        let minutes = MEMORY.as_secs() / 60;
        format!(
            "inspecting it took longer than {} s; for {minutes} minutes commands wait only {} s for it (to wait longer: --set tree.look_limit={}s)",
            limit.as_secs(),
            BRIEF.as_secs(),
            whole.as_secs() * 2
        )
    }
}
