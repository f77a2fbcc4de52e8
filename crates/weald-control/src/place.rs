//! Where a repository's state lives.

use std::fs::{DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use weald_core::id::TreeId;
use weald_core::store::StoreError;
use weald_git::{DiscoverError, Repository};

use crate::files::open_own;
use crate::journal::JOURNAL_FILE;
use crate::marker::{self, Found};

/// A repository and weald's place in it.
#[derive(Debug, Clone)]
pub struct Place {
    repository: Repository,
    private: PathBuf,
    /// The user's state folder, which every sandbox hides.
    state: Option<PathBuf>,
    inside: Option<PathBuf>,
}

/// Folders of weald's in a repository that runs must not see.
pub(crate) const CONTROL_PLANE: [&str; 4] = ["private", "runs", "homes", "pool"];

/// What of a repository's lies in the user's state folder.
const OWN: &str = "own";

/// Why no place was found.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// weald's own folder in the repository is a link.
    #[error("{} is a symbolic link; weald does not keep its state behind one", .path.display())]
    LinkedState { path: PathBuf },
    /// weald's own folder in the repository is one that this user may not enter.
    #[error("{} can't be read: it belongs to user {owner}", .path.display())]
    ForeignState { path: PathBuf, owner: u32 },
    /// A tree whose repository can't be confirmed; nothing of it is opened.
    #[error("{} is a weald worktree, but {why}", .tree.display())]
    LostTree {
        tree: PathBuf,
        /// What does not fit.
        why: String,
        /// Where its repository should be.
        main: Option<PathBuf>,
    },
}

impl Place {
    /// Finds the place from a directory inside the repository, or inside one of its trees. `state` is the user's own
    /// index of trees.
    pub fn find(
        start: &Path,
        home: Option<&Path>,
        state: Option<&Path>,
    ) -> Result<Self, PlaceError> {
        let start = start
            .canonicalize()
            .map_err(|_| DiscoverError::NotARepository {
                from: start.to_owned(),
            })?;
        let (repository, tree) = match marker::find(&start, state)? {
            Found::Tree { main, tree } => (Repository::discover(&main, home)?, Some(tree)),
            Found::Nothing => {
                let repository = Repository::discover(&start, home)?;
                marker::refuse_inner(&repository)?;
                marker::refuse_links(&repository)?;
                (repository, None)
            }
        };
        marker::refuse_foreign(&repository)?;
        Ok(Self::of(repository, state, tree))
    }

    /// The place of a repository that weald was used in and that can't be used now, for `doctor`. Nothing of it is trusted.
    pub fn find_broken(start: &Path) -> Option<Self> {
        let start = start.canonicalize().ok()?;
        let found = start.ancestors().find_map(|directory| {
            let inside = directory.join(".git");
            let candidates = [(inside.as_path(), Some(directory)), (directory, None)];
            let is_used = |git_dir: &Path| git_dir.join("weald").symlink_metadata().is_ok();
            let mut used = candidates
                .into_iter()
                .filter(|(git_dir, _)| is_used(git_dir));
            used.find_map(|(git_dir, checkout)| Repository::broken(git_dir, checkout))
        });
        found.map(|repository| Self::of(repository, None, None))
    }

    /// True when weald's own folders are real ones.
    pub fn has_own_folders(&self) -> bool {
        marker::refuse_links(&self.repository).is_ok()
    }

    fn of(repository: Repository, state: Option<&Path>, inside: Option<PathBuf>) -> Self {
        let private = repository.common_dir().join("weald").join("private");
        Self {
            repository,
            private,
            state: state.map(Path::to_owned),
            inside,
        }
    }

    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The directory that is hidden from agents: database, journal, private configuration.
    pub fn private(&self) -> &Path {
        &self.private
    }

    /// Whether the registry is shut to this process, as it is inside a sandbox. `database` is its name in the private
    /// directory; for a process that has not opened it yet.
    pub fn is_shut(&self, database: &str) -> bool {
        // A sandbox without masks lets it be read, so only opening it for writing shows it.
        let opened = open_own(OpenOptions::new().write(true), &self.private.join(database));
        opened.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    }

