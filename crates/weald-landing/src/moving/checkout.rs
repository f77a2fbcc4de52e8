//! Where a branch is checked out, and whether that checkout can be moved.
//!
//! Read from files: the main checkout's HEAD and those in `worktrees/`. A checkout in the middle of something, or one that
//! is not where it should be, refuses the landing; a checkout of anything else is none of its business.

use std::fs;
use std::path::{Path, PathBuf};

use weald_git::{Git, GitError, Reference, tabled_ref};

use super::super::LandError;
use crate::Landings;
use crate::refusal::Refusal;
use weald_control::files::read_small;
use weald_trees::leads_to;

/// A checkout and the git directory that is its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checkout {
    pub path: PathBuf,
    /// Its HEAD and its index are here.
    pub git_dir: PathBuf,
}

/// A HEAD of the repository. `None` for a path that can't be told.
struct Seat {
    path: Option<PathBuf>,
    git_dir: PathBuf,
    head: Option<Reference>,
}

/// How much of a small file is read.
const LIMIT: u64 = 64 * 1024;

/// What git leaves in a git directory while something goes on, and what that is called.
const OPERATIONS: [(&str, &str); 7] = [
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase or am"),
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("sequencer", "a cherry-pick or revert"),
    ("BISECT_LOG", "a bisect"),
];

impl Landings<'_> {
    /// The checkout that moves with `target`; `None` if it is not checked out. One that can't be moved now is refused.
    pub(super) fn checkout_of(&self, target: &str) -> Result<Option<Checkout>, LandError> {
        let full = format!("refs/heads/{target}");
        let on_target = Reference::Symbolic(full.clone());
        let mut found = Vec::new();
        for seat in self.seats()? {
            let is_on = seat.head.as_ref() == Some(&on_target);
            match operation(&seat.git_dir) {
                Some(operation) if is_on || works_on(&seat.git_dir, &full) => {
                    let place = seat.path.unwrap_or(seat.git_dir);
                    return Err(Refusal::TargetInOperation(operation, place).into());
                }
                _ if is_on => found.push(seat),
                _ => {}
            }
        }
        if found.len() > 1 {
            let checkouts = found.iter().filter_map(|seat| seat.path.as_deref());
            return Err(Refusal::CheckedOutTwice(
                target.to_owned(),
                checkouts.map(|path| path.display().to_string()).collect(),
            )
            .into());
        }
        found
            .pop()
            .map(|seat| require_place(seat, target))
            .transpose()
    }

    fn seats(&self) -> Result<Vec<Seat>, LandError> {
        let repository = self.trees.place.repository();
        let common = repository.common_dir();
        let mut seats = Vec::new();
        if let Some(path) = self.main_checkout()? {
            seats.push(Seat {
                path,
                git_dir: common.to_owned(),
                head: self.head_of(common)?,
            });
        }
        let registrations = self.trees.registrations();
        for entry in registrations.list().map_err(weald_trees::at(common))? {
            let git_dir = registrations.directory(&entry.name);
            seats.push(Seat {
                path: entry.path().map(Path::to_owned),
                head: self.head_of(&git_dir)?,
                git_dir,
            });
        }
        Ok(seats)
    }

    /// The main checkout: `None` in a bare repository, `Some(None)` if there is one at a place nobody knows. Asked once.
    fn main_checkout(&self) -> Result<Option<Option<PathBuf>>, GitError> {
        if let Some(known) = self.known_main.get() {
            return Ok(known.clone());
        }
        let found = self.configured_main()?;
        Ok(self.known_main.get_or_init(|| found).clone())
    }

    fn configured_main(&self) -> Result<Option<Option<PathBuf>>, GitError> {
        let repository = self.trees.place.repository();
        let common = repository.common_dir();
        let said = Git::with_own_config(common, "config")
            .args(["-z", "--get-regexp", r"^core\.(bare|worktree)$"])
            .output()?
            .stdout;
        let said = String::from_utf8_lossy(&said).into_owned();
        let mut path = None;
        let mut is_bare = false;
        for (key, value) in said.split('\0').filter_map(|line| line.split_once('\n')) {
            match key {
                "core.bare" => is_bare = ["true", "yes", "on", "1"].contains(&value),
                _ => path = common.join(value).canonicalize().ok(),
            }
        }
        if is_bare {
            return Ok(None);
        }
        let named_dot_git = common.file_name().is_some_and(|name| name == ".git");
        let above = common.parent().filter(|_| named_dot_git);
        let here = repository
            .checkout()
            .filter(|_| repository.git_dir() == common);
        Ok(Some(path.or_else(|| above.or(here).map(Path::to_owned))))
    }

    pub(super) fn head_of(&self, git_dir: &Path) -> Result<Option<Reference>, LandError> {
        // One that can't be read may be on the target.
        if self.trees.place.repository().has_reftable() {
            return Ok(tabled_ref(git_dir, "HEAD")?);
        }
        let file = git_dir.join("HEAD");
        let text = read_small(&file, LIMIT).map_err(weald_trees::at(&file))?;
        Ok(text.and_then(|text| Reference::parse(&text)))
    }
}

fn operation(git_dir: &Path) -> Option<&'static str> {
    let found = OPERATIONS
        .iter()
        .find(|(name, _)| git_dir.join(name).symlink_metadata().is_ok());
    found.map(|(_, what)| *what)
}

/// Whether something that goes on with a detached HEAD will come back to the branch.
fn works_on(git_dir: &Path, full: &str) -> bool {
    let says = |file: &str, name: &str| {
        let text = read_small(&git_dir.join(file), LIMIT).ok().flatten();
        text.is_some_and(|text| text.trim() == name)
    };
    let short = full.strip_prefix("refs/heads/").unwrap_or(full);
    says("rebase-merge/head-name", full)
        || says("rebase-apply/head-name", full)
        || says("BISECT_START", short)
}

/// The checkout has to be there, and to be the one that the git directory speaks of.
fn require_place(seat: Seat, target: &str) -> Result<Checkout, LandError> {
    let target = target.to_owned();
    let Some(path) = seat.path else {
        return Err(Refusal::CheckoutUnknown(target).into());
    };
    if !path.is_dir() {
        return Err(Refusal::CheckoutGone(target, path).into());
    }
    let dot_git = path.join(".git");
    let is_own = match fs::symlink_metadata(&dot_git) {
        Ok(found) if found.is_file() => {
            let text = weald_control::files::read_small_bytes(&dot_git, LIMIT)
                .ok()
                .flatten();
            leads_to(&path, &text.unwrap_or_default(), &seat.git_dir)
        }
        _ => matches!(
            (dot_git.canonicalize(), seat.git_dir.canonicalize()),
            (Ok(found), Ok(own)) if found == own
        ),
    };
    // With core.worktree the files say nothing of their repository.
    let is_main = seat.git_dir.join("objects").is_dir();
    let is_apart = is_main && dot_git.symlink_metadata().is_err();
    if !is_own && !is_apart {
        return Err(Refusal::CheckoutReplaced(target, path).into());
    }
    Ok(Checkout {
        path,
        git_dir: seat.git_dir,
    })
}
