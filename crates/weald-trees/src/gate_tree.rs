//! A checkout of exactly one commit, to test that commit in: sealed as a tree is, but on no record and in no list.
//!
//! ```text
//! .gate/3-1          the files
//! .gate/3-1.owner    a link whose target names the process that has it; made first, taken away last
//! ```
//!
//! It comes about as a tree does (spare, donor, checkout), is compared with its commit before anything else comes in,
//! and is deleted when it is dropped. What a killed process left is found by its owner and deleted by the next one.
//!
//! The layers of package managers' caches go with it, so no landing finds what the tests of another one left.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_core::id::TreeId;
use weald_core::session::ProcessIdentity;
use weald_core::tree::{Base, Tree};
use weald_git::Door;

use super::delete;
use super::inner::{packed_line, packed_text};
use super::inside::{CompareFresh, FreshGit, FreshModule, Inspect, Reset, ResetFresh};
use super::planning::Plan;
use super::remove::rename;
use super::site::Site;
use super::{TreeError, Trees, at};
use weald_control::{files, marker};

/// The folder beside trees.
pub const GATES: &str = ".gate";

/// What visits to it are called in messages.
const GATE: &str = "the gate's tree";

/// Files of a repository that say how a work tree is compared with a commit.
const SETTINGS: [&str; 4] = [
    "config",
    "info/exclude",
    "info/attributes",
    "info/sparse-checkout",
];

/// The largest one of them.
const SETTINGS_LIMIT: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    process: ProcessIdentity,
    repository: PathBuf,
}

/// A directory that holds exactly one commit. Dropping it deletes the directory, beside whatever comes next.
pub struct GateTree<'t, 'a> {
    trees: &'t Trees<'a>,
    /// As if it were a tree.
    pub tree: Tree,
    /// What came in besides, and what did not.
    pub notes: Vec<String>,
    /// How it is looked at once something ran in it: its own repository can't be believed then. `None`
    /// while it is made.
    pub fresh: Option<FreshGit>,
}

impl Drop for GateTree<'_, '_> {
    fn drop(&mut self) {
        self.trees.release_ports(&self.tree);
        let leaving = self.trees.leaving(&self.tree);
        self.trees.chores.begin(move || {
            // What can't be deleted is found by the next one, or by `doctor`.
            let _ = leaving.delete();
        });
    }
}

/// What is on disk for one of them.
struct Leaving {
    path: PathBuf,
    layers: Option<PathBuf>,
}

impl Leaving {
    fn delete(&self) -> Result<(), TreeError> {
        for folder in self.layers.iter().chain([&self.path]) {
            match delete(folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(at(folder)(error));
                }
                _ => {}
            }
        }
        let owner = owner_of(&self.path);
        fs::remove_file(&owner).map_err(at(&owner))?;
        // Only when it was the last one.
        let _ = self.path.parent().map(fs::remove_dir);
        Ok(())
    }
}

impl<'a> Trees<'a> {
    /// Makes one. `name` is taken if it is free.
    pub fn make_gate_tree(&self, name: &str, commit: &str) -> Result<GateTree<'_, 'a>, TreeError> {
        self.sweep_gate_trees();
        let path = self.own_place(name)?;
        let (target, tip) = self.target.clone().unzip();
        let base = Base {
            reference: target.unwrap_or_else(|| "HEAD".to_owned()),
            commit: commit.to_owned(),
        };
        let called = format!("gate-{name}").parse()?;
        let tree = Tree::new(TreeId(0), called, path, base, self.now()?);
        // Of a gate that was killed, in a repository that is gone, at the same path.
        self.delete_home_layer(&tree)?;
        let mut made = GateTree {
            trees: self,
            tree: tree.clone(),
            notes: Vec::new(),
            fresh: None,
        };
        let mut plan = self.with_ports(Plan {
            tree,
            start: commit.to_owned(),
            refs: self.main_refs()?,
            target_tip: tip,
            replaced: None,
            upstream: None,
            reused: false,
            dedicated: false,
            pool: true,
            is_in_main: false,
            notes: Vec::new(),
        });
        made.tree.ports = plan.tree.ports;
        self.vault().require(&plan.refs, &[])?;
        if let Some(tip) = &plan.target_tip {
            self.require_files(tip)?;
        }
        if self.populate_exactly(&plan).is_err() {
            // By git alone, before anybody calls it impossible.
            plan.pool = false;
            let _ = delete(&plan.tree.path);
            self.populate_exactly(&plan)?;
        }
        let path = &plan.tree.path;
        let setup = self.bring_files(&plan.tree, path, Path::new(""))?;
        if let Some(why) = setup.failure() {
            return Err(unfit(why));
        }
        made.notes = plan.notes.into_iter().chain(setup.told()).collect();
        made.fresh = Some(self.fresh_git(path, commit)?);
        Ok(made)
    }

