//! Checks of single trees. Of one that should be there: its directory, its repository, and how git and commands inside find it.
//! Operations on one that were cut short are finished or taken back.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use weald_core::name::TreeName;
use weald_core::tree::{Tree, TreeKind, TreeStatus};
use weald_git::{Door, Reference};

use super::locks::told_age;
use super::{entries, records};
use crate::finding::{Finding, Found};
use crate::leftovers::CHECK;
use crate::repair::{OfTree, Repair};
use crate::survey::{Survey, points_at};
use crate::{Code, Severity};
use weald_trees::TreeError;
use weald_trees::building::building;
use weald_trees::locked_text;
use weald_trees::purging::{going, is_the_tree};
use weald_trees::repairs::Borrowing;

/// A lock in a tree is reported when it is older.
const LOCK_STALE: Duration = Duration::from_secs(600);

/// Looks at every tree that no process works on.
pub(super) fn check(survey: &Survey<'_>) -> Found {
    let mut found = Vec::new();
    for tree in survey.records()? {
        let one = One { survey, tree };
        if !survey.is_worked_on(tree) {
            let of_tree = one.check().into_iter();
            found.extend(of_tree.map(|finding| finding.of(tree)));
        }
    }
    found.extend(records::paths(survey)?);
    Ok(found)
}

/// What shows of these trees only since their pointer leads there again.
pub(super) fn behind_pointers(survey: &Survey<'_>, led: &[TreeName]) -> Found {
    let is_led = |tree: &&Tree| led.contains(&tree.name) && survey.trees.site(tree).is_ok();
    let found = survey.live()?.filter(is_led).flat_map(|tree| {
        let found = One { survey, tree }.present().into_iter();
        found.map(|finding| finding.of(tree)).collect::<Vec<_>>()
    });
    Ok(found.collect())
}

/// One tree, as it is looked at.
struct One<'s, 'a> {
    survey: &'s Survey<'a>,
    tree: &'s Tree,
}

impl One<'_, '_> {
    fn check(&self) -> Vec<Finding> {
        match self.tree.status {
            TreeStatus::Creating => vec![self.unfinished_creation()],
            TreeStatus::Trashed => self.trashed().into_iter().collect(),
            TreeStatus::Removed => self.half_made().into_iter().collect(),
            _ if self.tree.removing => vec![self.unfinished_removal()],
            _ => self.live(),
        }
    }

    fn repair(&self, finding: Finding, repair: OfTree) -> Finding {
        finding.repair(Repair::of(self.tree, repair))
    }

    /// A creation that was interrupted: finished if everything is there, else taken back.
    fn unfinished_creation(&self) -> Finding {
        let name = &self.tree.name;
        let (what, would) = match self.survey.trees.unrecorded(self.tree) {
            Some(_) => (
                format!("worktree {name} was created but not recorded"),
                "record it",
            ),
            None => (
                format!("the creation of worktree {name} was interrupted"),
                "undo it",
            ),
        };
        let finding = Finding::new(Code::CreateUnfinished, what, would);
        self.repair(finding, OfTree::EndCreation)
    }

    /// A removal that was interrupted: finished if the directory is in the trash, else called off.
    fn unfinished_removal(&self) -> Finding {
        let in_trash = self.survey.trees.in_trash(self.tree);
        let is_away = self.tree.path.symlink_metadata().is_err();
        let (would, repair) = match in_trash.filter(|_| is_away) {
            Some(path) => ("finish it", OfTree::FinishRemoval(path)),
            None => ("cancel it", OfTree::CancelRemoval),
        };
        let what = format!("the removal of worktree {} was interrupted", self.tree.name);
        let finding = Finding::new(Code::RemoveUnfinished, what, would);
        self.repair(finding, repair)
    }

    fn trashed(&self) -> Option<Finding> {
        let (trees, tree) = (self.survey.trees, self.tree);
        let trash = tree.trash.as_ref()?;
        if let Err(error) = trees.require_in_trash(tree, &trash.path) {
            let would = "check it; weald does not touch anything there";
            return Some(Finding::new(Code::TrashOutside, error.to_string(), would));
        }
        let is_tree = |path: &Path| is_the_tree(tree, path);
        let going = going(tree, &trash.path);
        // Whatever else is called so is reported as unknown.
        if is_tree(&going) {
            return Some(self.unfinished_purge("finish it", OfTree::FinishPurge(Some(going))));
        }
        if is_tree(&trash.path) {
            let kept = || self.unfinished_purge("keep it in the trash", OfTree::StayInTrash);
            return tree.removing.then(kept);
        }
        if is_tree(&tree.path) {
            let what = format!(
                "worktree {} is back from the trash, but not recorded",
                tree.name
            );
            let finding = Finding::new(Code::RestoreUnfinished, what, "restore it");
            return Some(self.repair(finding, OfTree::Restore(trash.clone())));
        }
        if tree.removing {
            return Some(self.unfinished_purge("finish it", OfTree::FinishPurge(None)));
        }
        let (name, place) = (&tree.name, trash.path.display());
        let (what, would) = match trash.path.symlink_metadata() {
            Ok(_) => (
                format!("another directory is where the trash had worktree {name}: {place}"),
                adoption(&trash.path),
            ),
            Err(_) => (
                format!("{place} is no longer in the trash"),
                "its commits are in the vault; to remove its record: weald clean --trash"
                    .to_owned(),
            ),
        };
        Some(Finding::new(Code::TrashMissing, what, would))
    }

