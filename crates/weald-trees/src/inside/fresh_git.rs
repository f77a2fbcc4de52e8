//! Repositories of weald's own for looking at a work tree and its submodules: what ran there before can have changed
//! neither their settings, attributes and excludes nor their indexes.
//!
//! A submodule that the host filled is compared with what its vault holds. One that something in the tree filled is
//! compared with its own objects, which must have the names that they claim.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_git::Git;

use super::{Access, InsideError, Job, Look, Workplace, quoted, read_capped};

/// How deep submodules of submodules are compared.
const DEPTH: usize = 8;

/// The longest file that says where a repository is.
const POINTER_LIMIT: u64 = 8192;

/// What such a repository is made from, by the host.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct FreshGit {
    pub commit: String,
    /// Where its objects are.
    pub objects: PathBuf,
    /// Whether somebody in the tree may have written those.
    pub is_claimed: bool,
    /// Its files, with their text: settings, and what belongs to them.
    pub files: Vec<(String, String)>,
    /// Submodules that were filled.
    pub modules: Vec<FreshModule>,
}

/// A submodule that the host filled.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FreshModule {
    /// Where it is in the work tree.
    pub path: String,
    /// What it is called.
    pub name: String,
    /// How it is looked at.
    pub git: FreshGit,
}

/// What is in the place of a submodule.
enum Place {
    /// Nothing, as git leaves it.
    Empty,
    /// Something that can't be compared with any commit.
    Foreign,
    /// Files, and how they are compared.
    Filled(Box<Workplace>, FreshGit),
}

/// A repository of weald's own, as long as its folder is there.
struct Own {
    at: Workplace,
    fresh: FreshGit,
    depth: usize,
    _folder: tempfile::TempDir,
}

/// Says how the files differ from a commit, those of submodules included.
#[derive(Serialize, Deserialize)]
pub struct CompareFresh(pub FreshGit);

/// Makes the files those of a commit again, those of submodules included, but for what git ignores.
#[derive(Serialize, Deserialize)]
pub struct ResetFresh(pub FreshGit);

impl Job for CompareFresh {
    type Reply = Look;
    const ACCESS: Access = Access::Read;

    fn work(&self, at: &Workplace) -> Result<Look, InsideError> {
        Own::make(at, &self.0, 0)?.compare()
    }
}

impl Job for ResetFresh {
    type Reply = ();
    const ACCESS: Access = Access::Write;

    fn work(&self, at: &Workplace) -> Result<(), InsideError> {
        Own::make(at, &self.0, 0)?.reset()?;
        Ok(fs::write(
            at.git_dir.join("HEAD"),
            format!("{}\n", self.0.commit),
        )?)
    }
}

impl Own {
    fn make(of: &Workplace, fresh: &FreshGit, depth: usize) -> Result<Self, InsideError> {
        let folder = tempfile::tempdir()?;
        let git_dir = folder.path().join("git");
        for name in ["objects/info", "refs", "info"] {
            fs::create_dir_all(git_dir.join(name))?;
        }
        for (name, text) in &fresh.files {
            fs::write(git_dir.join(name), text)?;
        }
        fs::write(git_dir.join("HEAD"), format!("{}\n", fresh.commit))?;
        let at = Workplace {
            git_dir,
            is_own: true,
            ..of.clone()
        };
        let own = Self {
            at,
            fresh: fresh.clone(),
            depth,
            _folder: folder,
        };
        match fresh.is_claimed {
            true => own.take_trees()?,
            false => own.borrow_objects()?,
        }
        own.at.git("read-tree").args([&fresh.commit]).run()?;
        own.leave_out()?;
        Ok(own)
    }

    fn borrow_objects(&self) -> io::Result<()> {
        let alternates = format!("{}\n", self.fresh.objects.display());
        fs::write(self.at.objects().join("info/alternates"), alternates)
    }

