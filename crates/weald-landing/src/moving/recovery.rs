//! Ending a move that was cut short: to its end if the index is in place, else back to where it began.
//!
//! The ref decides whether it landed. For the files the index decides, path by path: where the user has committed or
//! staged what came with the landing it stays; where the index still holds the old one, the old file goes back, if what
//! is there is exactly what the swap put there. Everything else is the user's.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use weald_core::landing::{Landing, MoveIntent};
use weald_git::{Git, transfer};

use super::super::LandError;
use super::Move;
use super::checkout::Checkout;
use super::index_lock::{self, IndexLock};
use super::plan::{Entry, Plan};
use super::refs::LockNote;
use super::stage::Stage;
use super::swap::Swap;
use super::touched::{self, Side};
use crate::Landings;
use crate::refusal::Refusal;
use weald_control::files::{read_bytes, read_small};
use weald_trees::at;

/// How long a git whose caller died may take to clear up.
const GRACE: Duration = Duration::from_secs(2);

/// From when on a lock that nobody noted is taken for left over.
pub(super) const STALE: Duration = Duration::from_secs(60);

/// What became of a move that was cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recovered {
    /// The target had moved, or was moved now: it landed.
    Landed,
    /// Everything is as before: it has to begin again.
    TakenBack,
}

/// The entries of an index.
type Index = BTreeMap<Vec<u8>, Side>;

