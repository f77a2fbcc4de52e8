//! Whether a repository is the one that its records were written in, or a copy of it (`cp -a`, rsync, a restored backup).
//!
//! A copy has the same records, and these name worktrees, trash and agents that belong to the original. So a repository
//! has an id in its private folder, together with the path it was last used at, and the user's state folder has a
//! register from id to path. If another directory at either path has the same id, this one is a copy. If neither has, the
//! repository was moved, and both are written again. The same directory reached by another path (a link, a bind mount) is
//! no copy.
//!
//! Every question is answered by looking at this machine's own disks. Where several machines share a home, a path that is
//! not here counts as gone: what is on the other machine can't be reached from this one either.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::files::{self, same_directory};
use crate::journal::{JOURNAL_FILE, last_source};
use crate::place::{Place, own_folder_of};

/// The id, in the private folder.
const ID_FILE: &str = "repository";

/// The register, in the user's state folder: one file an id.
const REGISTER: &str = "repositories";

/// The longest of these files.
const LIMIT: u64 = 16 * 1024;

/// What a repository is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The one that its records speak of.
    Original,
    /// A copy, or one that can't be proven to be none.
    Copy(CopyOf),
}

/// What is known of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOf {
    /// The common directory of the original.
    pub original: Option<PathBuf>,
    /// Why that is not known for sure; `None` if it is.
    pub doubt: Option<String>,
}

/// The id of a repository, and the path it was last used at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RepositoryEntry {
    id: String,
    path: PathBuf,
}

impl fmt::Display for CopyOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.doubt, &self.original) {
            (None, Some(original)) => write!(
                f,
                "this repository is a copy of {}, and its records name the original's worktrees",
                original.display()
            ),
            (doubt, _) => write!(
                f,
                "this repository may be a copy: {}",
                doubt.as_deref().unwrap_or("its last location is unknown")
            ),
        }
    }
}

impl CopyOf {
    fn sure(original: PathBuf) -> Self {
        Self {
            original: Some(original),
            doubt: None,
        }
    }

    fn doubted(original: Option<PathBuf>, doubt: String) -> Self {
        Self {
            original,
            doubt: Some(doubt),
        }
    }
}

impl Place {
    /// Says whether this is a copy. One that is none, and was moved or never used, is registered. The private folder has
    /// to be there.
    pub fn standing(&self, state: Option<&Path>) -> Standing {
        let here = self.repository().common_dir();
        let known = match self.own_entry() {
            Ok(known) => known,
            Err(error) => {
                let doubt = format!("its id can't be read: {error}");
                return Standing::Copy(CopyOf::doubted(last_source(self.private()), doubt));
            }
        };
        if let (Some(own), Some(state)) = (&known, state)
            && own.path == here
            && registered(state, &own.id).ok().flatten().as_deref() == Some(here)
        {
            return Standing::Original;
        }
        let Some(state) = state else {
            return self.unregistered(
                known.as_ref(),
                "there is no home directory to register it in",
            );
        };
        let alone = files::edit_alone(&register(state).join("register"), || {
            self.registering(state)
        });
        alone
            .and_then(|done| done)
            .unwrap_or_else(|error| self.unregistered(known.as_ref(), &error.to_string()))
    }

    /// Gives a copy an id of its own. It is no copy from here on.
    pub fn become_original(&self, state: Option<&Path>) -> io::Result<()> {
        let own = RepositoryEntry {
            id: new_id()?,
            path: self.repository().common_dir().to_owned(),
        };
        let Some(state) = state else {
            return self.write_entry(&own);
        };
        // Without a register it is known by its own file alone.
        let _ = files::edit_alone(&register(state).join("register"), || {
            write_registered(state, &own)
        });
        self.write_entry(&own)
    }

    /// What the user's state folder has about this repository, whose private folder is, or was, `private`. A copy has
    /// nothing there: it is the original's.
    pub fn user_traces(&self, private: &Path, state: &Path) -> Vec<PathBuf> {
        let Ok(Some(RepositoryEntry { id, .. })) = entry_in(private) else {
            return Vec::new();
        };
        let here = self.repository().common_dir();
        match registered(state, &id) {
            Ok(Some(path)) if path != here => Vec::new(),
            _ => vec![own_folder_of(state, &id), register(state).join(id)],
        }
    }

    /// While no other process does the same: two copies of a repository that is gone can't both become the original.
    fn registering(&self, state: &Path) -> io::Result<Standing> {
        let here = self.repository().common_dir();
        let own = self.own_entry()?;
        let Some(own) = own else {
            // Earlier versions gave no ids; the log says where it was written.
            if let Some(copy) = self.copied_before_ids() {
                return Ok(Standing::Copy(copy));
            }
            let own = RepositoryEntry {
                id: new_id()?,
                path: here.to_owned(),
            };
            write_registered(state, &own)?;
            self.write_entry(&own)?;
            return Ok(Standing::Original);
        };
        let registered = registered(state, &own.id)?;
        if let Some(copy) = self.copy_among(&own, registered.as_deref()) {
            return Ok(Standing::Copy(copy));
        }
        let moved = RepositoryEntry {
            path: here.to_owned(),
            ..own.clone()
        };
        if registered.as_deref() != Some(here) {
            write_registered(state, &moved)?;
        }
        if own.path != here {
            self.write_entry(&moved)?;
        }
        Ok(Standing::Original)
    }

