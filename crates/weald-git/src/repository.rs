//! Finding a repository: from a directory inside it to the directory that all its worktrees share.
//!
//! Done by reading files, because asking git costs a process. A directory of another owner is only trusted if git
//! itself, with the user's own configuration, trusts it (`safe.directory`).

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::git_files::{path_of, read_small};
use crate::process::{Git, GitError};

/// Why no repository was found.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// Neither here nor above.
    #[error("{} is not in a git repository", .from.display())]
    NotARepository {
        /// Where the search began.
        from: PathBuf,
    },
    /// A `.git` that leads nowhere.
    #[error("{} leads to no repository: {reason}", .path.display())]
    Broken {
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A folder that a clone or a landing brought, and that looks like a repository.
    #[error("{} is a bare repository among the files of {}; its settings came with them and may start programs", .path.display(), .outer.display())]
    Embedded {
        path: PathBuf,
        /// The checkout that it is part of.
        outer: PathBuf,
    },
    /// git itself would refuse: somebody else owns it.
    #[error("{} belongs to another user", .path.display())]
    ForeignOwner { path: PathBuf },
}

/// A repository as seen from one of its checkouts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    git_dir: PathBuf,
    common_dir: PathBuf,
    checkout: Option<PathBuf>,
}

impl Repository {
    /// Finds the repository that `start` is in. `home` is the user's, for their `safe.directory`.
    pub fn discover(start: &Path, home: Option<&Path>) -> Result<Self, DiscoverError> {
        let nothing = || DiscoverError::NotARepository {
            from: start.to_owned(),
        };
        let start = fs::canonicalize(start).map_err(|_| nothing())?;
        let found = start
            .ancestors()
            .find_map(|directory| Self::at(directory).transpose());
        let repository = found.ok_or_else(nothing)??;
        repository.require_trust(home)?;
        repository.refuse_embedded()?;
        Ok(repository)
    }

    /// Refuses a bare repository that is tracked in another one's checkout: the author of that chose its settings. One that
    /// merely lies there, as below a home that is a checkout itself, is the user's own.
    fn refuse_embedded(&self) -> Result<(), DiscoverError> {
        if self.checkout.is_some() {
            return Ok(());
        }
        let above = self.git_dir.ancestors().skip(1);
        let mut above = above.filter_map(|directory| Self::at(directory).ok().flatten());
        let Some((outer, checkout)) = above.find_map(|it| Some((it.clone(), it.checkout?))) else {
            return Ok(());
        };
        let is_its_own = [&outer.git_dir, &outer.common_dir]
            .iter()
            .any(|own| self.git_dir.starts_with(own));
        let below = self.git_dir.strip_prefix(&checkout);
        let (false, Ok(below)) = (is_its_own, below) else {
            return Ok(());
        };
        let mut name = std::ffi::OsString::from(":(top,literal)");
        name.push(below);
        let tracked = outer.git("ls-files").args(["-z", "--"]).args([&name]).run();
        match tracked.is_ok_and(|found| found.is_empty()) {
            true => Ok(()),
            false => Err(DiscoverError::Embedded {
                path: self.git_dir.clone(),
                outer: checkout,
            }),
        }
    }

    /// The repository whose checkout or git directory is exactly `directory`.
    fn at(directory: &Path) -> Result<Option<Self>, DiscoverError> {
        let dot_git = directory.join(".git");
        match fs::metadata(&dot_git) {
            Ok(kind) if kind.is_dir() && is_git_dir(&dot_git) => {
                Self::open(dot_git, Some(directory)).map(Some)
            }
            Ok(kind) if kind.is_file() => {
                let git_dir = follow_pointer(&dot_git, directory)?;
                Self::open(git_dir, Some(directory)).map(Some)
            }
            _ if is_git_dir(directory) => Self::open(directory.to_owned(), None).map(Some),
            _ => Ok(None),
        }
    }

