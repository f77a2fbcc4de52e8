//! Mounts.

use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr;

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

/// No set-user-id programs and no devices.
pub const PRIVILEGE_FREE: u64 = 0x2 | 0x4;

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

/// Takes the topmost mount at a path away; what still uses it keeps it.
pub fn unmount(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the path outlives the call.
    check_int(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// The mark by which an overlay takes a name of the layers below away.
pub fn make_whiteout(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the path outlives the call.
    check_int(unsafe { libc::mknod(path.as_ptr(), libc::S_IFCHR, libc::makedev(0, 0)) }).map(drop)
}

/// Makes a directory of an overlay's layer hide the directory of that name in the layers below.
pub fn make_opaque(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: all texts outlive the call, and the value's length is passed with it.
    check_int(unsafe {
        libc::setxattr(
            path.as_ptr(),
            c"user.overlay.opaque".as_ptr(),
            c"y".as_ptr().cast(),
            1,
            0,
        )
    })
    .map(drop)
}

/// The layers of an overlay.
pub struct OverlayLayers {
    /// What is read, topmost first.
    pub lower: Vec<PathBuf>,
    /// What is written, and the kernel's scratch space beside it; `None` for an overlay that can't be written.
    pub upper: Option<(PathBuf, PathBuf)>,
}

/// An overlay as a detached mount, without devices and set-user-id programs.
pub fn overlay(layers: &OverlayLayers) -> io::Result<OwnedFd> {
    const CLOSE_ON_EXEC: libc::c_uint = 1;
    const SET_FLAG: libc::c_uint = 0;
    const SET_TEXT: libc::c_uint = 1;
    const CREATE: libc::c_uint = 6;
    // SAFETY: the name outlives the call; the new descriptor is owned by nobody else.
    let context = unsafe {
        let fd = check(libc::syscall(
            libc::SYS_fsopen,
            c"overlay".as_ptr(),
            CLOSE_ON_EXEC,
        ))?;
        OwnedFd::from_raw_fd(fd as RawFd)
    };
    let configure = |command: libc::c_uint, key: Option<&CStr>, value: Option<&CStr>| {
        let pointer = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
        // SAFETY: texts outlive the call; a null is what these commands take where there is none.
        check(unsafe {
            libc::syscall(
                libc::SYS_fsconfig,
                context.as_raw_fd(),
                command,
                pointer(key),
                pointer(value),
                0,
            )
        })
        .map(drop)
    };
    let lower: Vec<_> = layers.lower.iter().map(|path| escaped(path)).collect();
    let lower = c_text(&OsString::from_vec(lower.join(&b':')))?;
    configure(SET_TEXT, Some(c"lowerdir"), Some(&lower))?;
    if let Some((upper, work)) = &layers.upper {
        configure(SET_TEXT, Some(c"upperdir"), Some(&c_path(upper)?))?;
        configure(SET_TEXT, Some(c"workdir"), Some(&c_path(work)?))?;
    }
    configure(SET_FLAG, Some(c"userxattr"), None)?;
    configure(CREATE, None, None)?;
    let attributes = match layers.upper {
        Some(_) => PRIVILEGE_FREE,
        None => READ_ONLY | PRIVILEGE_FREE,
    };
    // SAFETY: takes no pointer; the new descriptor is owned by nobody else.
    unsafe {
        let fd = check(libc::syscall(
            libc::SYS_fsmount,
            context.as_raw_fd(),
            CLOSE_ON_EXEC,
            attributes as libc::c_uint,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// A path in a list of layers, in which colons and backslashes mean something.
fn escaped(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes().iter();
    let mut escaped = Vec::new();
    for byte in bytes {
        if matches!(byte, b':' | b'\\') {
            escaped.push(b'\\');
        }
        escaped.push(*byte);
    }
    escaped
}
