//! Ports of trees: blocks that no other tree of the user has, in any repository.
//!
//! A lease is a link in the user's own state directory, named after its cell: made in one step, with what it says, or not
//! at all. What decides is the tree's record; a lease whose tree is gone and whose maker has ended is free. Taking a
//! lease costs one call in most cases, however many there are.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weald_core::id::TreeId;
use weald_core::ports::{PortBlock, PortRange};
use weald_core::session::ProcessIdentity;
use weald_core::store::Durability;
use weald_core::tree::Tree;
use weald_core::tree_rules::TreeInput;
use weald_git::Registrations;

use super::planning::Plan;
use super::{TreeError, Trees, at, hash_of};
use weald_control::files;
use weald_control::marker::TreeNote;

/// How many blocks are tried before anybody asks who holds them.
const QUICK: usize = 32;

/// Who holds a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortLease {
    pub tree: TreeId,
    pub repository: PathBuf,
    /// Who took it: holds it until the tree is on record.
    process: Option<ProcessIdentity>,
}

/// A tree and its ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreePorts {
    pub tree: String,
    #[serde(flatten)]
    pub block: PortBlock,
    /// The last of them.
    pub last: u16,
}

/// Where leases lie, and by whom they are judged.
struct PortLeases<'t> {
    trees: &'t Trees<'t>,
    directory: PathBuf,
}

impl Trees<'_> {
    /// Which trees have which ports: all, or one.
    pub fn ports(&self, name: Option<&str>) -> Result<Vec<TreePorts>, TreeError> {
        let trees = match name {
            Some(_) => vec![self.named(name)?],
            None => self.records()?,
        };
        let held = trees.into_iter().filter_map(|tree| {
            let block = tree.ports?;
            Some(TreePorts {
                tree: tree.name.to_string(),
                last: block.last(),
                block,
            })
        });
        Ok(held.collect())
    }

    /// Where blocks may lie, by the configuration.
    pub fn port_range(&self) -> PortRange {
        PortRange {
            first: self.config.ports_first,
            last: self.config.ports_last,
            count: self.config.ports_count,
        }
    }

    /// The plan with ports for its tree; without any, if there are none left.
    pub(super) fn with_ports(&self, mut plan: Plan) -> Plan {
        let (ports, note) = self.lease(plan.tree.id, None);
        plan.tree.ports = ports;
        plan.notes.extend(note);
        plan
    }

    /// A tree that came back, or was moved, holds its ports again; others where somebody else took them.
    pub fn hold_ports(
        &self,
        tree: Tree,
        wish: Option<PortBlock>,
    ) -> Result<(Tree, Option<String>), TreeError> {
        let wish = tree.ports.or(wish);
        if self.holds_ports(&tree) {
            return Ok((tree, None));
        }
        let (ports, note) = self.lease(tree.id, wish);
        if ports == tree.ports {
            return Ok((tree, note));
        }
        let held = self.decide(&tree, Durability::Process, TreeInput::Ports(ports));
        let held = held.inspect_err(|_| self.release(tree.id, ports))?;
        Ok((held, note))
    }

    /// Whether the ports on a tree's record are held for it.
    pub fn holds_ports(&self, tree: &Tree) -> bool {
        let (Some(leases), Some(block)) = (self.port_leases(), tree.ports) else {
            return false;
        };
        let is_held = |lease: PortLease| leases.is_of(&lease, tree.id);
        block
            .cells()
            .all(|cell| leases.read(cell).is_some_and(is_held))
    }

    /// The ports of a tree that is gone are others' to take.
    pub(crate) fn release_ports(&self, tree: &Tree) {
        self.release(tree.id, tree.ports);
    }

    /// A block for a tree, or why there is none.
    fn lease(&self, id: TreeId, wish: Option<PortBlock>) -> (Option<PortBlock>, Option<String>) {
        let range = self.port_range();
        if range.count == 0 {
            return (None, None);
        }
        let Some(leases) = self.port_leases() else {
            let why = "there is no home directory to record ports in, so the worktree has none of its own";
            return (None, Some(why.to_owned()));
        };
        let taken = leases.take_any(id, range, wish);
        match taken.map_err(at(&leases.directory)) {
            Ok(Some(block)) => (Some(block), None),
            Ok(None) => {
                let why = format!(
                    "there are no {} free ports from {} to {}, so the worktree has none of its own; `weald ports` lists who has them",
                    range.count, range.first, range.last
                );
                (None, Some(why))
            }
            Err(error) => (
                None,
                Some(format!("the worktree has no ports of its own: {error}")),
            ),
        }
    }

    fn release(&self, id: TreeId, ports: Option<PortBlock>) {
        if let (Some(leases), Some(block)) = (self.port_leases(), ports) {
            // A lease that can't be taken away is free anyhow: its tree is gone.
            let _ = leases.alone(|| {
                leases.clear(block, |lease, _| leases.is_of(lease, id));
                Ok(())
            });
        }
    }

    /// Leases that nobody holds any more.
    pub fn free_leases(&self) -> Vec<(u32, PortLease)> {
        let Some(leases) = self.port_leases() else {
            return Vec::new();
        };
        let names = fs::read_dir(&leases.directory).into_iter().flatten();
        let cells = names.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let known = cells.filter_map(|cell| Some((cell, leases.read(cell)?)));
        known
            .filter(|(cell, lease)| leases.is_free(lease, *cell))
            .collect()
    }

    /// Takes a lease away that nobody holds any more.
    pub fn clear_lease(&self, cell: u32) -> Result<(), TreeError> {
        let Some(leases) = self.port_leases() else {
            return Ok(());
        };
        let cleared = leases.alone(|| match leases.read(cell) {
            Some(lease) if leases.is_free(&lease, cell) => fs::remove_file(leases.file(cell)),
            _ => Ok(()),
        });
        cleared.map_err(at(&leases.file(cell)))
    }

    fn port_leases(&self) -> Option<PortLeases<'_>> {
        Some(PortLeases {
            trees: self,
            directory: self.host.state.as_ref()?.join("ports"),
        })
    }
}

