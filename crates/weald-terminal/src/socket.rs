//! Where viewers come: a socket in a folder that is its owner's alone.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// What it is called.
pub const SOCKET: &str = "terminal";

/// Listens in a folder; what an earlier host left there is replaced.
pub fn listen(folder: &Path) -> io::Result<UnixListener> {
    let (folder, path) = short(folder)?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    drop(folder);
    Ok(listener)
}

/// Connects to the host that listens in a folder.
pub fn connect(folder: &Path) -> io::Result<UnixStream> {
    let (folder, path) = short(folder)?;
    let stream = UnixStream::connect(path)?;
    drop(folder);
    Ok(stream)
}

/// By its folder's descriptor, which has to stay open: a path can be longer than the address of a socket.
fn short(folder: &Path) -> io::Result<(File, PathBuf)> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let mut options = OpenOptions::new();
    let opened = options.read(true).custom_flags(flags).open(folder)?;
    let path = format!("/proc/self/fd/{}/{SOCKET}", opened.as_raw_fd());
    Ok((opened, path.into()))
}