    /// The settings that a gate's tree was made with, before anything runs in it.
    fn fresh_git(&self, path: &Path, commit: &str) -> Result<FreshGit, TreeError> {
        let door = Door::open(path).map_err(at(path))?;
        let filled = self.filled_modules(&door)?.into_iter();
        let modules = filled.map(|module| FreshModule {
            git: FreshGit {
                objects: self.vault_of_submodule(&module.name).objects(),
                files: settings(&door, &format!(".git/modules/{}", module.name)),
                commit: module.commit,
                ..FreshGit::default()
            },
            name: module.name,
            path: module.path,
        });
        Ok(FreshGit {
            commit: commit.to_owned(),
            objects: self.vault().path().join("objects"),
            files: settings(&door, ".git"),
            modules: modules.collect(),
            ..FreshGit::default()
        })
    }

    /// The files and the repository, and a look that there is nothing else.
    fn populate_exactly(&self, plan: &Plan) -> Result<(), TreeError> {
        let (tree, path) = (&plan.tree, &plan.tree.path);
        if self.take_spare(plan, tree, path)?.is_none() {
            self.copy_or_check_out(plan, tree, path, Path::new(""))?;
        }
        self.write_detached(plan)?;
        self.fill_submodules(path)?;
        let changes = self.changes_in_gate(path, &plan.start, None)?;
        match changes.tracked + changes.untracked + changes.ignored {
            0 => Ok(()),
            count => Err(unfit(&format!("{count} files differ from the commit"))),
        }
    }

    /// HEAD at the commit, and the refs that a tree sees.
    fn write_detached(&self, plan: &Plan) -> Result<(), TreeError> {
        let git_dir = plan.tree.path.join(".git");
        let mut lines: Vec<_> = plan.refs.iter().filter_map(packed_line).collect();
        if let Some(tip) = &plan.target_tip {
            let target = format!("refs/heads/{}", plan.tree.target);
            lines.push((target, tip.clone(), None));
        }
        let written = || -> io::Result<()> {
            let door = Door::open(&git_dir)?;
            door.write("HEAD", format!("{}\n", plan.start).as_bytes())?;
            door.write("packed-refs", packed_text(lines).as_bytes())?;
            door.write("objects/info/alternates", &self.alternates(&plan.tree.path))
        };
        written().map_err(at(&git_dir))
    }

    /// How the files differ from `commit`; that must be what HEAD holds.
    pub fn changes_in_gate(
        &self,
        path: &Path,
        commit: &str,
        fresh: Option<&FreshGit>,
    ) -> Result<GateChanges, TreeError> {
        let site = Site::sealed(path);
        let look = match fresh {
            Some(fresh) => self.visit(GATE, &site, CompareFresh(fresh.clone()))?,
            None => self.visit(GATE, &site, Inspect::default())?.look,
        };
        if look.head.as_deref() != Some(commit) || look.operation.is_some() {
            return Err(unfit("HEAD is not where it was put"));
        }
        Ok(GateChanges {
            tracked: look.staged + look.unstaged + look.conflicted + look.hidden,
            untracked: look.untracked,
            ignored: look.ignored,
        })
    }

    /// Makes the files exactly those of `commit` again, but for what git ignores.
    pub fn reset_gate(
        &self,
        path: &Path,
        commit: &str,
        fresh: Option<&FreshGit>,
    ) -> Result<(), TreeError> {
        let (site, commit) = (Site::sealed(path), commit.to_owned());
        match fresh {
            Some(fresh) => self.visit(GATE, &site, ResetFresh(fresh.clone())),
            None => self.visit(GATE, &site, Reset { commit }),
        }
    }

    /// Where gates have their trees.
    fn gate_folder(&self) -> Result<PathBuf, TreeError> {
        let root = self.tree_root()?;
        let folder = root.canonicalize().unwrap_or(root).join(GATES);
        self.require_safe_place("tree.path", &folder.join("entry"))?;
        Ok(folder)
    }