impl PortLeases<'_> {
    fn file(&self, cell: u32) -> PathBuf {
        self.directory.join(cell.to_string())
    }

    /// What a lease says; one that says nothing can't be told to be free.
    fn read(&self, cell: u32) -> Option<PortLease> {
        let text = fs::read_link(self.file(cell)).ok()?;
        serde_json::from_str(text.to_str()?).ok()
    }

    /// Does something while nobody else clears up.
    fn alone<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        files::edit_alone(&self.directory.join("turn"), work).and_then(|done| done)
    }

    fn take_any(
        &self,
        id: TreeId,
        range: PortRange,
        wish: Option<PortBlock>,
    ) -> io::Result<Option<PortBlock>> {
        let repository = self.trees.common_dir().to_owned();
        let seed = hash_of(&repository).wrapping_add(id.0);
        let lease = PortLease {
            tree: id,
            repository,
            process: self.trees.me(),
        };
        let text = serde_json::to_string(&lease).unwrap_or_default();
        fs::create_dir_all(&self.directory)?;
        if wish.is_none() {
            for block in range.search(seed).take(QUICK) {
                if self.take(block, &text)? {
                    return Ok(Some(block));
                }
            }
        }
        // It must be this one, or nearly all seem to be taken: see who holds them.
        self.alone(|| {
            for block in wish.into_iter().chain(range.search(seed)) {
                self.clear(block, |lease, cell| self.is_free(lease, cell));
                if self.take(block, &text)? {
                    return Ok(Some(block));
                }
            }
            Ok(None)
        })
    }

    /// Takes every cell of a block, or none.
    fn take(&self, block: PortBlock, text: &str) -> io::Result<bool> {
        let mut taken = Vec::new();
        for file in block.cells().map(|cell| self.file(cell)) {
            match symlink(text, &file) {
                Ok(()) => taken.push(file),
                Err(error) => {
                    taken.into_iter().try_for_each(fs::remove_file)?;
                    return match error.kind() {
                        io::ErrorKind::AlreadyExists => Ok(false),
                        _ => Err(error),
                    };
                }
            }
        }
        Ok(true)
    }

    /// Takes those leases of a block away that are chosen.
    fn clear(&self, block: PortBlock, is_chosen: impl Fn(&PortLease, u32) -> bool) {
        for cell in block.cells() {
            if self.read(cell).is_some_and(|lease| is_chosen(&lease, cell)) {
                let _ = fs::remove_file(self.file(cell));
            }
        }
    }

    fn is_of(&self, lease: &PortLease, id: TreeId) -> bool {
        lease.tree == id && lease.repository == self.trees.common_dir()
    }

    /// True with proof only: the process that took it has ended, and no tree has it.
    fn is_free(&self, lease: &PortLease, cell: u32) -> bool {
        let maker = lease.process.as_ref();
        if maker.is_none_or(|process| self.trees.may_live(process)) {
            return false;
        }
        if lease.repository != self.trees.common_dir() {
            return !is_registered(lease);
        }
        match self.trees.engine.look(|tx| tx.tree_by_id(lease.tree)) {
            Ok(Some(tree)) => {
                let has = |block: PortBlock| block.cells().any(|held| held == cell);
                !(tree.is_wanted() && tree.ports.is_some_and(has))
            }
            Ok(None) => true,
            Err(_) => false,
        }
    }
}

/// Whether another repository still has the tree. Its store is its own; its registrations can be read.
fn is_registered(lease: &PortLease) -> bool {
    let workshop = lease.repository.join("weald/private/workshop");
    let listed = match lease.repository.join("objects").is_dir() {
        true => Registrations::new(&lease.repository, &workshop).list(),
        false => return false,
    };
    match listed {
        Ok(listed) => listed
            .iter()
            .any(|known| TreeNote::of(known).is_some_and(|note| note.tree == lease.tree)),
        // What can't be read may be there.
        Err(_) => true,
    }
}