impl Landings<'_> {
    /// Ends a move that somebody else began and did not end; its process is gone.
    pub(crate) fn recover_move(
        &self,
        landing: &Landing,
        fence: &str,
    ) -> Result<Recovered, LandError> {
        let Some((wanted, intent)) = move_of(landing, fence) else {
            return Ok(Recovered::TakenBack);
        };
        self.clear_locks_of(landing)?;
        let Some((checkout, stage)) = self.place_of(intent, &wanted) else {
            self.follow_target(&wanted.target)?;
            return self.verdict(&wanted);
        };
        self.recover_checkout(&wanted, &checkout, &stage)
    }

    /// Takes away the lock files that the git of a landing left; its processes are gone.
    pub(super) fn clear_locks_of(&self, landing: &Landing) -> Result<(), LandError> {
        let Some((wanted, intent)) = move_of(landing, "") else {
            return Ok(());
        };
        let place = self.place_of(intent, &wanted);
        // No git outlives a start of the machine.
        let is_other_start = self
            .trees
            .me()
            .is_some_and(|me| me.boot_id != intent.worker.boot_id);
        let age = if is_other_start {
            Duration::ZERO
        } else {
            STALE
        };
        clear_locks(intent, place.as_ref(), &wanted, age)
    }

    /// Whether the target holds what landed. One that is gone holds nothing.
    fn verdict(&self, wanted: &Move) -> Result<Recovered, LandError> {
        let Some(tip) = self.tip_of(&wanted.target)? else {
            return Ok(Recovered::TakenBack);
        };
        // A commit that was pruned is in no history.
        let landed = tip == wanted.new
            || self.asked("cat-file", &["-e", &wanted.new])?
                && self.asked("merge-base", &["--is-ancestor", &wanted.new, &tip])?;
        Ok(match landed {
            true => Recovered::Landed,
            false => Recovered::TakenBack,
        })
    }

    /// Asks git something whose answer is its exit code; any code but yes and no is a failure.
    fn asked(&self, name: &str, args: &[&str]) -> Result<bool, LandError> {
        let common = self.trees.place.repository().common_dir();
        let answer = Git::new(common, name).args(args).output()?;
        match answer.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(
                Refusal::HistoryUnreadable(name.to_owned(), answer.stderr.trim().to_owned()).into(),
            ),
        }
    }

    pub(super) fn recover_checkout(
        &self,
        wanted: &Move,
        checkout: &Checkout,
        stage: &Stage,
    ) -> Result<Recovered, LandError> {
        let _ = fs::remove_file(index_lock::building(&checkout.git_dir, wanted.landing));
        let plan = Plan::of(stage, checkout).map_err(at(&stage.path))?;
        if plan.is_some() && !self.can_end(wanted, checkout, stage) {
            return self.give_up(wanted, stage);
        }
        let is_held = index_lock::holder(&checkout.git_dir) == Some(wanted.landing);
        let mut recovered = self.verdict(wanted)?;
        if plan.is_some() || is_held {
            let lock = match is_held {
                true => IndexLock::take_over(&checkout.git_dir, wanted.landing)?,
                false => IndexLock::take(&checkout.git_dir, wanted.landing, self.lock_wait())?,
            };
            if let Some(plan) = plan {
                recovered = self.end_swap(wanted, checkout, stage, &plan, recovered)?;
            }
            drop(lock);
        }
        let is_moved = recovered == Recovered::Landed;
        self.recover_stash(wanted, is_moved, checkout, stage)?;
        self.settle_originals(wanted.landing, checkout, stage)
            .map_err(at(&stage.path))?;
        // Whoever asked for another landing is told, too.
        for kept in self
            .landing(wanted.landing)
            .into_iter()
            .flat_map(|one| one.kept_changes)
        {
            let notice = format!("{}; get it back: {}", kept.text(), kept.command);
            self.trees.engine.notice(notice);
        }
        stage.remove().map_err(at(&stage.path))?;
        Ok(recovered)
    }

    /// What can't be put back is kept where it is, under a name that no landing has.
    fn give_up(&self, wanted: &Move, stage: &Stage) -> Result<Recovered, LandError> {
        if stage.is_there() {
            let kept = stage.path.with_extension("kept");
            fs::rename(&stage.path, &kept).map_err(at(&kept))?;
            self.trees.engine.notice(format!(
                "files that landing {} took out of it are kept in {}",
                wanted.landing,
                kept.display()
            ));
        }
        stage.remove().map_err(at(&stage.path))?;
        self.verdict(wanted)
    }

    /// Whether everything is there that a plan speaks of. Without the stage there is nothing to put back from, and a
    /// checkout that git forgot has no index to go by.
    fn can_end(&self, wanted: &Move, checkout: &Checkout, stage: &Stage) -> bool {
        let folders = [&checkout.path, &checkout.git_dir];
        let gone = folders.into_iter().find(|folder| !folder.is_dir());
        let gone = gone.or_else(|| Some(&stage.path).filter(|_| !stage.is_there()));
        if let Some(gone) = gone {
            self.trees.engine.notice(format!(
                "{} is gone, so files of landing {} may be left in {}",
                gone.display(),
                wanted.landing,
                checkout.path.display()
            ));
        }
        gone.is_none()
    }

    /// Ends what a plan says, under the index's lock.
    fn end_swap(
        &self,
        wanted: &Move,
        checkout: &Checkout,
        stage: &Stage,
        plan: &Plan,
        verdict: Recovered,
    ) -> Result<Recovered, LandError> {
        let swap =
            Swap::open(&checkout.path, &stage.files(), &stage.old()).map_err(at(&checkout.path))?;
        let index = self.index_of(checkout)?;
        let is_in_place = !stage.holds_index();
        let may_move = verdict == Recovered::TakenBack
            && is_in_place
            && self.tip_of(&wanted.target)?.as_deref() == Some(&wanted.old)
            && self.holds_landing(wanted, &index)?;
        if may_move {
            self.end_ref(wanted, checkout)?;
            self.rescue_late(stage, &swap, plan);
            return Ok(Recovered::Landed);
        }
        if verdict == Recovered::Landed && is_in_place {
            self.rescue_late(stage, &swap, plan);
            return Ok(verdict);
        }
        // The target had moved before the checkout followed.
        let now = read_bytes(&stage.index).map_err(at(&stage.index))?;
        let is_untouched = now == read_bytes(&stage.old_index()).map_err(at(&stage.path))?;
        if verdict == Recovered::Landed && is_untouched && stage.new_index().exists() {
            let ended = swap.forward(plan, || {});
            if ended.is_ok() {
                self.refresh(checkout, stage, &stage.new_index())?;
                stage
                    .replace_index(&stage.new_index())
                    .map_err(at(&stage.index))?;
                self.rescue_late(stage, &swap, plan);
                return Ok(verdict);
            }
        }
        let is_old = |entry: &Entry| {
            let now = index.get(&entry.path.0).map(|side| &side.id);
            now == entry.old_id.as_ref()
        };
        let left = swap.back(plan, is_old).map_err(at(&checkout.path))?;
        self.rescue(plan.landing, &plan.checkout, stage, left)
            .map_err(at(&stage.path))?;
        Ok(verdict)
    }

    /// Moves the ref of a landing whose files and index are in place.
    fn end_ref(&self, wanted: &Move, checkout: &Checkout) -> Result<(), LandError> {
        let common = self.trees.place.repository().common_dir();
        let objects = transfer(
            self.trees.vault().path(),
            common,
            &[&wanted.new],
            &[&wanted.old],
        )?;
        let on = self.checkout_of(&wanted.target)?;
        let checkout = Some(checkout).filter(|checkout| on.as_ref() == Some(*checkout));
        let open = self.prepare_refs(wanted, checkout)?;
        self.commit_refs(wanted, checkout, open)?;
        drop(objects);
        Ok(())
    }

    /// Whether no path of the index was taken back to what it was before the landing.
    fn holds_landing(&self, wanted: &Move, index: &Index) -> Result<bool, LandError> {
        let raw = Git::new(self.trees.vault().path(), "diff-tree")
            .args(["-r", "-z", "--raw", "--no-renames", "--no-abbrev"])
            .args([&wanted.old, &wanted.new])
            .run()?;
        let touched = touched::parse(&raw)?;
        let is_old = |one: &touched::Touched| index.get(&one.path) == one.old.as_ref();
        Ok(!touched.iter().any(|(_, one)| is_old(one)))
    }

    fn place_of(&self, intent: &MoveIntent, wanted: &Move) -> Option<(Checkout, Stage)> {
        let checkout = Checkout {
            path: intent.checkout.clone()?,
            git_dir: intent.git_dir.clone(),
        };
        let path = intent.stage.clone()?;
        let stage = Stage::at(self.trees.place.private(), path, &checkout, wanted.landing);
        Some((checkout, stage))
    }

    fn index_of(&self, checkout: &Checkout) -> Result<Index, LandError> {
        let listed = Git::new(&checkout.git_dir, "ls-files")
            .work_tree(&checkout.path)
            .args(["-s", "-z"])
            .run()?;
        let entry = |line: &[u8]| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            let head = std::str::from_utf8(&line[..tab]).ok()?;
            let mut words = head.split(' ');
            let side = Side {
                mode: words.next()?.to_owned(),
                id: words.next()?.to_owned(),
            };
            Some((line[tab + 1..].to_vec(), side))
        };
        Ok(listed.split(|byte| *byte == 0).filter_map(entry).collect())
    }
}

