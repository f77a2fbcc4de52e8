//! Every repair that upkeep has, and how it is done. A finding names its repair; nothing else in `doctor` and `sweep` changes
//! what they look at.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use weald_core::id::{LandingId, TaskId};
use weald_core::session::ProcessIdentity;
use weald_core::store::Durability;
use weald_core::tree::{DirectoryIdentity, Trash, Tree};
use weald_core::tree_rules::TreeInput;
use weald_git::{Door, EntryFault, MainRef, Vault, list_refs, set_aside};

use weald_control::marker::TreeNote;
use weald_control::place::Place;
use weald_landing::{LandError, Landings, Lease, Leftover};
use weald_trees::identity_of;
use weald_trees::{TreeError, Trees, at, delete};

#[derive(Debug, Clone)]
pub(crate) enum Repair {
    /// What the repair of the finding before this one repairs, too.
    WithLast,
    /// Deletes a folder or a file that nothing uses; a link goes, not what it leads to.
    Delete(PathBuf),
    SetAside(PathBuf),
    MakePrivate,
    FeedVault,
    MendVault,
    MendPacks,
    /// Brings what these refs of the vault name, and drops those whose commit is nowhere.
    MendPins(Vec<MainRef>),
    ClearGateTree(PathBuf),
    ClearRunFolder(PathBuf),
    FreePorts(u32),
    EvictSpare(PathBuf),
    /// A login in the private folder of an agent, which may have put anything there.
    ForgetLogin(PathBuf, &'static str),
    RemoveEntry(String),
    WriteJournal,
    WriteViews,
    ReapAgents,
    Unbind(TaskId),
    SettleLandings,
    RecoverLanding(LandingId),
    ClearLanding(Leftover),
    Tree(Box<Tree>, OfTree),
}

/// What is repaired of one tree.
#[derive(Debug, Clone)]
pub(crate) enum OfTree {
    EndCreation,
    ClearCreation,
    FinishRemoval(PathBuf),
    CancelRemoval,
    StayInTrash,
    Restore(Trash),
    /// With what is left of it.
    FinishPurge(Option<PathBuf>),
    EndRun(ProcessIdentity),
    AcceptMove(PathBuf),
    WritePointer,
    WriteMarkers,
    Register(DirectoryIdentity),
    WriteEntry(String, Vec<EntryFault>),
    HideLock,
    /// With what its list of borrowed objects says now.
    Borrow(Option<Vec<u8>>),
    WriteBranch,
    Unbind,
    HoldPorts,
}

impl Repair {
    pub(crate) fn of(tree: &Tree, repair: OfTree) -> Self {
        Self::Tree(Box::new(tree.clone()), repair)
    }

    /// Does it. Most go by the records, and nothing has those without records.
    pub(crate) fn perform(
        &self,
        place: &Place,
        trees: Option<&Trees<'_>>,
    ) -> Result<(), TreeError> {
        let common = place.repository().common_dir();
        let (private, vault) = (place.private(), Vault::of(common));
        let aside = private.join("aside");
        let shared = || list_refs(common, &["refs/remotes/", "refs/tags/"]);
        let feed = || -> Result<(), TreeError> { Ok(vault.feed_again(&shared()?)?) };
        match self {
            Self::WithLast => Ok(()),
            Self::Delete(path) => discard(path).map_err(at(path)),
            Self::SetAside(path) => set_aside(path, &aside).map(drop).map_err(at(path)),
            Self::MakePrivate => {
                let closed = fs::set_permissions(private, Permissions::from_mode(0o700));
                closed.map_err(at(private))
            }
            Self::FeedVault => feed(),
            Self::MendVault => Ok(vault.repair_shape(&aside)?),
            Self::MendPacks => Ok(vault.repair_packs(&shared()?, &aside)?),
            Self::MendPins(pins) => {
                let _ = feed();
                let dangling = vault.dangling_pins()?;
                for pin in pins.iter().filter(|pin| dangling.contains(pin)) {
                    // git refuses to touch a ref beside a log that it can't write.
                    let _ = fs::create_dir_all(vault.path().join("refs"));
                    vault.drop_pin(pin)?;
                }
                Ok(())
            }
            Self::ForgetLogin(home, login) => {
                let removed = Door::open(home).and_then(|door| door.remove(login));
                removed.map_err(at(&home.join(login)))
            }
            by_records => by_records.perform_in(trees.ok_or(TreeError::NoTree)?),
        }
    }