    /// A directory that git would not take for a repository, as one: to look at what is broken. `None` if it holds no
    /// objects, or is somebody else's.
    pub fn broken(git_dir: &Path, checkout: Option<&Path>) -> Option<Self> {
        let git_dir = fs::canonicalize(git_dir).ok()?;
        let is_own = fs::metadata(&git_dir)
            .is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw());
        (is_own && git_dir.join("objects").is_dir()).then(|| Self {
            common_dir: git_dir.clone(),
            git_dir,
            checkout: checkout.map(Path::to_owned),
        })
    }

    fn open(git_dir: PathBuf, checkout: Option<&Path>) -> Result<Self, DiscoverError> {
        let common_dir = match read_pointer(&git_dir.join("commondir")) {
            Ok(path) => canonical(&git_dir.join(path))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => canonical(&git_dir)?,
            Err(error) => {
                return Err(broken(&git_dir.join("commondir"), error));
            }
        };
        if !common_dir.join("objects").is_dir() {
            let reason = format!("{} holds no objects", common_dir.display());
            return Err(broken(&git_dir, reason));
        }
        Ok(Self {
            git_dir,
            common_dir,
            checkout: checkout.map(Path::to_owned),
        })
    }

    fn require_trust(&self, home: Option<&Path>) -> Result<(), DiscoverError> {
        let me = rustix::process::geteuid().as_raw();
        let is_own = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.uid() == me);
        // As git does: a directory of somebody else's could lead to a repository of the user's own.
        let checkout = self.checkout.as_deref();
        let is_own_checkout = checkout.is_none_or(|top| is_own(top) && is_own(&top.join(".git")));
        if is_own(&self.common_dir) && is_own(&self.git_dir) && is_own_checkout {
            return Ok(());
        }
        let top = self
            .checkout
            .clone()
            .unwrap_or_else(|| self.common_dir.clone());
        // git itself decides, with the user's own configuration.
        let asked = Git::outside(&top, "rev-parse")
            .args(["--git-common-dir"])
            .env("GIT_CONFIG_NOSYSTEM", "0")
            .with_user_config(home)
            .run();
        match asked {
            Ok(_) => Ok(()),
            Err(_) => Err(DiscoverError::ForeignOwner { path: top }),
        }
    }

    /// The directory that all worktrees share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// This worktree's own directory: `HEAD` and the index are here.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The checkout the search began in; `None` in a bare repository.
    pub fn checkout(&self) -> Option<&Path> {
        self.checkout.as_deref()
    }

    /// A git command on this repository.
    pub fn git(&self, name: &str) -> Git {
        Git::new(&self.git_dir, name)
    }

    /// Whether an object is here.
    pub fn has_object(&self, id: &str) -> Result<bool, GitError> {
        has_object(&self.git_dir, id)
    }

    /// Asks where the user's own configuration wants hooks to be.
    pub fn git_with_user_hooks(&self, home: Option<&Path>) -> Git {
        self.config_as_user(home).args(["--get", "core.hooksPath"])
    }

    /// `git config` that reads all that the user's own git would, the system's configuration too.
    pub fn config_as_user(&self, home: Option<&Path>) -> Git {
        crate::signing::config_as_user(&self.git_dir, home)
    }

    /// A file in a commit. What is larger than `limit` is not read.
    pub fn blob_at(&self, commit: &str, path: &str, limit: u64) -> Result<Blob, GitError> {
        let name = format!("{commit}:{path}\n");
        let answer = self
            .git("cat-file")
            .args(["--batch-check"])
            .input(name)
            .run()?;
        let header = String::from_utf8_lossy(&answer).trim_end().to_owned();
        let fields: Vec<_> = header.split(' ').collect();
        match fields[..] {
            [id, "blob", size] if size.parse::<u64>().is_ok_and(|size| size <= limit) => Ok(
                Blob::Content(self.git("cat-file").args(["blob", id]).run()?),
            ),
            [_, "blob", _] => Ok(Blob::TooLarge),
            [.., "missing"] | [_, "tree" | "commit" | "tag", _] => Ok(Blob::Absent),
            _ => Err(GitError::unexpected("cat-file", header)),
        }
    }
}

/// What is at a path of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blob {
    Absent,
    /// A file that is larger than the limit.
    TooLarge,
    Content(Vec<u8>),
}

pub(crate) fn has_object(git_dir: &Path, id: &str) -> Result<bool, GitError> {
    let asked = Git::new(git_dir, "cat-file").args(["-e", "--end-of-options", id]);
    Ok(asked.output()?.status.success())
}

fn is_git_dir(directory: &Path) -> bool {
    directory.join("HEAD").symlink_metadata().is_ok()
        && directory.join("objects").is_dir()
        && directory.join("refs").is_dir()
}

fn follow_pointer(dot_git: &Path, directory: &Path) -> Result<PathBuf, DiscoverError> {
    let bytes = read_small(dot_git).map_err(|error| broken(dot_git, error))?;
    let target = bytes
        .strip_prefix(b"gitdir: ")
        .ok_or_else(|| broken(dot_git, "it does not say `gitdir:`"))?;
    canonical(&directory.join(path_of(target)))
}

fn read_pointer(file: &Path) -> io::Result<PathBuf> {
    read_small(file).map(|bytes| path_of(&bytes))
}

fn canonical(path: &Path) -> Result<PathBuf, DiscoverError> {
    fs::canonicalize(path).map_err(|error| broken(path, error))
}

fn broken(path: &Path, reason: impl ToString) -> DiscoverError {
    DiscoverError::Broken {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}
