//! Filling the pool: one process at a time, mostly in the background after a tree was made.
//!
//! The donor is a folder of files, not one packed file. Writing from one mapped file was about a tenth faster on ext4.
//! But reflinks and btrfs snapshots need a folder, and git itself can bring a folder forward.

use std::fs::{self, TryLockError};
use std::path::{Path, PathBuf};

use weald_git::Door;

use super::{FILL_LIMIT, Pool, PoolStatus, Seal, Taken, snapshot};
use crate::inside::{Forward, ForwardReply, Inspect, InspectReply, Populate};
use crate::site::Site;
use crate::{TreeError, Trees, at, delete};
use weald_control::files;
use weald_control::steps::step;

/// What visits to the pool are called in messages.
const SPARE: &str = "a spare";

/// Whether to wait while another process fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Until it is done.
    Wait,
    /// Not at all: it does the same.
    LeaveIt,
}

impl Trees<'_> {
    /// What is in the pool.
    pub fn pool_status(&self) -> Result<PoolStatus, TreeError> {
        let base = self.pool_base()?;
        let pool = self.pool(&self.tree_root()?, &base)?;
        Ok(self.status_of(pool.as_ref(), &base))
    }

    /// Makes the donor and `count` spares (by default as many as configured), or brings those that are there forward.
    pub fn fill_pool(
        &self,
        count: Option<u64>,
        patience: Patience,
    ) -> Result<PoolStatus, TreeError> {
        let base = self.pool_base()?;
        let Some(pool) = self.pool(&self.tree_root()?, &base)? else {
            return Ok(self.status_of(None, &base));
        };
        let lock = pool.lock("fill.lock").map_err(at(&pool.path))?;
        match (patience, lock.try_lock()) {
            (Patience::LeaveIt, Err(TryLockError::WouldBlock)) => {
                return Ok(self.status_of(Some(&pool), &base));
            }
            (_, Ok(())) => {}
            _ => files::lock_within(&lock, FILL_LIMIT).map_err(at(&pool.path))?,
        }
        self.vault().require(&self.main_refs()?, &[&base])?;
        self.require_files(&base)?;
        pool.clear_unusable();
        pool.refresh_donor(&base)?;
        let configured = self.config.pool_size;
        let wanted = usize::try_from(count.unwrap_or(configured)).unwrap_or(usize::MAX);
        for (spare, seal) in pool.spares() {
            if seal.base != base {
                pool.refresh_spare(&spare, &seal, &base)?;
            }
        }
        while pool.spares().len() < wanted && pool.has_room() {
            pool.make_spare(&base)?;
        }
        Ok(self.status_of(Some(&pool), &base))
    }

    /// Takes everything out of the pool.
    pub fn drain_pool(&self) -> Result<PoolStatus, TreeError> {
        let base = self.pool_base()?;
        let Some(pool) = self.pool_at(&self.tree_root()?, &base)? else {
            return Ok(self.status_of(None, &base));
        };
        let _fill = pool.lock_alone("fill.lock")?;
        let _donor = pool.lock_alone("donor.lock")?;
        for prefix in ["spare-", "new-", "gone-", "donor"] {
            for entry in pool
                .entries(prefix)
                .into_iter()
                .filter(|path| path.is_dir())
            {
                pool.evict(&entry);
            }
        }
        Ok(self.status_of(Some(&pool), &base))
    }

    /// Whether a fill in the background is wanted and nobody is at it.
    pub fn pool_wants_filling(&self) -> bool {
        if !self.config.pool_background {
            return false;
        }
        let base = self.pool_base();
        let Ok(Some(pool)) = base.and_then(|base| self.pool(&self.tree_root()?, &base)) else {
            return false;
        };
        let lock = pool.lock("fill.lock");
        lock.is_ok_and(|lock| lock.try_lock().is_ok())
    }

    fn status_of(&self, pool: Option<&Pool<'_>>, base: &str) -> PoolStatus {
        let spares = pool.map(Pool::spares).unwrap_or_default();
        let ready = spares.iter().filter(|(_, seal)| seal.base == base).count();
        PoolStatus {
            ready,
            behind: spares.len() - ready,
            size: self.config.pool_size,
            base: Some(base.to_owned()),
            donor: pool.is_some_and(|pool| Seal::read(&pool.donor()).is_some()),
            path: pool.map(|pool| pool.path.clone()),
        }
    }

    /// What a new tree starts from when nobody names anything.
    fn pool_base(&self) -> Result<String, TreeError> {
        let (target, _) = self.target.as_ref().ok_or(TreeError::NoCommit)?;
        Ok(self.base(None, target, None, &mut Vec::new())?.commit)
    }

    /// What in the pool nobody can use, or nobody is to: everything that is half-made, and every spare where there is to
    /// be none. Nothing while somebody fills it.
    pub fn stale_pool_entries(&self) -> Result<Vec<PathBuf>, TreeError> {
        let Some(pool) = self.existing_pool()? else {
            return Ok(Vec::new());
        };
        let lock = pool.lock("fill.lock").map_err(at(&pool.path))?;
        if lock.try_lock().is_err() {
            return Ok(Vec::new());
        }
        let is_unwanted = self.config.pool_size == 0;
        let mut stale = [pool.entries("new-"), pool.entries("gone-")].concat();
        let spares = pool.entries("spare-").into_iter();
        stale.extend(spares.filter(|spare| is_unwanted || !pool.is_usable(spare)));
        Ok(stale)
    }

    /// Deletes such an entry, unless somebody fills the pool meanwhile.
    pub fn evict_stale(&self, entry: &Path) -> Result<(), TreeError> {
        let Some(pool) = self.existing_pool()? else {
            return Ok(());
        };
        let lock = pool.lock("fill.lock").map_err(at(&pool.path))?;
        if lock.try_lock().is_ok() {
            pool.evict(entry);
        }
        Ok(())
    }

    /// The pool, if one was ever made and there is something to make it from.
    fn existing_pool(&self) -> Result<Option<Pool<'_>>, TreeError> {
        let root = self.tree_root()?;
        let home = self.common_dir().join("weald/pool");
        if self.target.is_none() || !(home.is_dir() || root.join(".pool").is_dir()) {
            return Ok(None);
        }
        let base = self.pool_base()?;
        self.pool_at(&root, &base)
    }

    /// A repository that says what a new one would say, also if settings that don't touch files changed since.
    pub(crate) fn renew_settings(
        &self,
        tree: &Path,
        commit: &str,
        taken: &Taken,
    ) -> Result<(), TreeError> {
        match taken.is_current {
            true => Ok(()),
            false => self.write_settings(&tree.join(".git"), commit),
        }
    }

    /// Turns a clean checkout of one commit into one of another by what differs. False when that would not give what a
    /// checkout gives.
    pub(crate) fn bring_forward(
        &self,
        tree: &Path,
        from: &str,
        to: &str,
    ) -> Result<bool, TreeError> {
        let job = Forward {
            from: from.to_owned(),
            to: to.to_owned(),
        };
        let reply = self.visit(SPARE, &Site::sealed(tree), job)?;
        Ok(reply == ForwardReply::Forward)
    }
}