    /// A purge that may have begun to delete.
    fn unfinished_purge(&self, would: &str, repair: OfTree) -> Finding {
        let what = format!("the purge of worktree {} was interrupted", self.tree.name);
        let finding = Finding::new(Code::PurgeUnfinished, what, would);
        self.repair(finding, repair)
    }

    /// What a failed creation may have left when it could not clear it.
    fn half_made(&self) -> Option<Finding> {
        let path = building(self.tree);
        path.symlink_metadata().ok()?;
        let place = path.display();
        // Its name proves nothing. A tree that was made was not left half-made, and what weald makes borrows from the vault.
        if self.tree.identity.is_none() && self.survey.trees.is_left_from_here(&path) {
            let what = format!("{place} is left over from creating a worktree");
            let repair = Repair::of(self.tree, OfTree::ClearCreation);
            return Some(Finding::leftover(what, repair));
        }
        let what = format!("{place} may be left over from creating a worktree");
        Some(Finding::new(Code::Leftover, what, CHECK))
    }

    fn live(&self) -> Vec<Finding> {
        let (trees, tree) = (self.survey.trees, self.tree);
        let mut found: Vec<_> = self.unended_runs().collect();
        match trees.site(tree) {
            Ok(_) => found.extend(self.present()),
            Err(TreeError::Missing { .. }) => found.push(self.missing()),
            Err(TreeError::Damaged { .. }) if tree.kind == TreeKind::Linked => {
                found.push(match trees.other_repository(tree) {
                    Some(why) => {
                        let what = format!(
                            "worktree {} belongs to another repository: {why}",
                            tree.name
                        );
                        let would = "check what is there; weald does not touch it";
                        Finding::new(Code::TreeReplaced, what, would)
                    }
                    None => {
                        let what =
                            format!("the .git file of worktree {} points elsewhere", tree.name);
                        let finding = Finding::new(Code::PointerWrong, what, "write it again");
                        self.repair(finding, OfTree::WritePointer)
                    }
                });
            }
            Err(error @ TreeError::Damaged { .. }) => found.push(self.damaged(error.to_string())),
            Err(error) => {
                let would = adoption(&tree.path);
                found.push(Finding::new(Code::TreeReplaced, error.to_string(), would));
            }
        }
        found
    }

    fn unended_runs(&self) -> impl Iterator<Item = Finding> {
        let is_gone = |process| !self.survey.trees.may_live(process);
        let runs = self.tree.runs.iter();
        runs.filter(move |run| is_gone(&run.process)).map(|run| {
            let what = format!(
                "the end of a run of {} in {} was not recorded",
                run.program, self.tree.name
            );
            let finding = Finding::new(Code::RunUnfinished, what, "record its end");
            self.repair(finding, OfTree::EndRun(run.process.clone()))
        })
    }

    /// The directory is not where it was: perhaps it was moved.
    fn missing(&self) -> Finding {
        let name = &self.tree.name;
        let what = format!("worktree {name} is not at {}", self.tree.path.display());
        match self.survey.whereabouts.of(self.survey.trees, self.tree) {
            Some(path) => {
                let what = format!("{what}, but at {}", path.display());
                let finding = Finding::new(Code::TreeMoved, what, "record the new place");
                self.repair(finding, OfTree::AcceptMove(path))
            }
            None => {
                let would = format!(
                    "to recreate it: weald ensure {name}; to remove its record: weald rm {name}"
                );
                Finding::new(Code::TreeMissing, what, would)
            }
        }
    }

    fn damaged(&self, what: String) -> Finding {
        let would = format!(
            "its files are still there; to move them to the trash: weald rm --discard {}",
            self.tree.name
        );
        Finding::new(Code::TreeDamaged, what, would)
    }

    /// One whose directory is there.
    fn present(&self) -> Vec<Finding> {
        let mut found = self.repository();
        found.extend(self.entry());
        if self.tree.kind == TreeKind::Sealed {
            found.extend(self.borrowing());
        }
        if !self.survey.trees.is_findable(self.tree) {
            let what = format!(
                "commands inside worktree {} would not find the repository",
                self.tree.name
            );
            let finding = Finding::new(Code::MarkerLost, what, "write the marker");
            found.push(self.repair(finding, OfTree::WriteMarkers));
        }
        found
    }