    /// Takes commit and trees from a store that anybody may have written. `index-pack` names each by what it holds; the
    /// content of files is only ever compared by its name.
    fn take_trees(&self) -> Result<(), InsideError> {
        let mut store = Vec::new();
        quoted(&mut store, self.fresh.objects.as_os_str().as_bytes());
        let from = |name: &str| -> Git {
            let git = self.at.git(name);
            git.env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                OsStr::from_bytes(&store),
            )
        };
        let listed = from("rev-list")
            .args(["--objects", "--no-object-names", "--no-walk"])
            .args(["--filter=blob:none", &self.fresh.commit])
            .run()?;
        let packed = from("pack-objects").args(["--stdout", "-q"]).input(listed);
        packed.pipe_into(self.at.git("index-pack").args(["--stdin"]))?;
        Ok(())
    }

    fn compare(&self) -> Result<Look, InsideError> {
        let changes = self.at.changes()?;
        let mut look = Look {
            head: changes.head.clone(),
            ..changes.look.clone()
        };
        let foreign = self.at.foreign_attributes()?;
        look.untracked += foreign.files.len() as u64;
        look.unstaged += foreign.reached;
        for (path, commit) in self.gitlinks()? {
            match self.place(&path, &commit)? {
                Place::Empty => {}
                Place::Foreign => look.unstaged += 1,
                Place::Filled(at, fresh) => {
                    // A store without the commit is as good as none.
                    let own = Self::make(&at, &fresh, self.depth + 1);
                    let Ok(inner) = own.and_then(|own| own.compare()) else {
                        look.unstaged += 1;
                        continue;
                    };
                    look.unstaged +=
                        inner.staged + inner.unstaged + inner.conflicted + inner.hidden;
                    look.untracked += inner.untracked;
                    look.ignored += inner.ignored;
                }
            }
        }
        Ok(look)
    }

    fn reset(&self) -> Result<(), InsideError> {
        let commit = &self.fresh.commit;
        if self.fresh.is_claimed {
            // What comes out is compared again.
            self.borrow_objects()?;
        }
        self.at.bring_large_files(commit)?;
        self.at.drop_foreign_attributes()?;
        // Files that are as they should be are not written again.
        let refresh = self.at.git("update-index").args(["-q", "--refresh"]);
        let _ = refresh.run();
        self.at.reset_files(commit)?;
        for (path, commit) in self.gitlinks()? {
            let full = self.at.work_tree.join(OsStr::from_bytes(&path));
            match self.place(&path, &commit)? {
                Place::Empty => {}
                Place::Filled(at, fresh) => {
                    let own = Self::make(&at, &fresh, self.depth + 1);
                    if own.and_then(|own| own.reset()).is_err() && self.known(&path).is_none() {
                        empty(&full)?;
                    }
                }
                Place::Foreign => empty(&full)?,
            }
        }
        Ok(())
    }

    /// Paths and commits of submodules, by the commit.
    fn gitlinks(&self) -> Result<Vec<(Vec<u8>, String)>, InsideError> {
        let listed = self.at.git("ls-files").args(["-s", "-z"]).run()?;
        let lines = listed.split(|byte| *byte == 0);
        let links = lines.filter_map(|line| {
            let rest = line.strip_prefix(b"160000 ")?;
            let end = rest.iter().position(|byte| *byte == b'\t')?;
            let commit = rest[..end].split(|byte| *byte == b' ').next()?;
            let commit = String::from_utf8_lossy(commit).into_owned();
            Some((rest[end + 1..].to_vec(), commit))
        });
        Ok(links.collect())
    }

    fn known(&self, path: &[u8]) -> Option<&FreshModule> {
        let mut modules = self.fresh.modules.iter();
        modules.find(|module| module.path.as_bytes() == path)
    }

    fn place(&self, path: &[u8], commit: &str) -> Result<Place, InsideError> {
        let root = &self.at.work_tree;
        let full = root.join(OsStr::from_bytes(path));
        let known = self.known(path).filter(|known| known.git.commit == commit);
        if !is_folder(root, &full) {
            let is_gone = full.symlink_metadata().is_err();
            return Ok(match is_gone && known.is_none() {
                true => Place::Empty,
                false => Place::Foreign,
            });
        }
        if let Some(known) = known {
            let module = self.at.of_module(Path::new(&known.name), &full);
            return Ok(Place::Filled(Box::new(module), known.git.clone()));
        }
        if fs::read_dir(&full)?.next().is_none() {
            return Ok(Place::Empty);
        }
        let Some(objects) = objects_of(&full).filter(|_| self.depth < DEPTH) else {
            return Ok(Place::Foreign);
        };
        let mut fresh = FreshGit {
            commit: commit.to_owned(),
            objects,
            is_claimed: true,
            ..FreshGit::default()
        };
        if commit.len() == 64 {
            let format =
                "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectformat = sha256\n";
            fresh.files.push(("config".to_owned(), format.to_owned()));
        }
        let module = Workplace {
            work_tree: full,
            ..self.at.clone()
        };
        Ok(Place::Filled(Box::new(module), fresh))
    }

    /// Marks what a sparse checkout leaves out in the new index. A file that is there all the same is not marked.
    fn leave_out(&self) -> Result<(), InsideError> {
        let args = ["--type=bool", "--get", "core.sparseCheckout"];
        let said = self.at.git("config").args(args).output()?;
        if said.stdout.trim_ascii() == b"true" {
            let git = self.at.checkout_git("sparse-checkout");
            git.args(["reapply"]).run()?;
        }
        Ok(())
    }
}

/// Whether a path below `root` is a directory, and no part of it a link.
pub(super) fn is_folder(root: &Path, full: &Path) -> bool {
    let parts = full.ancestors().take_while(|path| *path != root);
    let mut found = parts.map(Path::symlink_metadata);
    found.all(|found| found.is_ok_and(|found| found.is_dir()))
}

/// The objects of the repository that a work tree says it belongs to.
fn objects_of(work_tree: &Path) -> Option<PathBuf> {
    let named = work_tree.join(".git");
    let git_dir = match named.symlink_metadata().ok()?.is_dir() {
        true => named,
        false => {
            let text = read_capped(&named, POINTER_LIMIT)?;
            let path = text.strip_prefix(b"gitdir: ")?.trim_ascii_end();
            work_tree.join(OsStr::from_bytes(path))
        }
    };
    Some(git_dir.join("objects")).filter(|objects| objects.is_dir())
}

/// Deletes everything in a directory.
fn empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}
