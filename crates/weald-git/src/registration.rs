//! The registration of worktrees in a repository (`worktrees/<name>/`), read and written without git.
//!
//! One broken entry of anybody's must not break the others, so each is read on its own. An entry is built elsewhere and
//! renamed into place, and renamed away before it is deleted: git never sees half of one. Where refs are in tables an entry
//! has tables of its own; git writes HEAD into them (`registration_tables`).

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::git_files::{path_of, read_small, replace, sync_directory, sync_together};
use crate::ref_tables::{has_tables, tabled_ref};
use crate::reference::Reference;
use crate::registration_tables::{STUBS, set_head};

/// The file in an entry that is weald's own.
const NOTE: &str = "weald";

/// An entry as it is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    pub name: String,
    /// The `.git` of the worktree; `None` if that can't be read.
    pub dot_git: Option<PathBuf>,
    /// What its HEAD says; `None` if that can't be read.
    pub head: Option<Reference>,
    /// Why it is locked.
    pub locked: Option<String>,
    /// What weald wrote down about it.
    pub note: Option<String>,
}

impl Registration {
    pub fn path(&self) -> Option<&Path> {
        self.dot_git.as_deref().and_then(Path::parent)
    }
}

/// An entry to be made.
#[derive(Debug, Clone)]
pub struct NewRegistration<'a> {
    /// What it should be called; a number is added where that is taken.
    pub name: &'a str,
    pub path: &'a Path,
    pub head: Reference,
    /// Why it is locked, if it is.
    pub locked: Option<&'a str>,
    pub note: &'a str,
    /// An index to be its own.
    pub index: Option<&'a Path>,
    /// Settings of its own, as a sparse checkout has: names in the entry, and contents.
    pub settings: &'a [(&'static str, Vec<u8>)],
}

/// All entries of a repository.
#[derive(Debug, Clone)]
pub struct Registrations {
    common_dir: PathBuf,
    workshop: PathBuf,
}

impl Registrations {
    /// Those of the repository `common_dir`; `workshop` is a directory on the same file system for things in the making.
    pub fn new(common_dir: &Path, workshop: &Path) -> Self {
        Self {
            common_dir: common_dir.to_owned(),
            workshop: workshop.to_owned(),
        }
    }

    /// Whether the repository keeps its refs in tables.
    pub(crate) fn has_tables(&self) -> bool {
        has_tables(&self.common_dir)
    }

    /// The directory of an entry.
    pub fn directory(&self, name: &str) -> PathBuf {
        self.common_dir.join("worktrees").join(name)
    }

    /// Every entry, by name.
    pub fn list(&self) -> io::Result<Vec<Registration>> {
        let names = self.names()?.into_iter();
        Ok(names.filter_map(|name| self.read(name.to_str()?)).collect())
    }

    /// One entry; `None` if there is none.
    pub fn read(&self, name: &str) -> Option<Registration> {
        let directory = self.directory(name);
        if !directory.is_dir() {
            return None;
        }
        let text = |file: &str| read_small(&directory.join(file)).ok();
        let lossy = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end().to_owned();
        let dot_git = text("gitdir").map(|bytes| path_of(&bytes));
        let head = match self.has_tables() {
            true => tabled_ref(&directory, "HEAD").ok().flatten(),
            false => text("HEAD").and_then(|bytes| Reference::parse(&lossy(bytes))),
        };
        Some(Registration {
            name: name.to_owned(),
            dot_git: dot_git
                .filter(|path| !path.as_os_str().is_empty())
                .map(|path| plain(&directory.join(path))),
            head,
            locked: text("locked").map(lossy),
            note: text(NOTE).map(lossy),
        })
    }

