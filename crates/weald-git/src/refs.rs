//! Reading refs: loose files, `packed-refs` and tables directly, anything odd through git; changing them.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::git_files::read_text;
use crate::process::{Git, GitError};
use crate::ref_files;
use crate::ref_name::{RefName, is_readable};
use crate::ref_tables::{self, direct_by_git, has_tables, line, tabled_ref};
use crate::reference::{Commit, MainRef, Reference};
use crate::repository::Repository;

/// The branch that work lands on, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub branch: String,
    pub tip: Commit,
}

/// How deep symbolic refs may lead; git's own limit.
const DEPTH: usize = 5;

/// The longest list of refs that is taken from git: tables can hold many long names in little space.
const LIST_LIMIT: u64 = 256 << 20;

/// How long a change waits for the lock of refs in tables.
const TABLES_WAIT: Duration = Duration::from_secs(10);

impl Repository {
    /// Reads one ref by its full name (`HEAD`, `refs/heads/main`); `None` if there is none, as of a name that no ref can have.
    pub fn reference(&self, name: &str) -> Result<Option<Reference>, GitError> {
        if !is_readable(name) {
            return Ok(None);
        }
        let directory = if name.starts_with("refs/") {
            self.common_dir()
        } else {
            self.git_dir()
        };
        if self.has_reftable() {
            return tabled_ref(directory, name);
        }
        match read_text(directory.join(name)) {
            Ok(text) => match Reference::parse(&text) {
                Some(reference) => Ok(Some(reference)),
                None => self.reference_by_git(name),
            },
            Err(_) => match packed(self.common_dir(), name) {
                Ok(found) => Ok(found.map(Reference::Direct)),
                Err(_) => self.reference_by_git(name),
            },
        }
    }

