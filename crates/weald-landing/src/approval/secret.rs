//! The secret that approvals are sealed with: one a user, made on first use, in a folder that no sandbox shows.
//!
//! The folder is made before anything runs, because only what is there can be hidden.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use weald_git::{is_same_seal, seal};

use weald_control::files;

/// How long it is.
const LENGTH: usize = 32;

/// The folder of the secret, below the user's state directory; it is there afterwards if it can be.
pub fn approval_folder(state: &Path) -> PathBuf {
    let folder = state.join("approval");
    if !folder.is_dir() {
        // Where it can't be made no secret can be either.
        let _ = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder);
    }
    folder
}

pub(super) struct Secret(Vec<u8>);

impl Secret {
    /// Reads it; `None` if nobody approved anything yet.
    pub(super) fn load(state: &Path) -> io::Result<Option<Self>> {
        let path = secret_file(state);
        let nothing_linked = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(nothing_linked.bits() as i32)
            .open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = file.metadata()?;
        if !found.is_file() || found.mode() & 0o077 != 0 {
            return Err(io::Error::other("others can read it, so it proves nothing"));
        }
        let mut bytes = Vec::new();
        file.take(LENGTH as u64 + 1).read_to_end(&mut bytes)?;
        match bytes.len() == LENGTH {
            true => Ok(Some(Self(bytes))),
            false => Err(io::Error::other("it has the wrong length")),
        }
    }

    /// Reads it, or makes it.
    pub(super) fn load_or_make(state: &Path) -> io::Result<Self> {
        let path = secret_file(state);
        let made = files::edit_alone(&path, || match Self::load(state)? {
            Some(secret) => Ok(secret),
            None => {
                let mut bytes = [0; LENGTH];
                File::open("/dev/urandom")?.read_exact(&mut bytes)?;
                let building = path.with_extension("new");
                let _ = fs::remove_file(&building);
                let mut file = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&building)?;
                file.write_all(&bytes)?;
                file.sync_all()?;
                fs::rename(&building, &path)?;
                Ok(Self(bytes.to_vec()))
            }
        });
        made?
    }

    pub(super) fn seal(&self, text: &[u8]) -> String {
        seal(&self.0, text)
    }

    pub(super) fn is_seal_of(&self, given: &str, text: &[u8]) -> bool {
        is_same_seal(given, &self.seal(text))
    }
}

/// Where it is; errors name it.
pub(super) fn secret_file(state: &Path) -> PathBuf {
    approval_folder(state).join("key")
}
