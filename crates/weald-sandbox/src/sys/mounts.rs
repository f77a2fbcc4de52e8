//! Mounts.

use std::ffi::OsStr;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use super::{c_path, c_text, check, check_int};

/// `mount`, with a null for what is empty.
pub fn mount(
    source: &str,
    target: &Path,
    kind: &str,
    flags: libc::c_ulong,
    data: &str,
) -> io::Result<()> {
    let (source, target) = (c_text(OsStr::new(source))?, c_path(target)?);
    let (kind, data) = (c_text(OsStr::new(kind))?, c_text(OsStr::new(data))?);
    // SAFETY: all texts outlive the call.
    check_int(unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags,
            data.as_ptr().cast(),
        )
    })
    .map(drop)
}

/// A detached copy of the mounts at a path (or of the file there).
pub fn clone_mount(path: &Path) -> io::Result<OwnedFd> {
    let path = c_path(path)?;
    let flags =
        libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as libc::c_uint;
    // SAFETY: the path outlives the call; the new descriptor is owned by nobody else.
    unsafe {
        let fd = check(libc::syscall(
            libc::SYS_open_tree,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// Attaches a detached mount.
pub fn attach_mount(mount: &OwnedFd, path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    const FROM_EMPTY_PATH: libc::c_uint = 0x4;
    // SAFETY: the texts outlive the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            path.as_ptr(),
            FROM_EMPTY_PATH,
        )
    })
    .map(drop)
}

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Read-only, no set-user-id: for the mount at a path, or for the whole tree below it.
pub const READ_ONLY: u64 = 0x1 | 0x2;

/// Sets attributes of a mount.
pub fn set_mount_attributes(path: &Path, attributes: u64, recursive: bool) -> io::Result<()> {
    let path = c_path(path)?;
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    let wanted = MountAttributes {
        set: attributes,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    // SAFETY: the path and the structure outlive the call, and the structure's size is passed with it.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &wanted,
            size_of::<MountAttributes>(),
        )
    })
    .map(drop)
}