impl Pool<'_> {
    /// Takes away what nobody can use: half-made, made from other settings, or opened by somebody.
    fn clear_unusable(&self) {
        for prefix in ["new-", "gone-"] {
            for entry in self.entries(prefix) {
                self.evict(&entry);
            }
        }
        for spare in self.entries("spare-") {
            if !self.is_usable(&spare) {
                self.evict(&spare);
            }
        }
    }

    /// Whether what is sealed is still good. After a start of the machine git has to look at it once.
    fn is_usable(&self, holder: &Path) -> bool {
        let tree = holder.join("tree");
        let fits = |seal: &Seal| seal.settings.files == self.settings.files && seal.fits(&tree);
        let Some(seal) = Seal::read(holder).filter(fits) else {
            return false;
        };
        if seal.boot == self.boot {
            return true;
        }
        let looked = self
            .trees
            .visit(SPARE, &Site::sealed(&tree), Inspect::default());
        let is_clean = looked.is_ok_and(|InspectReply { look, .. }| {
            look.staged + look.unstaged + look.untracked + look.ignored == 0
        });
        is_clean && Seal::put(holder, &seal.settings, &seal.base, &self.boot).is_ok()
    }

    /// A donor that holds `base`: brought forward, or made.
    fn refresh_donor(&self, base: &str) -> Result<(), TreeError> {
        let donor = self.donor();
        if self.is_usable(&donor)
            && let Some(seal) = Seal::read(&donor)
        {
            if seal.base == base {
                return Ok(());
            }
            // Whoever wants a copy waits the moment that this takes.
            let _lock = self.lock_alone("donor.lock")?;
            if self.forward_sealed(&donor, &seal, base)? {
                return Ok(());
            }
        }
        if !self.has_room() {
            return Ok(());
        }
        let made = self.make_checkout(base)?;
        Seal::put(&made, &self.settings, base, &self.boot)?;
        step("pool.donor_made");
        let _lock = self.lock_alone("donor.lock")?;
        self.evict(&donor);
        step("pool.donor_gone");
        fs::rename(&made, &donor).map_err(at(&donor))
    }

    /// A checkout by git, in a holder of its own.
    fn make_checkout(&self, base: &str) -> Result<PathBuf, TreeError> {
        let holder = self.new_holder()?;
        let tree = holder.join("tree");
        if !(snapshot::is_btrfs(&holder) && snapshot::make(&tree).is_ok()) {
            fs::create_dir(&tree).map_err(at(&tree))?;
        }
        let git_dir = tree.join(".git");
        fs::create_dir(&git_dir).map_err(at(&git_dir))?;
        self.trees.write_settings(&git_dir, base)?;
        let job = Populate {
            commit: base.to_owned(),
            index: None,
        };
        self.trees.visit(SPARE, &Site::sealed(&tree), job)?;
        Ok(holder)
    }

    /// A further spare: a copy of the donor, or a checkout where that can't be copied.
    fn make_spare(&self, base: &str) -> Result<(), TreeError> {
        let holder = self.new_holder()?;
        let copied = self.copy(&holder.join("tree")).map_err(at(&holder))?;
        let holder = match copied {
            Some(taken) if taken.base == base => {
                let tree = holder.join("tree");
                self.trees.renew_settings(&tree, base, &taken)?;
                if self.trees.wants_large_files(&tree, &taken)? {
                    self.trees.bring_forward(&tree, base, base)?;
                }
                holder
            }
            _ => self.make_checkout(base)?,
        };
        Seal::put(&holder, &self.settings, base, &self.boot)?;
        step("pool.spare_made");
        self.offer(&holder)
    }

    /// Brings a spare forward that nobody took meanwhile.
    fn refresh_spare(&self, spare: &Path, seal: &Seal, base: &str) -> Result<(), TreeError> {
        let holder = self.new_holder()?;
        if fs::rename(spare.join("tree"), holder.join("tree")).is_err() {
            return Ok(());
        }
        let _ = delete(spare);
        step("pool.spare_held");
        match self.forward_sealed(&holder, seal, base)? {
            true => self.offer(&holder),
            false => {
                self.evict(&holder);
                Ok(())
            }
        }
    }

    fn forward_sealed(&self, holder: &Path, seal: &Seal, to: &str) -> Result<bool, TreeError> {
        // Unsealed meanwhile: nobody takes half of each.
        let _ = fs::remove_file(holder.join("seal"));
        step("pool.unsealed");
        let tree = holder.join("tree");
        if !self.trees.bring_forward(&tree, &seal.base, to)? {
            return Ok(false);
        }
        let door = Door::open(&tree.join(".git")).map_err(at(&tree))?;
        door.write("HEAD", format!("{to}\n").as_bytes())
            .map_err(at(&tree))?;
        Seal::put(holder, &seal.settings, to, &self.boot)?;
        Ok(true)
    }

    fn new_holder(&self) -> Result<PathBuf, TreeError> {
        let made = tempfile::Builder::new()
            .prefix("new-")
            .tempdir_in(&self.path);
        Ok(made.map_err(at(&self.path))?.keep())
    }

    /// Lets others take what is in a holder.
    fn offer(&self, holder: &Path) -> Result<(), TreeError> {
        let name = holder.file_name().unwrap_or_default().to_string_lossy();
        let spare = self.path.join(name.replacen("new-", "spare-", 1));
        fs::rename(holder, &spare).map_err(at(&spare))
    }

    /// Takes an entry out of the pool at once, then deletes it.
    fn evict(&self, entry: &Path) {
        let Ok(away) = tempfile::Builder::new()
            .prefix("gone-")
            .tempdir_in(&self.path)
        else {
            return;
        };
        // What can't be deleted now is found by the next sweep.
        let _ = fs::rename(entry, away.path().join("it"));
        drop(away);
    }

    /// A pool is a convenience: it leaves a tenth of the disk to others.
    fn has_room(&self) -> bool {
        rustix::fs::statvfs(&self.path).is_ok_and(|found| found.f_bavail >= found.f_blocks / 10)
    }
}