    /// Refuses a registry that is gone while the log, the vault or a database set aside shows that there was one: a new
    /// one would know nothing of the trees. `database` is its name in the private directory.
    pub fn require_registry(&self, database: &str) -> Result<(), StoreError> {
        let path = self.private.join(database);
        if path.exists() {
            return Ok(());
        }
        let log = self.private.join(JOURNAL_FILE);
        let was_there = log.metadata().is_ok_and(|found| found.len() > 0)
            || self.private.with_file_name("vault").join("HEAD").exists()
            || self.private.join(format!("{database}.lost-1")).exists();
        // Whoever made the first one just now made it before all that.
        match was_there && !path.exists() {
            true => Err(StoreError::Lost { path }),
            false => Ok(()),
        }
    }

    /// One folder a run, each seen by its run alone: the broker's socket, and what the run may read.
    pub fn runs(&self) -> PathBuf {
        self.made("runs")
    }

    /// One folder a tree, seen by its tree's agents alone: their own state, with what they log in by. One that an earlier
    /// version made in the repository stays there.
    pub fn home_of(&self, tree: TreeId) -> PathBuf {
        let name = tree.to_string();
        let earlier = self.private.with_file_name("homes").join(&name);
        match earlier.is_dir() {
            true => earlier,
            false => self.made("homes").join(name),
        }
    }

    /// Where folders of this kind (`runs`, `homes`) may be: the user's state folder, and the repository.
    pub fn all_of(&self, kind: &str) -> Vec<PathBuf> {
        let own = self.own_folder().map(|own| own.join(kind));
        own.into_iter()
            .chain([self.private.with_file_name(kind)])
            .collect()
    }

    /// Where new ones are made: in the user's state folder. Every sandbox hides that as a whole, so a repository that is
    /// first used while a run goes on is hidden from that run, too. Where nothing can be written there, in the repository.
    fn made(&self, kind: &str) -> PathBuf {
        let made = |folder: PathBuf| {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700).create(&folder).ok()?;
            access(&folder, Access::WRITE_OK | Access::EXEC_OK).ok()?;
            // Inside, only what it really is called is there.
            folder.canonicalize().ok()
        };
        let own = self.own_folder().and_then(made);
        match own {
            Some(own) => own.join(kind),
            None => self.private.with_file_name(kind),
        }
    }

    /// This repository's part of the user's state folder. Its name is short, because the path of a socket must be.
    fn own_folder(&self) -> Option<PathBuf> {
        let id = self.id()?;
        Some(own_folder_of(self.state.as_ref()?, &id))
    }

    /// What of weald's own no sandbox shows, but for what belongs to its run.
    pub fn hidden(&self) -> Vec<PathBuf> {
        CONTROL_PLANE
            .map(|name| self.private.with_file_name(name))
            .into()
    }

    /// The tree that the search began in.
    pub fn inside(&self) -> Option<&Path> {
        self.inside.as_deref()
    }

    /// The main checkout, or the folder that stands for it where there is none.
    pub fn root(&self) -> PathBuf {
        let common = self.repository.common_dir();
        match common.file_name().and_then(|name| name.to_str()) {
            Some(".git" | ".bare") => common.parent().unwrap_or(common).to_owned(),
            _ => match self.repository.checkout() {
                Some(checkout) if !self.is_linked() => checkout.to_owned(),
                _ => common.to_owned(),
            },
        }
    }

    fn is_linked(&self) -> bool {
        self.repository.git_dir() != self.repository.common_dir()
    }

    /// The repository as a URI, for events.
    pub fn source(&self) -> String {
        let mut uri = String::from("file://");
        for byte in self.repository.common_dir().as_os_str().as_bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'~' => {
                    uri.push(char::from(*byte))
                }
                other => uri.push_str(&format!("%{other:02X}")),
            }
        }
        uri
    }
}

/// The folders of all repositories in the user's state folder.
pub fn own_folders(state: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(state.join(OWN)).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

/// The folder of the repository with this id.
pub(crate) fn own_folder_of(state: &Path, id: &str) -> PathBuf {
    state.join(OWN).join(own_name(id))
}

/// What the folder of a repository is called there.
pub fn own_name(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}