fn move_of<'l>(landing: &'l Landing, fence: &str) -> Option<(Move, &'l MoveIntent)> {
    let wanted = Move {
        landing: landing.id,
        target: landing.target.clone(),
        old: landing.old_tip.clone()?,
        new: landing.new_tip.clone()?,
        fence: fence.to_owned(),
    };
    Some((wanted, landing.intent.as_ref()?))
}

/// Takes away the lock files of a git that died with its caller. One whose caller alone died does it itself.
fn clear_locks(
    intent: &MoveIntent,
    place: Option<&(Checkout, Stage)>,
    wanted: &Move,
    age: Duration,
) -> Result<(), LandError> {
    let plan = match place {
        Some((checkout, stage)) => Plan::of(stage, checkout).map_err(at(&stage.path))?,
        None => None,
    };
    let mut noted: Vec<LockNote> = plan.map_or_else(Vec::new, |plan| plan.locks);
    noted.retain(|note| intent.locks.contains(&note.path));
    let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
    let ours = intent.locks.iter().filter(|path| !is_of_index(path));
    let ours: Vec<_> = ours.cloned().collect();
    let deadline = Instant::now() + GRACE;
    while ours.iter().any(is_there) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
    noted.iter().for_each(LockNote::clear);
    for path in ours.iter().filter(|path| is_leftover(path, wanted, age)) {
        let _ = fs::remove_file(path);
    }
    Ok(())
}

fn is_of_index(path: &Path) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    name == "index.lock" || name.starts_with(crate::refusal::STAGE_PREFIX)
}

/// A lock that says what this move would have written, or nothing, and is old enough.
fn is_leftover(path: &Path, wanted: &Move, age: Duration) -> bool {
    let Ok(Some(text)) = read_small(path, 4096) else {
        return false;
    };
    let is_ours = text.trim().is_empty() || text.trim() == wanted.new || text.trim() == wanted.old;
    is_ours && is_older(path, age)
}

/// Whether a file was written at least so long ago.
pub(super) fn is_older(path: &Path, age: Duration) -> bool {
    let written = path.symlink_metadata().and_then(|found| found.modified());
    written.is_ok_and(|time| time.elapsed().is_ok_and(|old| old >= age))
}