    /// A free place, which is this process's from now on.
    fn own_place(&self, name: &str) -> Result<PathBuf, TreeError> {
        let root = self.tree_root()?;
        if !root.exists() {
            fs::create_dir_all(&root).map_err(at(&root))?;
            marker::mark(&root, self.common_dir()).map_err(at(&root))?;
        }
        let folder = self.gate_folder()?;
        match root == self.place.root() {
            true => self.exclude(&folder)?,
            false => self.exclude(&root)?,
        }
        let process = self
            .me()
            .ok_or_else(|| unfit("this process can't be identified"))?;
        let owner = Owner {
            process,
            repository: self.common_dir().to_owned(),
        };
        let text = serde_json::to_string(&owner).unwrap_or_default();
        for number in 1..1000 {
            let path = match number {
                1 => folder.join(name),
                _ => folder.join(format!("{name}.{number}")),
            };
            // Each time: whoever had the last one takes the folder away.
            make_folder(&folder).map_err(at(&folder))?;
            match symlink(&text, owner_of(&path)) {
                Ok(()) if path.symlink_metadata().is_err() => return Ok(path),
                Ok(()) => drop(fs::remove_file(owner_of(&path))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(at(&path)(error)),
            }
        }
        Err(unfit("there is no free place for it"))
    }

    fn leaving(&self, tree: &Tree) -> Leaving {
        Leaving {
            path: tree.path.clone(),
            layers: self.home_layer(tree),
        }
    }

    /// Those whose process is gone.
    pub fn abandoned_gate_trees(&self) -> Vec<PathBuf> {
        let Ok(folder) = self.gate_folder() else {
            return Vec::new();
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path()).filter_map(|owner| {
            let is_owner = owner.extension().is_some_and(|kind| kind == "owner");
            is_owner.then(|| owner.with_extension(""))
        });
        paths.filter(|path| self.is_abandoned_gate(path)).collect()
    }

    fn is_abandoned_gate(&self, path: &Path) -> bool {
        let text = fs::read_link(owner_of(path)).ok();
        let owner = text.and_then(|text| serde_json::from_str::<Owner>(text.to_str()?).ok());
        owner.is_some_and(|owner| {
            owner.repository == self.common_dir() && !self.may_live(&owner.process)
        })
    }

    /// Deletes one whose process is gone.
    pub fn clear_gate_tree(&self, path: &Path) -> Result<(), TreeError> {
        match self.take_over(path)? {
            Some(leaving) => leaving.delete(),
            None => Ok(()),
        }
    }

    fn sweep_gate_trees(&self) {
        for path in self.abandoned_gate_trees() {
            if let Ok(Some(leaving)) = self.take_over(&path) {
                self.chores.begin(move || {
                    let _ = leaving.delete();
                });
            }
        }
    }

    /// Makes one whose process is gone this process's; `None` if another was faster.
    fn take_over(&self, path: &Path) -> Result<Option<Leaving>, TreeError> {
        let turn = self.place.private().join("gates");
        let taken = files::edit_alone(&turn, || {
            if !self.is_abandoned_gate(path) {
                return Ok(None);
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let mine = self.own_place(&format!("{name}.gone"))?;
            if path.symlink_metadata().is_ok() {
                rename(path, &mine)?;
            }
            let layers = self.layers_of_gate(path)?;
            let owner = owner_of(path);
            fs::remove_file(&owner).map_err(at(&owner))?;
            Ok(Some(Leaving { path: mine, layers }))
        });
        taken.map_err(at(&turn))?
    }

    fn layers_of_gate(&self, path: &Path) -> Result<Option<PathBuf>, TreeError> {
        let base = Base {
            reference: String::new(),
            commit: String::new(),
        };
        let tree = Tree::new(
            TreeId(0),
            "gate".parse()?,
            path.to_owned(),
            base,
            self.now()?,
        );
        Ok(self.leaving(&tree).layers)
    }
}

/// How a gate's tree differs from its commit, in files.
pub struct GateChanges {
    pub tracked: u64,
    /// What it does not.
    pub untracked: u64,
    pub ignored: u64,
}

/// Files of a repository in a tree, with their text.
fn settings(door: &Door, git_dir: &str) -> Vec<(String, String)> {
    let read = |name: &str| {
        let bytes = door.read(&format!("{git_dir}/{name}"), SETTINGS_LIMIT);
        String::from_utf8(bytes.ok()?).ok()
    };
    let named = SETTINGS.iter();
    named
        .filter_map(|name| Some(((*name).to_owned(), read(name)?)))
        .collect()
}

fn unfit(why: &str) -> TreeError {
    TreeError::unreadable(GATE, why)
}

/// The link that says whose it is.
fn owner_of(path: &Path) -> PathBuf {
    path.with_added_extension("owner")
}

/// For nobody else to see; a link in its place is refused.
fn make_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        done => return done,
    }
    match folder.symlink_metadata() {
        Ok(found) if !found.is_dir() => Err(io::Error::other("it is not a directory")),
        // Gone again: the last one was just deleted.
        _ => Ok(()),
    }
}
