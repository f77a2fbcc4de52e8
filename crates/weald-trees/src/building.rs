//! Making a tree on disk: vault, build beside its place, register, branch, rename. What fails is taken back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use weald_core::tree::{DirectoryIdentity, Tree, TreeKind};
use weald_git::{
    Door, Expected, NewRegistration, RefChange, Reference, create_branch, transfer, update_refs,
};

use super::locking::locked_text;
use super::planning::Plan;
use super::pool::Population;
use super::privacy::close_to_others;
use super::setup::Setup;
use super::site::{identity_of, leads_to, pointer_text};
use super::{TreeError, Trees, at, delete};
use weald_control::excludes;
use weald_control::marker::{self, TreeNote};
use weald_control::steps::step;

/// How long a tree that came from a spare waits for a look at main.
const PATIENCE: Duration = Duration::from_millis(3);

/// A tree that was made.
pub(super) struct Built {
    pub tree: Tree,
    pub population: Population,
    pub setup: Setup,
    pub notes: Vec<String>,
}

impl Trees<'_> {
    /// Brings what the tree needs into the vault; answers what should be known about it.
    fn feed_for(&self, plan: &Plan, kind: TreeKind) -> Result<Vec<String>, TreeError> {
        let mut notes = Vec::new();
        match kind {
            TreeKind::Sealed => {
                notes.extend(self.feed(plan)?);
                self.require_files(&plan.start)?;
            }
            // It lives without the vault; a spare that is brought forward does not.
            TreeKind::Linked if plan.pool => drop(self.feed(plan)),
            TreeKind::Linked => {}
        }
        Ok(notes)
    }

    /// Everything on disk, then the record.
    pub(super) fn build(&self, plan: &Plan, tree: &Tree) -> Result<Built, TreeError> {
        let mut notes = plan.notes.clone();
        let root = tree.path.parent().unwrap_or(&tree.path);
        fs::create_dir_all(root).map_err(at(root))?;
        if plan.dedicated {
            marker::mark(root, self.common_dir()).map_err(at(root))?;
        }
        self.exclude(root)?;
        let root = root.canonicalize().map_err(at(root))?;
        let building = root.join(building(tree).file_name().unwrap_or_default());
        notes.extend(self.feed_for(plan, tree.kind)?);
        step("create.fed");
        self.delete_home_layer(tree)?;
        self.go_on()?;
        let index = self.new_index(tree);
        let spare = self.take_spare(plan, tree, &building)?;
        // A spare is here before main could be looked through.
        let dirty = match spare.is_none() || self.is_small_main() {
            true => self.dirty_main(),
            false => None,
        };
        let population = match spare {
            Some(population) => population,
            None => self.copy_or_check_out(plan, tree, &building, &index)?,
        };
        step("create.populated");
        self.go_on()?;
        self.finish_files(plan, tree, &building, &index)?;
        let setup = self.bring_files(tree, &building, &index)?;
        // Nobody's work is in a spare yet, and its large files are old: a power cut now costs an empty tree.
        if population != Population::Spare {
            sync_small_files(&building)?;
        }
        close_to_others(&building, None).map_err(at(&building))?;
        step("create.built");
        self.go_on()?;
        let identity = identity_of(&building)?;
        self.keep_replaced(plan, tree)?;
        let registration = self.register(tree, identity, Some(&index))?;
        step("create.registered");
        self.make_branch(plan, tree).inspect_err(|_| {
            // Without the registration nobody takes somebody else's branch for this call's.
            let _ = self.registrations().remove(&registration);
        })?;
        step("create.branched");
        if let Some(upstream) = &plan.upstream
            && let Err(error) = self.follow_upstream(&tree.branch, upstream)
        {
            notes.push(format!(
                "{} does not follow {upstream}: {error}",
                tree.branch
            ));
        }
        self.go_on()?;
        if tree.kind == TreeKind::Linked {
            self.write_pointer(&building, &registration)?;
        }
        renameat_with(CWD, &building, CWD, &tree.path, RenameFlags::NOREPLACE).map_err(
            |error| match error {
                rustix::io::Errno::EXIST | rustix::io::Errno::NOTEMPTY => {
                    TreeError::occupied(tree.path.clone())
                }
                error => at(&tree.path)(error.into()),
            },
        )?;
        step("create.renamed");
        if let Some(state) = &self.host.state {
            // An index that can't be written leaves the marker.
            let _ = marker::index(state, &tree.path, self.common_dir());
        }
        let tree = self.activate(tree, identity, registration)?;
        step("create.recorded");
        // A warm create does not wait for a look at main that takes longer than itself.
        let patience = (population == Population::Spare).then_some(PATIENCE);
        notes.extend(dirty.and_then(|main| main.told(patience)));
        Ok(Built {
            tree,
            population,
            setup,
            notes,
        })
    }

    /// Where the index of a linked tree waits for its registration.
    pub(super) fn new_index(&self, tree: &Tree) -> PathBuf {
        self.workshop().join(format!("index-{}", tree.id))
    }

    /// The branch in main: made, or left where it is reused.
    fn make_branch(&self, plan: &Plan, tree: &Tree) -> Result<(), TreeError> {
        if plan.replaced.is_none() && self.branch_tip(&tree.branch)?.as_ref() == Some(&plan.start) {
            return Ok(());
        }
        let git_dir = self.common_dir();
        let why = format!("weald: tree {}", tree.name);
        if plan.replaced.is_none() && plan.is_in_main {
            let now = self.now()?.as_second();
            let workshop = self.workshop();
            let made = || create_branch(git_dir, &workshop, &tree.branch, &plan.start, &why, now);
            return Ok(self.change_main(made)?);
        }
        let branch = RefChange {
            name: format!("refs/heads/{}", tree.branch),
            new: Some(plan.start.clone()),
            expected: match &plan.replaced {
                Some(old) => Expected::Holds(old.clone()),
                None => Expected::Absent,
            },
        };
        let is_here = self.repository().has_object(&plan.start)?;
        // A gc in main may have taken what no ref held; the vault has it.
        let kept = match is_here || tree.kind == TreeKind::Linked {
            true => None,
            false => Some(transfer(self.vault().path(), git_dir, &[&plan.start], &[])?),
        };
        self.update_main(&[branch], &why)?;
        drop(kept);
        Ok(())
    }

    /// A branch that is made anew: its old tip stays in the vault.
    fn keep_replaced(&self, plan: &Plan, tree: &Tree) -> Result<(), TreeError> {
        let Some(old) = &plan.replaced else {
            return Ok(());
        };
        self.vault().require(&plan.refs, &[old])?;
        let kept = RefChange::set(
            format!("refs/tree/{}/old/1", tree.id),
            old.clone(),
            Expected::Any,
        );
        Ok(update_refs(self.vault().path(), &[kept], "weald: kept")?)
    }

    fn feed(&self, plan: &Plan) -> Result<Option<String>, TreeError> {
        let mut wanted = vec![plan.start.as_str(), plan.tree.base.commit.as_str()];
        wanted.extend(plan.target_tip.as_deref());
        wanted.sort_unstable();
        wanted.dedup();
        let told = self.vault().require(&plan.refs, &wanted)?;
        if self.vault().wants_upkeep() {
            let now = std::time::SystemTime::from(self.now()?);
            // Upkeep that fails costs room, nothing else.
            let _ = self.vault().maintain_if_wanted(now);
        }
        Ok(told)
    }

    /// Puts the tree into main's `worktrees/`.
    pub(crate) fn register(
        &self,
        tree: &Tree,
        identity: DirectoryIdentity,
        index: Option<&Path>,
    ) -> Result<String, TreeError> {
        let note = TreeNote {
            tree: tree.id,
            identity,
        };
        let locked = locked_text(tree);
        let settings = match tree.kind {
            TreeKind::Linked => self.checkout_settings(),
            TreeKind::Sealed => Vec::new(),
        };
        let new = NewRegistration {
            name: tree.name.as_str(),
            path: &tree.path,
            head: Reference::Symbolic(format!("refs/heads/{}", tree.branch)),
            locked: locked.as_deref(),
            note: &note.to_text(),
            index: index.filter(|index| index.is_file()),
            settings: &settings,
        };
        let registrations = self.registrations();
        registrations
            .add(&new)
            .map_err(at(&registrations.directory(tree.name.as_str())))
    }

    /// What a checkout of main's has for itself, as git gives it to a new worktree: a sparse one is sparse there, too.
    fn checkout_settings(&self) -> Vec<(&'static str, Vec<u8>)> {
        let common_dir = self.common_dir();
        let mut found = Vec::new();
        if let Ok(text) = fs::read_to_string(common_dir.join("config.worktree")) {
            let is_places = |line: &str| {
                let line = line.trim_start().to_ascii_lowercase();
                line.starts_with("worktree") || line.starts_with("bare")
            };
            let kept = text.lines().filter(|line| !is_places(line));
            let text: String = kept.map(|line| format!("{line}\n")).collect();
            found.push(("config.worktree", text.into_bytes()));
        }
        if let Ok(patterns) = fs::read(common_dir.join("info/sparse-checkout")) {
            found.push(("info/sparse-checkout", patterns));
        }
        found
    }

    fn write_pointer(&self, building: &Path, registration: &str) -> Result<(), TreeError> {
        let directory = self.registrations().directory(registration);
        let text = pointer_text(&directory);
        let door = Door::open(building).map_err(at(building))?;
        door.write(".git", text.as_bytes()).map_err(at(building))
    }

    /// Refuses while something is where a tree is to be made: its number is new, so it is somebody else's.
    pub(super) fn require_free_building(&self, tree: &Tree) -> Result<(), TreeError> {
        let path = building(tree);
        match path.symlink_metadata() {
            Ok(_) => Err(TreeError::occupied(path)),
            Err(_) => Ok(()),
        }
    }

    /// Clears the place where a tree is made again of what an earlier try left there, and of nothing else.
    pub(super) fn clear_building(&self, tree: &Tree) -> Result<(), TreeError> {
        let path = building(tree);
        let name = tree.registration_name();
        let git_dir = self.registrations().directory(name);
        let door = Door::open(&path).ok();
        let pointer = door.and_then(|door| door.read(".git", 64 * 1024).ok());
        let is_linked = pointer.is_some_and(|text| leads_to(&path, &text, &git_dir));
        if is_linked || self.is_left_from_here(&path) {
            delete(&path).map_err(at(&path))?;
        }
        match fs::remove_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(TreeError::occupied(path)),
            _ => Ok(()),
        }
    }

    /// A creation that failed leaves nothing: not the directory, not the registration, not a branch of this call's.
    pub(super) fn take_back(&self, plan: &Plan, tree: &Tree) {
        let _ = delete(&building(tree));
        let _ = fs::remove_file(self.new_index(tree));
        let registrations = self.registrations();
        for known in registrations.list().unwrap_or_default() {
            if let Some(note) = TreeNote::of(&known).filter(|note| note.tree == tree.id) {
                // Renamed already: nobody has worked in it yet.
                if identity_of(&tree.path).ok() == Some(note.identity) {
                    if let Some(state) = &self.host.state {
                        marker::forget(state, &tree.path);
                    }
                    let _ = delete(&tree.path);
                }
                let _ = registrations.remove(&known.name);
                let name = format!("refs/heads/{}", tree.branch);
                let back = RefChange {
                    name,
                    new: plan.replaced.clone(),
                    expected: Expected::Holds(plan.start.clone()),
                };
                if !plan.reused {
                    let _ = self.update_main(&[back], "weald: tree not made");
                }
            }
        }
        if let Some(state) = &self.host.state {
            marker::unindex(state, &tree.path);
        }
        let root = tree.path.parent().unwrap_or(&tree.path);
        // Only where it holds nothing but the marker.
        if plan.dedicated && fs::read_dir(root).is_ok_and(|entries| entries.count() <= 1) {
            let _ = fs::remove_file(root.join(marker::MARKER));
            let _ = fs::remove_dir(root);
        }
    }

    /// Roots inside the repository are told to git's own exclude file, never to a tracked one.
    pub fn exclude(&self, root: &Path) -> Result<(), TreeError> {
        let repo = self.place.root();
        let Ok(inside) = root.strip_prefix(&repo) else {
            return Ok(());
        };
        if inside.starts_with(".git") || inside.as_os_str().is_empty() {
            return Ok(());
        }
        let line = format!("/{}/", inside.display());
        let common_dir = self.common_dir();
        excludes::add(common_dir, self.place.private(), &[&line])
            .map_err(at(&common_dir.join("info/exclude")))
    }
}

/// Where a tree is built: beside its place, so that the rename is one step.
pub fn building(tree: &Tree) -> PathBuf {
    tree.path.with_file_name(format!(".weald-new-{}", tree.id))
}

/// What can't be made again is on disk afterwards.
fn sync_small_files(path: &Path) -> Result<(), TreeError> {
    // Small files of the inner repository; the work tree's files can be made again from the vault.
    let names = [
        ".git/HEAD",
        ".git/config",
        ".git/packed-refs",
        ".git/objects/info/alternates",
        ".git/index",
        ".",
    ];
    let door = &Door::open(path).map_err(at(path))?;
    let synced = thread::scope(|scope| {
        let started = names.map(|name| scope.spawn(move || door.sync(name)));
        let lost = |_| Err(io::Error::other("a thread was lost"));
        let mut ended = started.into_iter();
        ended.try_for_each(|one| one.join().unwrap_or_else(lost))
    });
    synced.map_err(at(path))
}