    /// Makes an entry; answers the name it got.
    pub fn add(&self, new: &NewRegistration<'_>) -> io::Result<String> {
        fs::create_dir_all(self.common_dir.join("worktrees"))?;
        fs::create_dir_all(&self.workshop)?;
        let building =
            self.workshop
                .join(format!("registration-{}-{}", std::process::id(), new.name));
        let _ = fs::remove_dir_all(&building);
        DirBuilder::new().create(&building)?;
        let made = self.fill(&building, new).and_then(|()| {
            (0..1000)
                .find_map(|attempt| self.place(&building, new.name, attempt))
                .unwrap_or_else(|| Err(io::Error::other("no name is free in worktrees/")))
        });
        // A gc takes an empty worktrees/ away, perhaps just now.
        let made = match made {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(self.common_dir.join("worktrees"))?;
                self.place(&building, new.name, 0).unwrap_or(Err(error))
            }
            made => made,
        };
        made.inspect_err(|_| {
            let _ = fs::remove_dir_all(&building);
        })
    }

    fn fill(&self, building: &Path, new: &NewRegistration<'_>) -> io::Result<()> {
        let mut files = vec![
            ("gitdir", pointer_to(new.path)),
            ("commondir", b"../..\n".to_vec()),
            (NOTE, new.note.as_bytes().to_vec()),
        ];
        if !self.has_tables() {
            files.push(("HEAD", new.head.to_text().into_bytes()));
        }
        files.extend(
            new.locked
                .map(|reason| ("locked", format!("{reason}\n").into_bytes())),
        );
        files.extend(new.settings.iter().cloned());
        if !new.settings.is_empty() {
            fs::create_dir_all(building.join("info"))?;
        }
        let mut written = vec![building.to_owned()];
        for (name, bytes) in files {
            fs::write(building.join(name), bytes)?;
            written.push(building.join(name));
        }
        if self.has_tables() {
            set_head(&self.common_dir, building, &new.head)?;
            let names = STUBS.iter().map(|(name, _)| *name);
            written.extend(
                names
                    .chain(["refs", "reftable"])
                    .map(|name| building.join(name)),
            );
        }
        if let Some(index) = new.index {
            fs::rename(index, building.join("index"))?;
            written.push(building.join("index"));
        }
        sync_together(&written)
    }

    /// Tries one name; `None` if it is taken.
    fn place(&self, building: &Path, name: &str, attempt: u32) -> Option<io::Result<String>> {
        let name = match attempt {
            0 => name.to_owned(),
            number => format!("{name}{number}"),
        };
        match renameat_with(
            CWD,
            building,
            CWD,
            self.directory(&name),
            RenameFlags::NOREPLACE,
        ) {
            // An entry that a power cut takes away again is one that `doctor` puts back; a half one would be everybody's.
            Ok(()) => Some(Ok(name)),
            Err(rustix::io::Errno::EXIST | rustix::io::Errno::NOTEMPTY) => None,
            Err(error) => Some(Err(error.into())),
        }
    }

    /// Takes an entry away; nothing if there is none.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        fs::create_dir_all(&self.workshop)?;
        let away = self
            .workshop
            .join(format!("removed-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&away);
        match fs::rename(self.directory(name), &away) {
            Ok(()) => {
                sync_directory(&self.common_dir.join("worktrees"))?;
                fs::remove_dir_all(&away)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Locks or unlocks an entry, as git shows it.
    pub fn set_locked(&self, name: &str, reason: Option<&str>) -> io::Result<()> {
        let file = self.directory(name).join("locked");
        match reason {
            Some(reason) => replace(&file, format!("{reason}\n").as_bytes()),
            None => match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        }
    }

    /// Writes weald's own note into an entry that somebody else made.
    pub fn set_note(&self, name: &str, note: &str) -> io::Result<()> {
        replace(&self.directory(name).join(NOTE), note.as_bytes())
    }

    /// Takes weald's note out of an entry that somebody else made.
    pub fn forget_note(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.directory(name).join(NOTE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Deletes the folder of entries if it is empty, as git does.
    pub fn remove_if_empty(&self) {
        let _ = fs::remove_dir(self.common_dir.join("worktrees"));
    }

    /// Changes where an entry says its worktree is, its HEAD and weald's note.
    pub fn point(&self, name: &str, path: &Path, head: &Reference, note: &str) -> io::Result<()> {
        let directory = self.directory(name);
        replace(&directory.join("gitdir"), &pointer_to(path))?;
        match self.has_tables() {
            true => set_head(&self.common_dir, &directory, head)?,
            false => replace(&directory.join("HEAD"), head.to_text().as_bytes())?,
        }
        replace(&directory.join(NOTE), note.as_bytes())
    }
}

/// What the `gitdir` of a worktree says.
fn pointer_to(path: &Path) -> Vec<u8> {
    let dot_git = path.join(".git");
    [dot_git.as_os_str().as_bytes(), b"\n"].concat()
}

/// A path without `.` and `..`: newer versions of git write paths relative to the entry.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut whole, part| {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            part => whole.push(part),
        }
        whole
    })
}
