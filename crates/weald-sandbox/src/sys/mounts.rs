//! Mounts.

use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::size_of;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, XattrFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags,
};

use super::{c_path, c_text, check};

/// Mounts a new file system of a kind.
pub fn mount(kind: &str, target: &Path, flags: MountFlags, options: &str) -> io::Result<()> {
    let options = c_text(OsStr::new(options))?;
    Ok(rustix::mount::mount(kind, target, kind, flags, &*options)?)
}

/// No mount of this namespace is seen in another one, nor the other way round.
pub fn make_mounts_private() -> io::Result<()> {
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    Ok(rustix::mount::mount_change("/", flags)?)
}

/// A detached copy of the mounts at a path (or of the file there).
pub fn clone_mount(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(rustix::mount::open_tree(CWD, path, flags)?)
}

/// Attaches a detached mount.
pub fn attach_mount(mount: &OwnedFd, path: &Path) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(rustix::mount::move_mount(mount, "", CWD, path, flags)?)
}

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Read-only, no set-user-id programs, no devices: for the mount at a path, or for the whole tree below it. A device can be
/// read and written on a read-only mount, too.
pub const READ_ONLY: MountAttrFlags = DEVICE.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// The same for the mount of one device.
pub const DEVICE: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_RDONLY.union(MountAttrFlags::MOUNT_ATTR_NOSUID);

/// No set-user-id programs and no devices.
pub const PRIVILEGE_FREE: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// Sets attributes of a mount, for which rustix has no call.
pub fn set_mount_attributes(
    path: &Path,
    attributes: MountAttrFlags,
    recursive: bool,
) -> io::Result<()> {
    let path = c_path(path)?;
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    let wanted = MountAttributes {
        set: attributes.bits().into(),
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

/// The mark by which an overlay takes a name of the layers below away.
pub fn make_whiteout(path: &Path) -> io::Result<()> {
    let kind = FileType::CharacterDevice;
    Ok(rustix::fs::mknodat(CWD, path, kind, Mode::empty(), 0)?)
}

/// Makes a directory of an overlay's layer hide the directory of that name in the layers below.
pub fn make_opaque(path: &Path) -> io::Result<()> {
    let name = "user.overlay.opaque";
    Ok(rustix::fs::setxattr(path, name, b"y", XattrFlags::empty())?)
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
    use rustix::mount::{fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen};
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let lower: Vec<_> = layers.lower.iter().map(|path| escaped(path)).collect();
    let lower = OsString::from_vec(lower.join(&b':'));
    fsconfig_set_string(&context, "lowerdir", lower)?;
    if let Some((upper, work)) = &layers.upper {
        fsconfig_set_string(&context, "upperdir", upper)?;
        fsconfig_set_string(&context, "workdir", work)?;
    }
    fsconfig_set_flag(&context, "userxattr")?;
    fsconfig_create(&context)?;
    let attributes = match layers.upper {
        Some(_) => PRIVILEGE_FREE,
        None => READ_ONLY | PRIVILEGE_FREE,
    };
    Ok(fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        attributes,
    )?)
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