    /// Follows a ref to an object.
    pub fn resolve(&self, name: &str) -> Result<Option<Commit>, GitError> {
        let mut name = name.to_owned();
        for _ in 0..DEPTH {
            match self.reference(&name)? {
                Some(Reference::Direct(commit)) => return Ok(Some(commit)),
                Some(Reference::Symbolic(next)) => name = next,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The branch that work lands on unless somebody says otherwise: origin's default, `main`, `master`, or what the
    /// main checkout is on. Never what a linked worktree is on: that is somebody's work. `None` without a commit.
    pub fn default_target(&self) -> Result<Option<Target>, GitError> {
        if let Some(Reference::Symbolic(remote)) = self.reference("refs/remotes/origin/HEAD")?
            && let Some(branch) = remote.strip_prefix("refs/remotes/origin/")
            && let Some(target) = self.target(branch)?
        {
            return Ok(Some(target));
        }
        for branch in ["main", "master"] {
            if let Some(target) = self.target(branch)? {
                return Ok(Some(target));
            }
        }
        match self.main_branch()? {
            Some(branch) => self.target(&branch),
            None => Ok(None),
        }
    }

    /// The branch that the main checkout is on.
    pub fn main_branch(&self) -> Result<Option<String>, GitError> {
        Ok(match self.main_head()? {
            Some(Reference::Symbolic(current)) => {
                current.strip_prefix("refs/heads/").map(str::to_owned)
            }
            _ => None,
        })
    }

    /// A branch as a target: its own tip, or origin's if there is no such branch here. `HEAD` is no branch: origin's would
    /// be its default, whatever the checkout is on.
    pub fn target(&self, branch: &str) -> Result<Option<Target>, GitError> {
        if branch == "HEAD" {
            return Ok(None);
        }
        for name in [
            format!("refs/heads/{branch}"),
            format!("refs/remotes/origin/{branch}"),
        ] {
            if let Some(tip) = self.resolve(&name)? {
                return Ok(Some(Target {
                    branch: branch.to_owned(),
                    tip,
                }));
            }
        }
        Ok(None)
    }

    /// What the main checkout's HEAD says, wherever this repository was found from.
    pub fn main_head(&self) -> Result<Option<Reference>, GitError> {
        if self.has_reftable() {
            return tabled_ref(self.common_dir(), "HEAD");
        }
        match read_text(self.common_dir().join("HEAD")) {
            Ok(text) => Ok(Reference::parse(&text)),
            _ => self.reference_by_git("main-worktree/HEAD"),
        }
    }

    /// Whether refs are kept in tables instead of files.
    pub fn has_reftable(&self) -> bool {
        has_tables(self.common_dir())
    }

    fn reference_by_git(&self, name: &str) -> Result<Option<Reference>, GitError> {
        let symbolic = self.git("symbolic-ref").args(["-q", name]).output()?;
        if symbolic.status.success() {
            return Ok(Some(Reference::Symbolic(line(&symbolic.stdout))));
        }
        direct_by_git(self.git_dir(), name)
    }
}

/// Looks a ref up in `packed-refs`: lines of `<id> <name>`, with `^<id>` and `#` lines between them. An error where only git
/// can read the file.
fn packed(common_dir: &Path, name: &str) -> io::Result<Option<Commit>> {
    use io::ErrorKind::{NotFound, Unsupported};
    let text = match read_text(common_dir.join("packed-refs")) {
        Ok(text) => text,
        // Git would wait for a named pipe for ever.
        Err(error) if matches!(error.kind(), NotFound | Unsupported) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(text.find(&format!(" {name}\n")).and_then(|end| {
        let start = text[..end].rfind('\n').map_or(0, |before| before + 1);
        Commit::parse(&text[start..end])
    }))
}

/// Lists the refs below `prefixes` of a repository, each ending with `/`, sorted by name.
pub fn list_refs(git_dir: &Path, prefixes: &[&str]) -> Result<Vec<MainRef>, GitError> {
    list_plain(git_dir, prefixes, true).map_or_else(|| list_refs_by_git(git_dir, prefixes), Ok)
}

/// The same, where nobody wants to know what tags lead to: of a repository of weald's own.
pub fn list_tips(git_dir: &Path, prefixes: &[&str]) -> Result<Vec<MainRef>, GitError> {
    list_plain(git_dir, prefixes, false).map_or_else(|| list_refs_by_git(git_dir, prefixes), Ok)
}

/// Every ref, as its file says it; `None` where git knows more. Whether the objects are there is not looked at.
pub fn list_plain_tips(git_dir: &Path) -> Option<Vec<MainRef>> {
    list_plain(git_dir, &["refs/"], false)
}

/// Refs as files or tables say them; of a linked worktree, which has some of both, only git knows all.
fn list_plain(git_dir: &Path, prefixes: &[&str], peels: bool) -> Option<Vec<MainRef>> {
    match has_tables(git_dir) {
        _ if git_dir.join("gitdir").exists() => None,
        true => ref_tables::list(git_dir, prefixes),
        false => ref_files::list(git_dir, prefixes, peels),
    }
}

pub(crate) fn list_refs_by_git(
    git_dir: &Path,
    prefixes: &[&str],
) -> Result<Vec<MainRef>, GitError> {
    let answer = Git::new(git_dir, "for-each-ref")
        .args(["--format=%(objectname) %(*objectname) %(symref) %(refname)"])
        .args(prefixes)
        .answer_limit(LIST_LIMIT)
        .run()?;
    let text = String::from_utf8_lossy(&answer);
    let parse = |line: &str| {
        let mut fields = line.splitn(4, ' ');
        let mut next = || fields.next().unwrap_or_default().to_owned();
        let (commit, peeled, symbolic, name) = (next(), next(), next(), next());
        Commit::parse(&commit)?;
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        Some(MainRef {
            name: some(name)?,
            commit,
            peeled: some(peeled),
            symbolic: some(symbolic),
        })
    };
    Ok(text.lines().filter_map(parse).collect())
}

/// What a ref must hold for a change to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    Any,
    Absent,
    Holds(String),
}

/// One change of a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefChange {
    pub name: String,
    /// The new object; `None` deletes it.
    pub new: Option<String>,
    /// What it must hold before.
    pub expected: Expected,
}

impl RefChange {
    pub fn set(name: impl Into<String>, to: impl Into<String>, expected: Expected) -> Self {
        Self {
            name: name.into(),
            new: Some(to.into()),
            expected,
        }
    }

    pub fn delete(name: impl Into<String>, held: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            new: None,
            expected: Expected::Holds(held.into()),
        }
    }
}

/// Refuses what is no name of a ref, could end a field of the request, or be read as nothing.
fn require_plain(change: &RefChange) -> Result<RefName, GitError> {
    let is_id = |id: &String| Commit::parse(id).is_some();
    let old = match &change.expected {
        Expected::Holds(old) => is_id(old),
        _ => true,
    };
    let name = RefName::parse(&change.name);
    match name.filter(|_| old && change.new.as_ref().is_none_or(is_id)) {
        Some(name) => Ok(name),
        None => Err(GitError::unexpected("update-ref", format!("{change:?}"))),
    }
}

/// Makes a branch that must not exist yet; `now` is in seconds since 1970, `workshop` a folder on the same file system.
pub fn create_branch(
    git_dir: &Path,
    workshop: &Path,
    branch: &str,
    commit: &str,
    message: &str,
    now: i64,
) -> Result<(), GitError> {
    let change = RefChange {
        name: format!("refs/heads/{branch}"),
        new: Some(commit.to_owned()),
        expected: Expected::Absent,
    };
    let name = require_plain(&change)?;
    match ref_files::create(git_dir, workshop, &name, commit, message, now) {
        Ok(()) => Ok(()),
        Err(_) => update_refs(git_dir, &[change], message),
    }
}

/// Deletes a branch that must hold `commit`; `workshop` is a folder on the same file system.
pub fn delete_branch(
    git_dir: &Path,
    workshop: &Path,
    branch: &str,
    commit: &str,
    message: &str,
) -> Result<(), GitError> {
    let change = RefChange {
        name: format!("refs/heads/{branch}"),
        new: None,
        expected: Expected::Holds(commit.to_owned()),
    };
    let name = require_plain(&change)?;
    match ref_files::delete(git_dir, workshop, &name, commit) {
        Ok(()) => Ok(()),
        Err(_) => update_refs(git_dir, &[change], message),
    }
}

/// Changes refs, all or none of them.
pub fn update_refs(git_dir: &Path, changes: &[RefChange], message: &str) -> Result<(), GitError> {
    if changes.is_empty() {
        return Ok(());
    }
    let mut input = Vec::from(&b"start\0"[..]);
    for change in changes {
        require_plain(change)?;
        let (verb, old) = match (&change.new, &change.expected) {
            (Some(_), Expected::Absent) => ("create", None),
            (Some(_), Expected::Any) => ("update", Some("")),
            (Some(_), Expected::Holds(old)) => ("update", Some(old.as_str())),
            (None, Expected::Holds(old)) => ("delete", Some(old.as_str())),
            (None, _) => ("delete", Some("")),
        };
        input.extend_from_slice(format!("{verb} {}\0", change.name).as_bytes());
        if let Some(new) = &change.new {
            input.extend_from_slice(format!("{new}\0").as_bytes());
        }
        if let Some(old) = old {
            input.extend_from_slice(format!("{old}\0").as_bytes());
        }
    }
    input.extend_from_slice(b"prepare\0commit\0");
    while_tables_are_held(|| {
        Git::new(git_dir, "update-ref")
            .args(["-m", message, "--no-deref", "--stdin", "-z"])
            .env("GIT_COMMITTER_NAME", "weald")
            .env("GIT_COMMITTER_EMAIL", "weald@localhost")
            .input(input.clone())
            .run()
            .map(drop)
    })
}

/// Tries again while another process holds the one lock that all refs in tables share; git itself does not wait for it.
pub(crate) fn while_tables_are_held<T>(
    mut change: impl FnMut() -> Result<T, GitError>,
) -> Result<T, GitError> {
    let deadline = Instant::now() + TABLES_WAIT;
    loop {
        match change() {
            Err(error) if error.says_tables_are_held() && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(5));
            }
            ended => return ended,
        }
    }
}