    fn perform_in(&self, trees: &Trees<'_>) -> Result<(), TreeError> {
        let engine = trees.engine;
        match self {
            Self::ClearGateTree(path) => trees.clear_gate_tree(path),
            Self::ClearRunFolder(path) => trees.clear_run_folder(path),
            Self::FreePorts(cell) => trees.clear_lease(*cell),
            Self::EvictSpare(path) => trees.evict_stale(path),
            Self::RemoveEntry(name) => {
                let registrations = trees.registrations();
                let removed = registrations.remove(name);
                removed.map_err(at(&registrations.directory(name)))
            }
            Self::WriteJournal => {
                let Some(journal) = engine.journal() else {
                    return Ok(());
                };
                // One of other records is put aside first, and that is an error.
                let _ = journal.catch_up(engine.store(), Durability::Process);
                Ok(journal.catch_up(engine.store(), Durability::Process)?)
            }
            Self::WriteViews => {
                let problems = match &engine.views {
                    Some(views) => views.rebuild(engine.store())?,
                    None => Vec::new(),
                };
                match problems.is_empty() {
                    true => Ok(()),
                    false => Err(other(&trees.place.root(), problems.join("; "))),
                }
            }
            Self::ReapAgents => {
                let reaped = engine.reap_agents().map(drop);
                reaped.map_err(|error| other(trees.place.private(), error))
            }
            Self::Unbind(task) => trees.unbind_dangling(task),
            Self::SettleLandings => alone(trees, |landings, lease| {
                landings.recover_landings(lease).map(drop)
            }),
            Self::RecoverLanding(id) => alone(trees, |landings, lease| {
                landings.recover_landing(lease, *id)
            }),
            Self::ClearLanding(left) => alone(trees, |landings, _| landings.clear_leftover(left)),
            Self::Tree(tree, repair) => repair.perform(trees, tree),
            _ => Ok(()),
        }
    }
}

impl OfTree {
    fn perform(&self, trees: &Trees<'_>, tree: &Tree) -> Result<(), TreeError> {
        let decide = |input| trees.decide(tree, Durability::Process, input).map(drop);
        let call_off = || {
            let error = "interrupted".to_owned();
            decide(TreeInput::RemoveFailed { error })
        };
        match self {
            Self::EndCreation => trees.end_creation(tree).map(drop),
            Self::ClearCreation => trees.clear_creation(tree),
            Self::FinishRemoval(path) => trees.finish_removal(tree, path.clone()),
            Self::CancelRemoval => {
                if let Some(identity) = tree.identity {
                    trees.reinstate_registration(tree, identity)?;
                }
                trees.reinstate_missing_branch(tree)?;
                call_off()
            }
            Self::StayInTrash => call_off(),
            Self::Restore(trash) => trees.reinstate(tree, trash).map(drop),
            Self::FinishPurge(left) => {
                if let Some(left) = left {
                    delete(left).map_err(at(left))?;
                }
                trees.unregister(tree)?;
                decide(TreeInput::Removed)
            }
            Self::EndRun(process) => decide(TreeInput::RunEnds {
                process: process.clone(),
                timed_out: false,
                code: None,
            }),
            Self::AcceptMove(path) => trees.accept_move(tree, path),
            Self::WritePointer => trees.write_linked_pointer(tree),
            Self::WriteMarkers => trees.write_markers(tree),
            Self::Register(identity) => register(trees, tree, *identity),
            Self::WriteEntry(name, faults) => write_entry(trees, tree, name, faults),
            Self::HideLock => trees.show_no_lock(&tree.name),
            Self::Borrow(old) => trees.borrow_here(tree, &trees.site(tree)?, old.as_deref()),
            Self::WriteBranch => write_branch(trees, tree),
            Self::Unbind => trees.unbind_dangling_tree(tree.id),
            Self::HoldPorts => trees.hold_ports(tree.clone(), None).map(drop),
        }
    }
}

fn discard(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        found => match found?.is_dir() {
            true => delete(path),
            false => fs::remove_file(path),
        },
    }
}

fn register(trees: &Trees<'_>, tree: &Tree, identity: DirectoryIdentity) -> Result<(), TreeError> {
    let input = TreeInput::Repaired {
        identity,
        path: tree.path.clone(),
        registration: trees.reinstate_registration(tree, identity)?,
    };
    trees.decide(tree, Durability::Process, input).map(drop)
}

/// Writes an entry of weald's again. Only what is broken goes aside; a linked tree's other files stay.
fn write_entry(
    trees: &Trees<'_>,
    tree: &Tree,
    name: &str,
    faults: &[EntryFault],
) -> Result<(), TreeError> {
    let registrations = trees.registrations();
    let directory = registrations.directory(name);
    for fault in faults {
        let path = directory.join(fault.file);
        if path.symlink_metadata().is_ok() {
            set_aside(&path, &trees.aside()).map_err(at(&path))?;
        }
        if fault.file == "commondir" {
            weald_control::files::replace(&path, "../..\n").map_err(at(&path))?;
        }
    }
    let identity = match tree.identity {
        Some(identity) if tree.is_live() => identity,
        // In the trash, in the making, gone: what follows is said by the record.
        _ => return Ok(()),
    };
    if identity_of(&tree.path).ok() != Some(identity) {
        return Ok(());
    }
    let note = TreeNote {
        tree: tree.id,
        identity,
    };
    let noted = registrations.set_note(name, &note.to_text());
    noted.map_err(at(&directory))?;
    register(trees, tree, identity)
}

/// Makes main's branch of a tree again. What is there and names no commit goes aside.
fn write_branch(trees: &Trees<'_>, tree: &Tree) -> Result<(), TreeError> {
    let repository = trees.place.repository();
    let full = format!("refs/heads/{}", tree.branch);
    let file = repository.common_dir().join(&full);
    if repository.resolve(&full)?.is_some() {
        return Ok(());
    }
    if file.is_dir() {
        return Err(other(&file, "a directory is in the way"));
    }
    if file.symlink_metadata().is_ok() && !repository.has_reftable() {
        set_aside(&file, &trees.aside()).map_err(at(&file))?;
    }
    trees.reinstate_missing_branch(tree)
}

/// Does something while no other process works the queue.
fn alone(
    trees: &Trees<'_>,
    work: impl FnOnce(&Landings<'_>, &Lease) -> Result<(), LandError>,
) -> Result<(), TreeError> {
    let landings = Landings::new(trees);
    let done = landings.take_queue().and_then(|lease| {
        let done = work(&landings, &lease);
        done.and(landings.release_queue(&lease))
    });
    done.map_err(|error| of_landing(trees, error))
}

/// An error of a landing among those of trees.
pub(crate) fn of_landing(trees: &Trees<'_>, error: LandError) -> TreeError {
    match error {
        LandError::Tree(error) => error,
        error => other(trees.place.repository().common_dir(), error),
    }
}

fn other(path: &Path, error: impl std::fmt::Display) -> TreeError {
    at(path)(io::Error::other(error.to_string()))
}