    /// What keeps git from working in a sealed tree. Nothing of it is weald's to repair: an agent may have meant it.
    fn repository(&self) -> Vec<Finding> {
        let tree = self.tree;
        let mut found = Vec::new();
        let Ok((_, door)) = self.survey.trees.opened(tree) else {
            return found;
        };
        if tree.kind == TreeKind::Sealed {
            let head = door.read(".git/HEAD", 4096).ok();
            let text = head.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            let is_head = text.as_deref().and_then(Reference::parse).is_some();
            let lacks = match (is_head, door.has_directory(".git/refs")) {
                (true, true) => None,
                (false, _) if text.is_none() => Some("has no HEAD"),
                (false, _) => Some("has a HEAD that points to nothing"),
                (true, false) => Some("has no refs"),
            };
            let damage = |lacks| format!("the repository in worktree {} {lacks}", tree.name);
            found.extend(lacks.map(|lacks| self.damaged(damage(lacks))));
            found.extend(self.locks_inside(&door));
        }
        let user = rustix::process::geteuid().as_raw();
        let foreign = [tree.path.clone(), tree.path.join(".git")];
        let foreign = foreign.iter().find(|path| {
            let owner = path.symlink_metadata().map(|found| found.uid());
            owner.is_ok_and(|owner| owner != user)
        });
        found.extend(foreign.map(|path| {
            let what = format!("{} belongs to another user", path.display());
            let would = format!(
                "chown -R it back: git and weald work with your own files in {}",
                tree.path.display()
            );
            Finding::new(Code::TreeOwner, what, would)
        }));
        found
    }

    /// Locks of a git that was killed in the tree, while nothing of weald's runs there.
    fn locks_inside(&self, door: &Door) -> Vec<Finding> {
        if !self.survey.trees.running(self.tree).is_empty() {
            return Vec::new();
        }
        let locks = [".git/index.lock", ".git/HEAD.lock", ".git/config.lock"].into_iter();
        let found = locks.filter_map(|lock| {
            let age = door.age(lock).filter(|age| *age > LOCK_STALE)?;
            let (path, age) = (self.tree.path.join(lock), told_age(age));
            let path = path.display();
            let what = format!("{path} is {age} old");
            let would = format!("if no git is running in the worktree: rm {path}");
            Some(Finding::new(Code::TreeLock, what, would))
        });
        found.collect()
    }

    /// Whether git's entry leads to it, and shows its lock.
    fn entry(&self) -> Option<Finding> {
        let (trees, tree) = (self.survey.trees, self.tree);
        let name = tree.registration.as_deref().unwrap_or(tree.name.as_str());
        let known = trees.registrations().read(name);
        let is_broken = |known| entries::is_broken(self.survey, known);
        if known.as_ref().is_some_and(is_broken) {
            return None;
        }
        let points_here = known.as_ref().is_some_and(|known| points_at(known, tree));
        if let Some(identity) = tree.identity.filter(|_| !points_here) {
            let what = format!("worktree {} is not registered in the repository", tree.name);
            let finding = Finding::new(Code::RegistrationLost, what, "register it");
            return Some(self.repair(finding, OfTree::Register(identity)));
        }
        let shown = known?.locked;
        if shown
            .as_ref()
            .is_some_and(|shown| trees.was_lock(tree, shown))
        {
            let what = format!("git still shows the lock that {} had", tree.name);
            let finding = Finding::new(Code::ForeignLock, what, "remove the lock from git's list");
            return Some(self.repair(finding, OfTree::HideLock));
        }
        (shown != locked_text(tree) && tree.kind == TreeKind::Sealed).then(|| {
            let what = format!("the lock that git shows for {} is not weald's", tree.name);
            let path = tree.path.display();
            let would = format!("if it is not wanted: git worktree unlock {path}");
            Finding::new(Code::ForeignLock, what, would).rated(Severity::Info)
        })
    }

    /// A place that is there may serve: only what leads nowhere is written again.
    fn borrowing(&self) -> Option<Finding> {
        let name = &self.tree.name;
        match self.survey.trees.borrowing(self.tree) {
            Borrowing::Here => None,
            Borrowing::Nowhere(old) => {
                let what = format!("worktree {name} borrows objects from a place that is gone");
                let would = "point it at the vault; the old content is kept";
                let finding = Finding::new(Code::AlternatesBroken, what, would);
                Some(self.repair(finding, OfTree::Borrow(old)))
            }
            Borrowing::Odd(why) => {
                let what = format!("worktree {name} does not borrow from the vault: {why}");
                let path = self.tree.path.display();
                let would = format!("to see whether anything is missing: git -C {path} fsck");
                Some(Finding::new(Code::AlternatesBroken, what, would))
            }
        }
    }
}

/// What to do about another directory where a worktree was.
fn adoption(path: &Path) -> String {
    format!(
        "weald does not touch it; if you restored or copied it there: weald doctor --adopt {}",
        path.display()
    )
}