    /// What it is by its own file alone. Whether it was moved or copied is unknown without the register.
    fn unregistered(&self, own: Option<&RepositoryEntry>, why: &str) -> Standing {
        let here = self.repository().common_dir();
        let Some(own) = own else {
            return match self.copied_before_ids() {
                Some(copy) => Standing::Copy(copy),
                None => {
                    // One that nothing can be written to stays without an id.
                    let _ = new_id().and_then(|id| {
                        let path = here.to_owned();
                        self.write_entry(&RepositoryEntry { id, path })
                    });
                    Standing::Original
                }
            };
        };
        match self.copy_among(own, None) {
            Some(copy) => Standing::Copy(copy),
            None if own.path == here || self.is_read_only() => Standing::Original,
            None => Standing::Copy(CopyOf::doubted(
                Some(own.path.clone()),
                format!(
                    "it was last used at {}, and the register of repositories can't be used: {why}",
                    own.path.display()
                ),
            )),
        }
    }

    fn copy_among(&self, own: &RepositoryEntry, registered: Option<&Path>) -> Option<CopyOf> {
        let here = self.repository().common_dir();
        let paths = [Some(own.path.as_path()), registered].into_iter().flatten();
        let has_id = |private: PathBuf| {
            let found = entry_in(&private)?;
            Ok(found.is_some_and(|found| found.id == own.id))
        };
        let mut others = paths.filter(|path| *path != here);
        others.find_map(|path| self.copy_of(path, has_id))
    }

    /// Where the log of a repository without an id was last written, if that repository is still there.
    fn copied_before_ids(&self) -> Option<CopyOf> {
        let source = last_source(self.private())?;
        self.copy_of(&source, |private| private.join(JOURNAL_FILE).try_exists())
    }

    /// Whether the repository at `path` is another directory than this one, and `is_it` says yes to its private folder.
    fn copy_of(
        &self,
        path: &Path,
        is_it: impl FnOnce(PathBuf) -> io::Result<bool>,
    ) -> Option<CopyOf> {
        match is_it(path.join("weald/private")) {
            Ok(false) => None,
            Ok(true) if same_directory(path, self.repository().common_dir()) => None,
            Ok(true) => Some(CopyOf::sure(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => None,
            Err(error) => {
                let doubt = format!("{} can't be read: {error}", path.display());
                Some(CopyOf::doubted(Some(path.to_owned()), doubt))
            }
        }
    }

    /// The id of this repository, if it has one.
    pub(crate) fn id(&self) -> Option<String> {
        Some(self.own_entry().ok()??.id)
    }

    fn own_entry(&self) -> io::Result<Option<RepositoryEntry>> {
        entry_in(self.private())
    }

    fn write_entry(&self, own: &RepositoryEntry) -> io::Result<()> {
        let mut text = format!("{}\n", own.id).into_bytes();
        text.extend_from_slice(own.path.as_os_str().as_bytes());
        text.push(b'\n');
        files::replace_private(&self.private().join(ID_FILE), &text)
    }

    /// Whether nothing can be written there, so nothing can be lost there either.
    pub fn is_read_only(&self) -> bool {
        let flags = rustix::fs::statvfs(self.private()).map(|found| found.f_flag);
        flags.is_ok_and(|flags| flags.contains(rustix::fs::StatVfsMountFlags::RDONLY))
    }
}

fn register(state: &Path) -> PathBuf {
    state.join(REGISTER)
}

fn registered(state: &Path, id: &str) -> io::Result<Option<PathBuf>> {
    let text = files::read_small_bytes(&register(state).join(id), LIMIT)?;
    match text.map(path_of) {
        Some(path) if !path.is_absolute() => Err(odd("its entry in the register is not a path")),
        path => Ok(path),
    }
}

/// The common directories of all repositories of this user that weald was used in.
pub(crate) fn repositories(state: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(register(state))
        .into_iter()
        .flatten()
        .flatten();
    let ids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let found = ids.filter_map(|id| registered(state, &id).ok().flatten());
    found.filter(|path| path.is_dir()).collect()
}

/// Whether a repository is proven to be gone: none with an id for which `is_it` says yes is where the register says.
pub fn is_gone(state: &Path, is_it: impl Fn(&str) -> bool) -> bool {
    let Ok(entries) = std::fs::read_dir(register(state)) else {
        return false;
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut ids = names.filter_map(|name| name.into_string().ok().filter(|id| is_it(id)));
    ids.all(|id| match registered(state, &id) {
        Ok(Some(path)) => match entry_in(&path.join("weald/private")) {
            Ok(found) => found.is_none_or(|found| found.id != id),
            Err(_) => false,
        },
        Ok(None) => true,
        Err(_) => false,
    })
}

fn write_registered(state: &Path, entry: &RepositoryEntry) -> io::Result<()> {
    let mut text = entry.path.as_os_str().as_bytes().to_vec();
    text.push(b'\n');
    files::replace_private(&register(state).join(&entry.id), &text)
}

fn entry_in(private: &Path) -> io::Result<Option<RepositoryEntry>> {
    let Some(mut text) = files::read_small_bytes(&private.join(ID_FILE), LIMIT)? else {
        return Ok(None);
    };
    let no_entry = || odd("it is not an id and a path");
    let end = text.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or_else(no_entry)?;
    let path = path_of(text.split_off(end + 1));
    let id = String::from_utf8_lossy(&text[..end]).into_owned();
    let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_id && path.is_absolute() {
        true => Ok(Some(RepositoryEntry { id, path })),
        false => Err(no_entry()),
    }
}

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn path_of(mut text: Vec<u8>) -> PathBuf {
    if text.last() == Some(&b'\n') {
        text.pop();
    }
    std::ffi::OsString::from_vec(text).into()
}

fn new_id() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex::encode(bytes))
}
