//! Nobody else on the machine reaches what is in a worktree: its top folder is the user's alone.
//!
//! A run may change that folder's mode, so it is set again before each run and after it. Whatever a run left below, and
//! whatever comes back from the trash, is out of reach for other users.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use weald_core::tree::DirectoryIdentity;
use weald_git::{born, device};

/// What a top folder allows: everything to its owner.
const OWNERS: u32 = 0o700;

/// Makes a directory its owner's alone. With an identity, only that very directory; a link is never followed.
pub(crate) fn close_to_others(path: &Path, identity: Option<DirectoryIdentity>) -> io::Result<()> {
    // Only named, not opened: its mode may not allow that.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = File::from(openat(CWD, path, flags, Mode::empty())?);
    let found = folder.metadata()?;
    // As doors know it: inode and birth time, and the device where that counts.
    let seen = DirectoryIdentity {
        device: device(path, &found),
        inode: found.ino(),
        born: born(&found),
    };
    let is_it = |identity: DirectoryIdentity| identity == seen;
    if !identity.is_none_or(is_it) {
        return Err(io::Error::other("another directory took its place"));
    }
    if found.mode() & 0o7777 == OWNERS {
        return Ok(());
    }
    let named = format!("/proc/self/fd/{}", folder.as_raw_fd());
    std::fs::set_permissions(named, PermissionsExt::from_mode(OWNERS))
}
